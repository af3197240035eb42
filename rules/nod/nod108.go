package nod

import (
	"fmt"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD108", Name: "control-plane-oom-kill", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "The kernel killed a control-plane process for lack of memory",
		Why:   "A killed API server or etcd takes its clients with it: they reconnect together and list everything anew, which often brings the next kill. Restarts then travel from node to node.",
		Fix:   "Find what makes the process grow: huge lists (CAP105), too many watches, one client without limits (ADM403). Cap that client, then give the node more memory.",
		Links: []string{"https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/#node-out-of-memory-behavior"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "burst", Default: 3, Unit: "kills per hour"}},
	Wants:  []analyze.Need{logs.OnNode, cri.OnNode},
	Run:    oomKill,
})

func oomKill(p *analyze.Pass) error {
	n, lerr := logs.OnNode.Try(p, p.Node())
	v, cerr := cri.OnNode.Try(p, p.Node())
	if cerr != nil && (lerr != nil || !n.Has(signature.Kernel)) {
		p.Unknown(bundle.KindJournal, p.Node(), bundle.NotCollected, "the kernel's log and the containers' exit reasons")
		return nil
	}
	watched := append(staticpod.Components(), "kubelet", "containerd")
	for _, name := range watched {
		var hits []logs.At
		if lerr == nil {
			seen := map[string]bool{}
			for _, at := range n.Hits(signature.Kernel, "X01", "X02") {
				comm := at.Value("comm") // the kernel keeps 15 bytes of a name
				if comm == "" || comm != name[:min(len(name), 15)] || seen[at.Value("pid")] {
					continue
				}
				seen[at.Value("pid")] = true
				hits = append(hits, at)
			}
		}
		var ev []analyze.Evidence
		var first time.Time
		kills := len(hits)
		if kills > 0 {
			ev, first = seeAll(hits, 3), hits[0].Time
		}
		if cerr == nil {
			ended := 0
			for _, c := range v.Of(name) {
				if c.Reason == "OOMKilled" {
					ended++
					ev = append(ev, analyze.Context(c.Where(), fmt.Sprintf("attempt %d OOMKilled", c.Attempt)))
					if first.IsZero() {
						first = c.FinishedAt
					}
				}
			}
			kills = max(kills, ended)
		}
		if kills == 0 {
			continue
		}
		ev[0].Role = report.RoleSubject
		sev := report.High
		for i := range hits {
			if j := i + int(p.Param("burst")); j < len(hits) && hits[j].Time.Sub(hits[i].Time) <= time.Hour {
				sev = report.Critical
			}
		}
		rss := ""
		if kills > 0 && len(hits) > 0 && hits[len(hits)-1].Value("rss") != "" {
			rss = ", with " + strings.TrimSpace(hits[len(hits)-1].Value("rss")) + " resident"
		}
		p.Report(analyze.Finding{Subject: name, Severity: sev, Message: fmt.Sprintf("%s was killed for lack of memory %d times%s, first%s", name, kills, rss, when(first)),
			Evidence: ev, ObservedAt: first})
	}
	return nil
}
