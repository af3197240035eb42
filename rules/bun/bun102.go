package bun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/identity"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "BUN102", Name: "clusters-mixed", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.Medium},
	Latent:     true,
	Evidence:   true,
	Doc: analyze.Doc{
		Title: "The inputs are of different clusters, or of different times",
		Why: "What holds between nodes (quorum, equal keys, equal versions) means nothing between clusters. The unique id of the namespace kube-system tells clusters " +
			"apart; it survives a restore, so nodes split by a bad restore still count as one cluster (QRM112). Without it, only a different etcd cluster together with " +
			"a different CA makes another cluster. Questions between nodes are not asked across clusters. Inputs taken far apart show different moments.",
		Fix:   "Analyze each cluster's inputs alone. Collect all nodes within a few minutes.",
		Links: []string{"https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#uids"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "spread", Default: 10, Unit: "minutes"}},
	Needs:  []analyze.Need{identity.OfSet},
	Run:    mixed,
})

func mixed(p *analyze.Pass) error {
	clusters, _ := identity.OfSet.In(p)
	var first, last *bundle.Node
	judged := 0
	for _, n := range p.All() {
		if n.CollectedAt.IsZero() {
			continue
		}
		if first == nil || n.CollectedAt.Before(first.CollectedAt) {
			first = n
		}
		if last == nil || n.CollectedAt.After(last.CollectedAt) {
			last = n
		}
	}
	for _, c := range clusters {
		for _, x := range c {
			if x.UID != "" || x.Etcd != "" && x.CA != "" {
				judged++
			}
		}
	}
	if len(p.Nodes()) < 2 && !clusters.Several() {
		return p.NotApplicable("one node was given")
	}
	if clusters.Several() {
		p.Report(severalClusters(clusters))
	}
	if first != nil && last != nil {
		if d := last.CollectedAt.Sub(first.CollectedAt); d > time.Duration(p.Param("spread"))*time.Minute {
			p.Report(analyze.Finding{Subject: "collection times", Severity: report.Medium,
				Message:  fmt.Sprintf("%s was collected %s after %s: states of the two are of different moments", last.Name, d.Round(time.Second), first.Name),
				Evidence: []analyze.Evidence{analyze.See(last.Ref("/coldplane/HEADER.json"), last.CollectedAt.UTC().Format(time.RFC3339)), analyze.Expect(first.Ref("/coldplane/HEADER.json"), first.CollectedAt.UTC().Format(time.RFC3339))}})
		}
	}
	if judged == 0 && first == nil {
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "no database with the namespace kube-system, no collection times")
	}
	return nil
}

// severalClusters tells the clusters apart in one finding.
func severalClusters(clusters identity.Clusters) analyze.Finding {
	var said []string
	var ev []analyze.Evidence
	for _, c := range clusters {
		var names []string
		by := ""
		for _, x := range c {
			switch {
			case x.UID != "":
				names = append(names, x.Node.Name)
				by = x.UID
				ev = append(ev, analyze.Context(x.UIDRef, "uid of namespace kube-system: "+x.UID))
			case x.Etcd != "" && x.CA != "":
				names = append(names, x.Node.Name)
				by = "etcd " + x.Etcd
				ev = append(ev, analyze.Context(x.EtcdRef, "cluster id "+x.Etcd), analyze.Context(x.CARef, "key of the CA: "+x.CA))
			}
		}
		slices.Sort(names)
		said = append(said, strings.Join(names, ", ")+" ("+by+")")
	}
	ev[0].Role = report.RoleSubject
	return analyze.Finding{Subject: "clusters", Severity: report.Critical, Evidence: ev,
		Message: fmt.Sprintf("the inputs are of %d clusters: %s; each was judged alone", len(clusters), strings.Join(said, "; "))}
}
