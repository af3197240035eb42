package adm

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "ADM302", Name: "encryption-configuration-differs", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Encryption at rest differs between API servers or is only partly applied",
		Why: "Each API server encrypts with the first provider of its own file. Where the order differs, one writes what another may not read after the next rotation. " +
			"Objects written before encryption was switched on stay in clear until they are rewritten, whatever the configuration says.",
		Fix: "Put the same file on every control-plane node, restart the API servers one by one, then rewrite all objects of the resources it names. KMS v1 is deprecated: move to v2.",
		Links: []string{
			"https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/", "https://github.com/kubernetes/kubernetes/issues/112001",
		},
		Since: "v0.1",
	},
	Wants: []analyze.Need{encryption, objects.Cluster},
	Run:   unevenEncryption,
})

// serverConfig is the encryption configuration of one node's API server.
type serverConfig struct {
	node *bundle.Node
	*config
}

func unevenEncryption(p *analyze.Pass) error {
	var all []serverConfig
	servers := false
	for _, n := range p.Nodes() {
		c, err := encryption.Try(p, n)
		if err != nil {
			if bundle.ReasonOf(err) != bundle.NotCollected || servers {
				p.UnknownErr(bundle.KindFiles, n, err)
			}
			continue
		}
		if !c.NoServer {
			servers = true
			all = append(all, serverConfig{n, c})
		}
	}
	if len(all) == 0 {
		p.Unknown(bundle.KindFiles, nil, bundle.NotCollected, "no API server's encryption configuration")
		return nil
	}
	differing(p, all)
	kmsV1(p, all)
	if len(all[0].Rules) == 0 {
		return nil
	}
	set, err := objects.Cluster.Try(p, nil)
	if err != nil {
		p.UnknownErr(bundle.KindStore, nil, err)
		return nil
	}
	leftovers(p, all[0], set)
	return nil
}

// order is the provider lists in a line per rule: names only.
func (c *config) order() string {
	var rules []string
	for _, r := range c.Rules {
		var ps []string
		for _, x := range r.Providers {
			ps = append(ps, strings.TrimSuffix(x.Kind+" "+strings.Join(x.Keys, "+"), " "))
		}
		rules = append(rules, strings.Join(slices.Sorted(slices.Values(r.Resources)), ",")+": "+strings.Join(ps, ", "))
	}
	if len(rules) == 0 {
		return "no encryption"
	}
	return strings.Join(rules, "; ")
}

// differing reports API servers whose provider lists are not those of the
// first. A key that one has at the end and another not yet is a rotation
// under way only if both still write with the same one.
func differing(p *analyze.Pass, all []serverConfig) {
	for _, c := range all[1:] {
		a, b := all[0], c
		if a.order() == b.order() {
			continue
		}
		sev := report.High
		what := "they write with different keys"
		if a.writes() == b.writes() {
			sev, what = report.Low, "they write with the same key, as in a rotation under way; the next step may only follow when all have the same file"
		}
		p.Report(analyze.Finding{Node: c.node, Subject: "encryption configuration", Severity: sev,
			Message:  fmt.Sprintf("the API servers of %s and %s have different encryption configurations (%s | %s): %s", a.node.Name, c.node.Name, a.order(), b.order(), what),
			Evidence: []analyze.Evidence{analyze.See(c.Ref, b.order()), analyze.Expect(a.Ref, a.order())}})
	}
}

// writes is what encrypts each rule's resources.
func (c *config) writes() string {
	var out []string
	for _, r := range c.Rules {
		if len(r.Providers) > 0 {
			x := r.Providers[0]
			key := ""
			if len(x.Keys) > 0 {
				key = x.Keys[0]
			}
			out = append(out, strings.Join(slices.Sorted(slices.Values(r.Resources)), ",")+"="+x.Kind+":"+key)
		}
	}
	return strings.Join(out, ";")
}

func kmsV1(p *analyze.Pass, all []serverConfig) {
	for _, c := range all {
		for _, r := range c.Rules {
			for _, x := range r.Providers {
				if x.Kind == "kms" && x.V1 {
					p.Report(analyze.Finding{Node: c.node, Subject: "kms v1", Severity: report.Low,
						Message:  fmt.Sprintf("the KMS provider %s uses API v1, which is deprecated since 1.28 and off by default since 1.29", strings.Join(x.Keys, ", ")),
						Evidence: []analyze.Evidence{analyze.See(c.Ref, "kms "+strings.Join(x.Keys, ", "))}})
					return
				}
			}
		}
	}
}

// leftovers compares what the configuration asks for with what is stored.
func leftovers(p *analyze.Pass, c serverConfig, set *objects.Set) {
	for _, t := range set.Store.Types {
		if t.Live == 0 || t.Type == etcdstore.Foreign {
			continue
		}
		resource := etcdstore.Resource(t.Type)
		r := c.rule(resource)
		if r == nil || len(r.Providers) == 0 {
			continue
		}
		var clear, enc int64
		for _, f := range t.Formats {
			if f.Encoding == etcdstore.Encrypted {
				enc += f.Live
			} else {
				clear += f.Live
			}
		}
		identity := r.Providers[0].Kind == "identity"
		switch {
		case !identity && clear > 0:
			p.Report(analyze.Finding{Subject: "stored " + resource, Severity: report.Medium,
				Message:  fmt.Sprintf("%d of %d %s are stored in clear, although they are to be encrypted with %s: they were written before", clear, clear+enc, resource, r.Providers[0].Kind),
				Evidence: []analyze.Evidence{analyze.See(set.DB.Ref(), fmt.Sprintf("%s: %d in clear, %d encrypted", t.Type, clear, enc)), analyze.Expect(c.Ref, c.order())},
				Fix:      []report.Step{{Text: "Rewrite them; each is stored anew with the first provider.", Command: fmt.Sprintf("kubectl get %s -A -o json | kubectl replace -f -", resource)}}})
		case identity && enc > 0:
			p.Report(analyze.Finding{Subject: "stored " + resource, Severity: report.Medium,
				Message:  fmt.Sprintf("identity is the first provider, and %d of %d %s are still encrypted: the keys must stay until they are rewritten", enc, clear+enc, resource),
				Evidence: []analyze.Evidence{analyze.See(set.DB.Ref(), fmt.Sprintf("%s: %d in clear, %d encrypted", t.Type, clear, enc)), analyze.Expect(c.Ref, c.order())}})
		}
	}
}
