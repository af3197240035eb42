package rules

import (
	"strings"
	"testing"

	"coldplane/analyze"
	"coldplane/report"
)

// TestOpenQuestions: missing evidence names the grave questions it leaves open on
// its node, and weighs only before an upgrade.
func TestOpenQuestions(t *testing.T) {
	rules := []*analyze.Rule{{ID: "QRM116", Severities: []report.Severity{report.Critical}}, {ID: "CAP110", Severities: []report.Severity{report.Low}},
		{ID: "BUN102", Severities: []report.Severity{report.Critical}, Evidence: true}}
	results := []report.Result{{Rule: "QRM116", Subject: "cp1", Outcome: report.Unknown}, {Rule: "CAP110", Subject: "cp1", Outcome: report.Unknown},
		{Rule: "BUN102", Subject: "cp1", Outcome: report.Unknown}, {Rule: "QRM116", Subject: "cp2", Outcome: report.Pass}}
	for _, target := range []string{"", "v1.37.2"} {
		fs := []report.Finding{{Rule: "BUN101", Node: "cp1", Severity: report.Info, Message: "m"}, {Rule: "BUN101", Node: "cp2", Severity: report.Info, Message: "m"}}
		openQuestions(fs, results, rules, target)
		want := report.Info
		if target != "" {
			want = report.Medium
		}
		if fs[0].Severity != want || !strings.HasSuffix(fs[0].Message, "; open because of it: QRM116") {
			t.Errorf("target %q: %s %q", target, fs[0].Severity, fs[0].Message)
		}
		if fs[1].Severity != report.Info || fs[1].Message != "m" {
			t.Errorf("target %q: nothing is open on cp2, but %s %q", target, fs[1].Severity, fs[1].Message)
		}
	}
}
