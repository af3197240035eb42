package qrm

import (
	"cmp"
	"fmt"
	"slices"

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

// domains groups the voters by zone. Members without a Node or a label stand
// for themselves.
func domains(p *analyze.Pass, v *quorum.View, c *quorum.Cluster, nodes *quorum.NodeObjects) (asked bool) {
	byZone := map[string][]*quorum.NodeObject{}
	var zones []string
	all := map[string]bool{}
	for _, n := range nodes.List {
		if n.Zone != "" {
			all[n.Zone] = true
		}
	}
	for _, m := range c.Voters() {
		n := nodes.Of(m)
		if n == nil || n.Zone == "" {
			continue
		}
		asked = true
		if byZone[n.Zone] == nil {
			zones = append(zones, n.Zone)
		}
		byZone[n.Zone] = append(byZone[n.Zone], n)
	}
	s := c.Sum()
	slices.SortFunc(zones, func(a, b string) int { return cmp.Or(cmp.Compare(len(byZone[b]), len(byZone[a])), cmp.Compare(a, b)) })
	for _, z := range zones {
		n := len(byZone[z])
		left := s.Voters - n
		if left >= s.Quorum {
			continue
		}
		f := analyze.Finding{Subject: subject(v, c, "zone "+z), Severity: report.High, Confidence: report.Probable,
			Message: fmt.Sprintf("%d of %d voters are in zone %s: losing it leaves %d, quorum needs %d", n, s.Voters, z, left, s.Quorum)}
		switch {
		case len(all) == 1:
			f.Severity = report.Medium
			f.Message += "; every Node is there, so the whole cluster depends on that zone"
		case n < s.Voters:
			f.Severity = report.Medium
		}
		for _, o := range byZone[z] {
			f.Evidence = append(f.Evidence, analyze.Context(o.Ref, o.Name+": topology.kubernetes.io/zone="+z))
		}
		f.Evidence[0].Role = report.RoleSubject
		p.Report(f)
		break
	}
	return asked
}
