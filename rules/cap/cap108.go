package cap

import (
	"fmt"
	"strconv"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/objects"
	"coldplane/analyze/staticpod"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP108", Name: "etcd-quota-misconfigured", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Latent:     true, Kubeadm: true,
	Doc: analyze.Doc{
		Title: "Quota misconfiguration",
		Why: "Each member applies its own quota and the first to cross it stops writes for all. Below the present size the alarm is certain; above 8 GiB " +
			"recovery and snapshots take long; without any quota the disk is the limit.",
		Fix:   "Set one value in etcd.local.extraArgs of kubeadm-config and in every etcd manifest, at most 8 GiB, with as much memory on the node.",
		Links: []string{"https://etcd.io/docs/v3.6/faq/#what-does-mvcc-database-space-exceeded-mean-and-how-do-i-address-it"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "overshoot", Default: 1.1, Unit: "ratio", Source: "a database that reached its quota is a little above it; more means the quota was lowered"},
		{Name: "max", Default: 8 * gib, Unit: "bytes", Source: "etcd storage/quota.go MaxQuotaBytes"},
		{Name: "default-full", Default: 1.5 * gib, Unit: "bytes", Source: "three quarters of the default quota"},
		{Name: "request", Default: 10 * mib, Unit: "bytes", Source: "etcd warns above 10 MiB"},
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: []analyze.Need{etcddb.QuotaOf, etcddb.OnNode, objects.OnNode},
	Run:   quotaWrong,
})

func quotaWrong(p *analyze.Pass) error {
	type at struct {
		name string
		q    *etcddb.Quota
	}
	var qs []at
	for _, n := range p.Nodes() {
		m, err := staticpod.Manifests.Try(p, n)
		if err != nil {
			continue
		}
		pod := m.Component(staticpod.Etcd)
		if pod == nil {
			continue
		}
		if fl, ok := pod.Setting("max-request-bytes"); ok {
			if v, err := strconv.ParseInt(fl.Value, 10, 64); err == nil && float64(v) > p.Param("request") {
				p.Report(analyze.Finding{Node: n, Subject: "max-request-bytes", Severity: report.Low,
					Message: fmt.Sprintf("etcd accepts requests of %d bytes, above the advised 10 MiB", v), Evidence: []analyze.Evidence{analyze.See(fl.Ref, fl.Text())}})
			}
		}
		q, err := etcddb.QuotaOf.Try(p, n)
		if err != nil {
			continue
		}
		qs = append(qs, at{n.Name, q})
		var msg string
		switch {
		case q.Off:
			msg = "the quota is switched off: etcd grows until the disk is full (CAP115)"
		case float64(q.Bytes) > p.Param("max"):
			msg = fmt.Sprintf("the quota is %d bytes, above the advised 8 GiB", q.Bytes)
		}
		if msg != "" {
			p.Report(analyze.Finding{Node: n, Subject: "quota", Severity: report.Medium, Message: msg, Evidence: []analyze.Evidence{analyze.See(q.Ref, q.Text)}})
		}
	}
	if len(qs) == 0 {
		return p.NotApplicable("no etcd manifest")
	}
	for _, x := range qs[1:] {
		if x.q.Bytes != qs[0].q.Bytes && !x.q.Assumed && !qs[0].q.Assumed {
			p.Report(analyze.Finding{Subject: "quota", Severity: report.High,
				Message:  fmt.Sprintf("the members' quotas differ: %s has %s, %s has %s", qs[0].name, qs[0].q, x.name, x.q),
				Evidence: []analyze.Evidence{analyze.See(qs[0].q.Ref, qs[0].q.Text), analyze.Expect(x.q.Ref, x.q.Text)}})
			break
		}
	}
	for _, m := range whole(p, members(p)) {
		if m.quota.Off || m.quota.Assumed || m.node.Name == "" || m.quota.Ref.IsZero() {
			continue
		}
		var sev report.Severity
		var msg string
		switch {
		case m.fill() > p.Param("overshoot"):
			sev, msg = report.High, fmt.Sprintf("the quota of %d bytes is below the database's %d: the next write raises NOSPACE", m.quota.Bytes, m.s.Pages.DBSize)
		case !m.quota.Set && float64(m.s.Pages.DBSize) > p.Param("default-full"):
			sev, msg = report.Medium, fmt.Sprintf("nobody chose a quota: the default of 2 GiB applies, and the database has %d bytes", m.s.Pages.DBSize)
		default:
			continue
		}
		p.Report(analyze.Finding{Node: m.node, Subject: "quota", Severity: sev, Message: msg,
			Evidence: []analyze.Evidence{analyze.See(m.quota.Ref, m.quota.Text), analyze.Expect(m.db.Ref(), m.sizes())}})
	}
	return nil
}
