package qrm

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
)

// live tells clusters of running or stopped members from those that only a
// saved snapshot knows.
func live(c *quorum.Cluster) bool {
	for _, s := range c.Sources {
		if !s.Snapshot {
			return true
		}
	}
	return len(c.Sources) == 0
}

// subject names a cluster in findings: the only one needs no id.
func subject(v *quorum.View, c *quorum.Cluster, what string) string {
	n := 0
	for _, x := range v.Clusters {
		if live(x) {
			n++
		}
	}
	if n < 2 || c.ID == 0 {
		return what
	}
	return what + " of cluster " + quorum.ID(c.ID)
}

// claims is the evidence of what sources say of a member: one of each kind and
// node, the deciding source first.
func claims(m *quorum.Member) []analyze.Evidence {
	var out []analyze.Evidence
	seen := map[string]bool{}
	for _, x := range m.Claims {
		if seen[x.Ref.Path] || len(out) >= 8 {
			continue
		}
		seen[x.Ref.Path] = true
		out = append(out, analyze.Context(x.Ref, string(x.Source.Kind)+": "+x.Text))
	}
	return out
}

// proofs is the evidence of a member's life, at most three of it.
func proofs(m *quorum.Member) []analyze.Evidence {
	var out []analyze.Evidence
	for _, p := range m.Proofs {
		if p.Life == m.Life && len(out) < 3 {
			out = append(out, analyze.Context(p.Ref, p.Text))
		}
	}
	return out
}

// list joins labels for a sentence.
func list(items []string) string {
	switch len(items) {
	case 0:
		return "none"
	case 1:
		return items[0]
	}
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// nodeName is a node's name, or what stands for it in a sentence.
func nodeName(n *bundle.Node) string {
	if n == nil || n.Name == "" {
		return "the cluster's files"
	}
	return n.Name
}
