package report_test

import (
	"testing"

	"coldplane/report"
)

// What lies in the input and could not be used comes before what is not in it,
// however many rules wanted that, and no place hides another.
func TestGapsUnusableFirst(t *testing.T) {
	missing := report.Gap{Evidence: "etcd-db", Reason: "not-collected"}
	locked := func(f string) report.Gap {
		return report.Gap{Evidence: "manifests", Node: "cp1", Reason: "unreadable", Detail: f + ": permission denied"}
	}
	r := &report.Report{Results: []report.Result{
		{Rule: "A", Outcome: report.Unknown, Gaps: []report.Gap{missing, locked("etcd.yaml")}},
		{Rule: "B", Outcome: report.Unknown, Gaps: []report.Gap{missing, locked("kube-scheduler.yaml")}},
		{Rule: "C", Outcome: report.Unknown, Gaps: []report.Gap{missing}},
	}}
	g := r.Gaps()
	if len(g) != 3 || g[0].Detail != "etcd.yaml: permission denied" || g[1].Detail != "kube-scheduler.yaml: permission denied" || g[2].Evidence != "etcd-db" || len(g[2].Rules) != 3 {
		t.Errorf("%+v", g)
	}
}
