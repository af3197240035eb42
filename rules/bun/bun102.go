package bun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "BUN102", Name: "clusters-mixed", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The inputs are of different clusters, or of different times",
		Why: "What holds between nodes (quorum, equal keys, equal versions) means nothing between clusters. The unique id of the namespace kube-system tells clusters " +
			"apart; it survives a restore, so nodes split by a bad restore still count as one cluster (QRM112). Inputs taken far apart show different moments.",
		Fix:   "Analyze each cluster's inputs alone. Collect all nodes within a few minutes.",
		Links: []string{"https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#uids"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "spread", Default: 10, Unit: "minutes"}},
	Wants:  []analyze.Need{objects.OnNode},
	Run:    mixed,
})

func mixed(p *analyze.Pass) error {
	type identity struct {
		node string
		ref  bundle.Ref
	}
	byUID := map[string][]identity{}
	var uids []string
	var first, last *bundle.Node
	for _, n := range p.All() {
		if !n.CollectedAt.IsZero() {
			if first == nil || n.CollectedAt.Before(first.CollectedAt) {
				first = n
			}
			if last == nil || n.CollectedAt.After(last.CollectedAt) {
				last = n
			}
		}
		set, err := objects.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		ns, err := set.Namespace("kube-system")
		if err != nil || ns.Value.UID == "" {
			continue
		}
		uid := string(ns.Value.UID)
		if byUID[uid] == nil {
			uids = append(uids, uid)
		}
		byUID[uid] = append(byUID[uid], identity{n.Name, ns.Ref})
	}
	if len(p.Nodes()) < 2 && len(uids) < 2 {
		return p.NotApplicable("one node was given")
	}
	known := 0
	if len(uids) > 1 {
		var said []string
		var ev []analyze.Evidence
		for _, u := range uids {
			var names []string
			for _, i := range byUID[u] {
				names = append(names, i.node)
				ev = append(ev, analyze.Context(i.ref, "uid: "+u))
			}
			slices.Sort(names)
			said = append(said, strings.Join(names, ", ")+" ("+u+")")
		}
		ev[0].Role = report.RoleSubject
		p.Report(analyze.Finding{Subject: "clusters", Severity: report.Critical, Message: fmt.Sprintf("the inputs are of %d clusters: %s; what is said between their nodes means nothing", len(uids), strings.Join(said, "; ")), Evidence: ev})
		known++
	}
	if first != nil && last != nil {
		known++
		if d := last.CollectedAt.Sub(first.CollectedAt); d > time.Duration(p.Param("spread"))*time.Minute {
			p.Report(analyze.Finding{Subject: "collection times", Severity: report.Medium,
				Message:  fmt.Sprintf("%s was collected %s after %s: states of the two are of different moments", last.Name, d.Round(time.Second), first.Name),
				Evidence: []analyze.Evidence{analyze.See(last.Ref("/coldplane/HEADER.json"), last.CollectedAt.UTC().Format(time.RFC3339)), analyze.Expect(first.Ref("/coldplane/HEADER.json"), first.CollectedAt.UTC().Format(time.RFC3339))}})
		}
	}
	if known == 0 && len(uids) == 0 {
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "no database with the namespace kube-system, no collection times")
	}
	return nil
}
