package qrm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM104", Name: "etcd-members-share-a-failure-domain", Scope: analyze.PerCluster, Latent: true,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "A majority of etcd members shares one failure domain",
		Why: "Three members on three machines in one zone, rack or hypervisor survive the loss of a machine, not of what they share: losing the domain loses the quorum. " +
			"Labels are only what somebody wrote on the Nodes; without them nothing is claimed.",
		Fix:   "Spread the members over at least three domains, moving one at a time: add the new member, wait until it is healthy, then remove the old one.",
		Links: []string{"https://etcd.io/docs/v3.6/faq/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{quorum.Joined},
	Wants: []analyze.Need{quorum.Nodes},
	Run:   sharedDomain,
})

func sharedDomain(p *analyze.Pass) error {
	v, _ := quorum.Joined.In(p)
	nodes, ok := quorum.Nodes.On(p, nil)
	if !ok {
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "no Node objects: where the members run is not known")
		return nil
	}
	asked := false
	for _, c := range v.Clusters {
		if live(c) && len(c.Voters()) > 1 {
			asked = domains(p, v, c, nodes) || asked
		}
	}
	if !asked {
		if len(v.Clusters) > 0 && len(v.Clusters[0].Voters()) == 1 {
			return p.NotApplicable("one member only")
		}
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "the members' Nodes carry no topology label")
	}
	return nil
}

// A domain is one way in which machines can fall together.
type domain struct {
	what string // "zone"
	how  string // the field it is read from
	of   func(*quorum.NodeObject) string
}

var kinds = []domain{
	{"zone", "topology.kubernetes.io/zone=", func(n *quorum.NodeObject) string { return n.Zone }},
	{"zone", "spec.providerID names zone ", func(n *quorum.NodeObject) string {
		if n.Zone != "" {
			return ""
		}
		return n.CloudZone
	}},
}

// placeholder is the id of boards whose maker wrote none.
const placeholder = "03000200-0400-0500-0006-000700080009"

// machine is not asked of a cluster without topology data: different ids do not
// tell that the hosts below them differ.
var machine = domain{"machine", "status.nodeInfo.systemUUID=", func(n *quorum.NodeObject) string {
	if len(n.SystemUUID) < 8 || n.SystemUUID == placeholder || strings.Trim(n.SystemUUID, "0-") == "" || strings.Trim(n.SystemUUID, "f-") == "" {
		return ""
	}
	return n.SystemUUID
}}

// domains looks for one zone, and one machine, that holds too many voters.
func domains(p *analyze.Pass, v *quorum.View, c *quorum.Cluster, nodes *quorum.NodeObjects) (asked bool) {
	for _, k := range kinds {
		known, _ := shared(p, v, c, nodes, k)
		asked = asked || known
	}
	_, fired := shared(p, v, c, nodes, machine)
	return asked || fired
}

// shared groups the voters by a domain and reports the one that holds most, if
// the rest is no quorum. Members without a Node, or whose Node does not say, stand
// for themselves. known is whether any Node says.
func shared(p *analyze.Pass, v *quorum.View, c *quorum.Cluster, nodes *quorum.NodeObjects, k domain) (known, fired bool) {
	in := map[string][]*quorum.NodeObject{}
	all := map[string]bool{}
	for i := range nodes.List {
		if d := k.of(&nodes.List[i]); d != "" {
			all[d] = true
		}
	}
	for _, m := range c.Voters() {
		if n := nodes.Of(m); n != nil && k.of(n) != "" {
			in[k.of(n)] = append(in[k.of(n)], n)
		}
	}
	most := ""
	for _, d := range slices.Sorted(maps.Keys(in)) {
		if len(in[d]) > len(in[most]) {
			most = d
		}
	}
	s := c.Sum()
	n := len(in[most])
	left := s.Voters - n
	if n < 2 || left >= s.Quorum {
		return len(in) > 0, false
	}
	f := analyze.Finding{Subject: subject(v, c, k.what+" "+most), Severity: report.High, Confidence: report.Probable,
		Message: fmt.Sprintf("%d of %d voters are in %s %s: losing it leaves %d, quorum needs %d", n, s.Voters, k.what, most, left, s.Quorum)}
	switch {
	case k.what == machine.what:
		f.Confidence = report.Possible // virtual machines copied from one image can share it
	case len(all) == 1:
		f.Severity = report.Low
		f.Message += "; every Node is there, so the whole cluster depends on that zone, perhaps by design"
	case n < s.Voters:
		f.Severity = report.Medium
	}
	for _, o := range in[most] {
		f.Evidence = append(f.Evidence, analyze.Context(o.Ref, o.Name+": "+k.how+most))
	}
	f.Evidence[0].Role = report.RoleSubject
	p.Report(f)
	return true, true
}
