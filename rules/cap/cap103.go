package cap

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/objects"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP103", Name: "etcd-fragmentation", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "Fragmentation: free pages dominate the file",
		Why: "Compaction frees pages inside the file and never shrinks it, and the quota counts the file. A database that is mostly free pages can raise " +
			"NOSPACE with almost nothing in it. In use is what the pages hold, counted page by page; etcd does not store its free list.",
		Fix: "Defragment one member at a time, the leader last, in a quiet hour, with a long command timeout; wait for endpoint status after each. Not while what filled " +
			"the database still writes. On etcd up to 3.5.5 stop the member and use etcdutl defrag: a crash during online defragmentation could make members differ.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/maintenance/#defragmentation"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "ratio", Default: 0.5, Unit: "ratio", Source: "etcd-mixin etcdDatabaseHighFragmentationRatio"},
		{Name: "floor", Default: 100 * mib, Unit: "bytes", Source: "etcd-mixin etcdDatabaseHighFragmentationRatio"},
		{Name: "quota", Default: 0.8, Unit: "ratio", Source: "etcd-diagnosis"},
		{Name: "free", Default: 1e9, Unit: "bytes", Source: "a defragmentation is worth it whatever the share"},
	},
	Needs: []analyze.Need{etcddb.OnNode},
	Wants: []analyze.Need{etcddb.QuotaOf, objects.OnNode},
	Run:   fragmentation,
})

func fragmentation(p *analyze.Pass) error {
	for _, m := range whole(p, members(p)) {
		used := ratio(m.s.Pages.InUse, m.s.Pages.DBSize)
		free := m.s.Pages.DBSize - m.s.Pages.InUse
		full := m.fill() >= p.Param("quota")
		var sev report.Severity
		switch {
		case used < p.Param("ratio") && full:
			sev = report.High
		case used < p.Param("ratio") && float64(m.s.Pages.InUse) > p.Param("floor"):
			sev = report.Medium
		case float64(free) > p.Param("free"):
			sev = report.Low
		default:
			continue
		}
		p.Report(analyze.Finding{
			Node: m.node, Subject: m.name(), Severity: sev, Evidence: []analyze.Evidence{analyze.See(m.db.Ref(), m.sizes())},
			Message: fmt.Sprintf("only %.0f %% of the database is in use: %d of %d bytes, %d free pages of %d; a defragmentation would give back about %s",
				100*used, m.s.Pages.InUse, m.s.Pages.DBSize, m.s.Pages.Free, m.s.Pages.HWM, size(free)),
		})
	}
	return nil
}
