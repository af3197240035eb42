package hav

import (
	"fmt"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV302", Name: "leader-election-off-or-flapping", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.Medium},
	Symptom:    true,
	Doc: analyze.Doc{
		Title: "Leader election of controller-manager or scheduler is off, or flaps",
		Why: "Without election two instances act at once: they create twice, delete what the other made and fight over status. Leases lost again and again mean that " +
			"the API or etcd stalls for longer than ten seconds.",
		Fix:   "Set --leader-elect=true in every manifest and in kubeadm-config. For flapping, cure the stalls: QRM105, QRM106.",
		Links: []string{"https://kubernetes.io/docs/concepts/architecture/leases/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "losses", Default: 3, Unit: "per hour"}},
	Needs:  []analyze.Need{staticpod.Manifests},
	Wants:  []analyze.Need{logs.OnNode},
	Run:    election,
})

func election(p *analyze.Pass) error {
	any := false
	for _, c := range []string{staticpod.ControllerManager, staticpod.Scheduler} {
		instances := 0
		var off []analyze.Evidence
		var lost []logs.At
		for _, n := range p.Nodes() {
			if m, err := staticpod.Manifests.Try(p, n); err == nil && m.Component(c) != nil {
				any = true
				instances++
				if f, ok := m.Component(c).Setting("leader-elect"); ok && f.Value == "false" {
					off = append(off, analyze.Context(f.Ref, f.Text()))
				}
			}
			if ln, err := logs.OnNode.Try(p, n); err == nil {
				lost = append(lost, ln.Hits(signature.Named(c), "C01", "C09")...)
			}
		}
		if len(off) > 0 && instances > 1 {
			off[0].Role = report.RoleSubject
			p.Report(analyze.Finding{Subject: c, Severity: report.Critical, Message: fmt.Sprintf("%s runs on %d nodes with leader election off on %d", c, instances, len(off)), Evidence: off})
		}
		logs.SortHits(lost)
		for i := range lost {
			j := i + int(p.Param("losses"))
			if j < len(lost) && !lost[i].Time.IsZero() && lost[j].Time.Sub(lost[i].Time) <= time.Hour {
				p.Report(analyze.Finding{Subject: c + " lease", Severity: report.Medium, Confidence: report.Probable,
					Message:  fmt.Sprintf("%s lost its lease %d times within an hour from %s", c, j-i+1, clock(lost[i].Time)),
					Evidence: []analyze.Evidence{lost[i].See(), analyze.Context(lost[j].Ref(), lost[j].Excerpt())}, ObservedAt: lost[i].Time})
				break
			}
		}
	}
	if !any {
		p.Unknown(bundle.KindManifests, nil, bundle.NotCollected, "no manifest of controller-manager or scheduler")
	}
	return nil
}
