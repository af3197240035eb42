package hav

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/quorum"
	"coldplane/analyze/running"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV402", Name: "control-planes-and-etcd-members-disagree", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High},
	Doc: analyze.Doc{
		Title: "Control-plane Nodes and etcd members are not the same machines",
		Why: "kubeadm runs one etcd member on every control-plane node. A control-plane Node without a member joined only half way; a member without such a Node was left behind when its machine was removed, " +
			"and counts in the quorum all the same.",
		Fix:   "First look whether the other members are healthy and have quorum without this one. Then join a node that joined half way anew, after kubeadm reset on it; remove a member that was left behind by its id (etcdctl member remove).",
		Links: []string{"https://github.com/kubernetes/kubeadm/issues/3269"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{quorum.Joined, quorum.Nodes},
	Wants: []analyze.Need{running.Config},
	Run:   membersAndNodes,
})

func membersAndNodes(p *analyze.Pass) error {
	for _, n := range p.All() {
		if cfg, err := running.Config.Try(p, n); err == nil && cfg.External() {
			return p.NotApplicable("kubeadm-config names an external etcd")
		}
	}
	v, _ := quorum.Joined.In(p)
	nodes, _ := quorum.Nodes.In(p)
	cps := nodes.ControlPlanes()
	if len(cps) == 0 {
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "no Node is labelled as control plane")
		return nil
	}
	for _, c := range v.Clusters {
		if len(c.Sources) == 0 || !slices.ContainsFunc(c.Sources, func(s *quorum.Source) bool { return !s.Snapshot }) && len(v.Clusters) > 1 {
			continue
		}
		stacked := false
		var without, extra []string
		var evidence []analyze.Evidence
		for _, n := range cps {
			m := memberOn(c, n)
			switch {
			case m != nil:
				stacked = true
			default:
				without = append(without, n.Name)
				evidence = append(evidence, analyze.Context(n.Ref, "Node "+n.Name+", control plane, no member"))
			}
		}
		for _, m := range c.Members {
			if m.Ghost || m.Learner || slices.ContainsFunc(cps, func(n quorum.NodeObject) bool { return memberOn(c, n) == m }) {
				continue
			}
			extra = append(extra, m.Label())
			if len(m.Claims) > 0 {
				evidence = append(evidence, analyze.Context(m.Claims[0].Ref, m.Claims[0].Text))
			}
		}
		if !stacked || len(without)+len(extra) == 0 || len(evidence) == 0 {
			continue
		}
		var parts []string
		if len(without) > 0 {
			parts = append(parts, "control-plane Nodes without a member: "+strings.Join(without, ", "))
		}
		if len(extra) > 0 {
			parts = append(parts, "members without a control-plane Node: "+strings.Join(extra, ", "))
		}
		evidence[0].Role = report.RoleSubject
		p.Report(analyze.Finding{Subject: "control planes and members", Severity: report.High, Confidence: report.Probable,
			Message:  fmt.Sprintf("%s, %s; %s", number(len(cps), "control-plane Node"), number(len(c.Voters()), "voter"), strings.Join(parts, "; ")),
			Evidence: evidence})
	}
	return nil
}

// number counts things in words: "1 voter", "3 voters".
func number(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// memberOn finds the member of a Node, by name or address.
func memberOn(c *quorum.Cluster, n quorum.NodeObject) *quorum.Member {
	for _, m := range c.Members {
		if m.Ghost {
			continue
		}
		if m.Name == n.Name || slices.ContainsFunc(m.PeerURLs, func(u string) bool { return slices.Contains(n.Addresses, quorum.Host(u)) }) {
			return m
		}
	}
	return nil
}
