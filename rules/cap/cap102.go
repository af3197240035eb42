package cap

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/objects"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP102", Name: "etcd-near-quota", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "Database close to its quota",
		Why: "etcd compares the high water mark of its file, free pages included, with the quota. The first write that would cross it raises the NOSPACE alarm " +
			"on every member, and the cluster stops accepting writes.",
		Fix:   "With less than half in use: compact and defragment, one member at a time. Otherwise remove what fills it (CAP105) first; raise the quota last, to at most 8 GiB, in kubeadm-config and every manifest.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/maintenance/#space-quota"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "critical", Default: 0.95, Unit: "ratio", Source: "etcd-mixin etcdDatabaseQuotaLowSpace"},
		{Name: "high", Default: 0.90, Unit: "ratio", Source: "between the two"},
		{Name: "medium", Default: 0.80, Unit: "ratio", Source: "etcd-diagnosis"},
	},
	Needs: []analyze.Need{etcddb.OnNode},
	Wants: []analyze.Need{etcddb.QuotaOf, objects.OnNode},
	Run:   nearQuota,
})

func nearQuota(p *analyze.Pass) error {
	ms := whole(p, members(p))
	off := 0
	for _, m := range ms {
		if m.quota.Off {
			off++
			continue
		}
		fill := m.fill()
		var sev report.Severity
		switch {
		case fill >= p.Param("critical"):
			sev = report.Critical
		case fill >= p.Param("high"):
			sev = report.High
		case fill >= p.Param("medium"):
			sev = report.Medium
		default:
			continue
		}
		f := analyze.Finding{
			Node: m.node, Subject: m.name(), Severity: sev, Evidence: m.evidence(),
			Message: fmt.Sprintf("the database is at %.0f %% of its quota: %d of %s; %d bytes in use (%.0f %%)", 100*fill, m.s.Pages.DBSize, m.quota,
				m.s.Pages.InUse, 100*ratio(m.s.Pages.InUse, m.s.Pages.DBSize)),
		}
		if m.quota.Assumed {
			f.Confidence = report.Probable
		}
		if 2*m.s.Pages.InUse < m.s.Pages.DBSize {
			f.Fix = []report.Step{
				{Text: "Most of the file is free pages: compact, then defragment one member at a time, the leader last.", Command: "etcdctl --command-timeout=10m defrag"},
				{Text: "Compare the size again before touching the quota."},
			}
		} else {
			f.Fix = nospaceFix("")
		}
		p.Report(f)
	}
	if len(ms) > 0 && off == len(ms) {
		return p.NotApplicable("the quota is switched off (CAP108, CAP115)")
	}
	return nil
}
