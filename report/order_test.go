package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"coldplane/report"
)

func TestGapGroups(t *testing.T) {
	gap := func(node, detail string) report.Gap {
		return report.Gap{Evidence: "host", Node: node, Reason: "not-collected", Detail: detail}
	}
	r := &report.Report{Results: []report.Result{
		{Rule: "NOD101", Outcome: report.Unknown, Gaps: []report.Gap{gap("cp2", ""), gap("cp1", ""), gap("cp3", "other")}},
		{Rule: "NOD102", Outcome: report.Unknown, Gaps: []report.Gap{gap("cp1", ""), gap("cp2", "")}},
		{Rule: "NOD103", Outcome: report.NotApplicable, Gaps: []report.Gap{gap("cp9", "")}},
		{Rule: "CAP114", Outcome: report.Unknown, Gaps: []report.Gap{{Evidence: "etcd-db", Reason: "undecided"}}},
	}}
	type row struct {
		evidence     string
		nodes, rules []string
	}
	var got []row
	for _, g := range r.GapGroups() {
		got = append(got, row{g.Evidence, g.Nodes, g.Rules})
	}
	want := []row{{"host", []string{"cp1", "cp2"}, []string{"NOD101", "NOD102"}}, {"etcd-db", nil, []string{"CAP114"}}, {"host", []string{"cp3"}, []string{"NOD101"}}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(row{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
