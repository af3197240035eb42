package cap

import (
	"fmt"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP104", Name: "etcd-history-not-compacted", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "History not compacted",
		Why: "kube-apiserver compacts every five minutes and keeps five to ten minutes of history. When it does not, every update stays in the file, " +
			"and the file grows with the write rate instead of with the number of objects.",
		Fix: "Find out why the API servers do not compact (all down, NOSPACE, --etcd-compaction-interval=0, their log) and repair that; then compact once by hand. " +
			"Do not combine a very short etcd auto-compaction with clusters that watch much.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/maintenance/#history-compaction-v3-api-key-value-database"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "medium", Default: 15, Unit: "minutes", Source: "the API server keeps 5 to 10"},
		{Name: "high", Default: 60, Unit: "minutes", Source: "twelve intervals without a compaction"},
		{Name: "times", Default: 3, Unit: "times the live bytes", Source: "history outweighs what it is the history of"},
		{Name: "stuck", Default: 10, Unit: "minutes", Source: "a compaction takes seconds"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{etcddb.QuotaOf, staticpod.Manifests, logs.OnNode},
	Run:   notCompacted,
})

func notCompacted(p *analyze.Pass) error {
	s, q, ok := content(p)
	if !ok {
		return nil
	}
	st := s.Store
	if st.Lossy {
		p.Unknown(bundle.KindStore, s.DB.File.Node, bundle.Damaged, "a part of the database cannot be read")
		return nil
	}
	// A restore with --mark-compacted schedules a compaction that the first start
	// resumes: not a stuck one.
	restored := st.Scheduled > st.Finished && st.Scheduled >= st.MaxRev
	span, dated := s.History()
	history := st.RecBytes - st.LiveRec
	var sev report.Severity
	msg := ""
	minutes := span.Minutes()
	switch {
	case restored:
		return nil
	case dated && minutes > p.Param("high"):
		sev, msg = report.High, fmt.Sprintf("etcd keeps %s of history", span.Round(time.Minute))
	case history > floor(q) && float64(history) > p.Param("times")*float64(st.LiveRec):
		sev, msg = report.High, fmt.Sprintf("history holds %d bytes, %.1f times what is live", history, ratio(history, st.LiveRec))
	case st.Scheduled > st.Finished && stuckFor(s) > p.Param("stuck"):
		sev, msg = report.High, fmt.Sprintf("the compaction at revision %d was scheduled %.0f minutes before the last write and is not finished", st.Scheduled, stuckFor(s))
	case dated && minutes > p.Param("medium"):
		sev, msg = report.Medium, fmt.Sprintf("etcd keeps %s of history", span.Round(time.Minute))
	case !dated && st.Compacted() > 0:
		p.Unknown(bundle.KindStore, s.DB.File.Node, bundle.Undecided, "no stored timestamp dates the last compaction")
		return nil
	default:
		return nil
	}
	last := "it was never compacted"
	if c := st.Compacted(); c > 0 {
		last = fmt.Sprintf("last compaction at revision %d of %d", c, st.MaxRev)
	}
	f := analyze.Finding{
		Node: s.DB.File.Node, Subject: "compaction", Severity: sev,
		Message:  fmt.Sprintf("%s: %s; %d records kept for %d live keys", msg, last, st.Records, st.Live),
		Evidence: []analyze.Evidence{analyze.See(s.DB.AtKey("meta/finishedCompactRev", max(st.Finished, 0)), fmt.Sprintf("finished %d, scheduled %d, current %d", st.Finished, st.Scheduled, st.MaxRev))},
	}
	if v, ok := st.Latest("compact_rev_key"); ok {
		if r, err := st.Load(v, 1<<10); err == nil {
			f.Evidence = append(f.Evidence, analyze.Context(s.Ref(v), "the API servers' compact_rev_key: "+string(r.Value)))
		}
	} else {
		f.Evidence = append(f.Evidence, analyze.Context(s.DB.Ref(), "no compact_rev_key: no API server ever compacted"))
	}
	for _, n := range p.Nodes() {
		if m, err := staticpod.Manifests.Try(p, n); err == nil {
			if pod := m.Component(staticpod.APIServer); pod != nil {
				for _, fl := range pod.Flags {
					if fl.Name == "etcd-compaction-interval" {
						f.Evidence = append(f.Evidence, analyze.Context(fl.Ref, fl.Text()))
					}
				}
			}
		}
		if l, err := logs.OnNode.Try(p, n); err == nil {
			if hit, ok := l.Last(signature.APIServer, "A01"); ok {
				f.Evidence = append(f.Evidence, analyze.Context(hit.Ref(), hit.Excerpt()))
			}
		}
	}
	p.Report(f)
	return nil
}

// stuckFor is how many minutes before the last write the scheduled compaction's
// revision was written.
func stuckFor(s *objects.Set) float64 {
	last, ok := s.LastWrite()
	if !ok {
		return 0
	}
	t, ok := s.Clock().NotAfter(s.Store.Scheduled)
	if !ok {
		return 0
	}
	return last.Time.Sub(t).Minutes()
}
