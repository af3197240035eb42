package cap

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/objects"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP111", Name: "custom-resource-flood", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "Custom-resource flood",
		Why:   "A controller that makes objects and does not clean them up fills etcd, and every list of the type grows with it until controllers and the API server run out of memory.",
		Fix:   "Repair the controller's clean-up first; then delete by label, compact and defragment.",
		Links: []string{"https://github.com/kyverno/kyverno/issues/8974"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "objects", Default: 50000, Unit: "objects", Source: "more than a large cluster has pods"},
		{Name: "pods", Default: 2, Unit: "times the pods", Source: "types with one object per pod scale with pods"},
		{Name: "quota", Default: 0.8, Unit: "ratio", Source: "CAP102"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{etcddb.QuotaOf},
	Run:   flood,
})

func flood(p *analyze.Pass) error {
	s, q, ok := content(p)
	if !ok {
		return nil
	}
	st := s.Store
	full := !q.Off && float64(st.Pages.DBSize) >= p.Param("quota")*float64(q.Bytes)
	var pods int64
	for _, t := range st.Types {
		if t.Type == "pods" {
			pods = t.Live
		}
	}
	for _, t := range st.Types {
		if !isCustom(t.Type) || float64(t.Live) <= p.Param("objects") || float64(t.Live) <= p.Param("pods")*float64(pods) {
			continue
		}
		sev := report.Medium
		if full {
			sev = report.High
		}
		p.Report(analyze.Finding{
			Node: s.DB.File.Node, Subject: t.Type, Severity: sev,
			Message:  fmt.Sprintf("%d objects of %s (%s, %.0f %% of live bytes) against %d pods", t.Live, t.Type, size(t.LiveRec), 100*ratio(t.LiveRec, st.LiveRec), pods),
			Evidence: []analyze.Evidence{analyze.See(keyRef(s, t.Largest), row(t))},
		})
	}
	return nil
}
