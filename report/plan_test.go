package report

import "testing"

func TestAgainst(t *testing.T) {
	old := &Report{Findings: []Finding{{ID: "a", Rule: "CAP101"}, {ID: "b", Rule: "PKI101", Node: "cp1"}, {ID: "c", Rule: "STA101", Node: "cp1"}, {ID: "d", Rule: "DIR101", Node: "cp2"}}}
	now := &Report{
		Findings: []Finding{{ID: "a", Rule: "CAP101"}, {ID: "n", Rule: "QRM101"}},
		Results: []Result{{Rule: "PKI101", Subject: "cp1", Outcome: Pass}, {Rule: "STA101", Subject: "cp1", Outcome: Unknown},
			{Rule: "DIR101", Subject: "cp1", Outcome: Pass}},
	}
	b := now.Against(old)
	if len(b.New) != 1 || b.New[0] != "n" || b.Unchanged != 1 {
		t.Errorf("new %v, unchanged %d", b.New, b.Unchanged)
	}
	if len(b.Fixed) != 1 || b.Fixed[0].ID != "b" {
		t.Errorf("fixed %v", b.Fixed)
	}
	if len(b.Unanswered) != 2 || b.Unanswered[0].ID != "c" || b.Unanswered[1].ID != "d" {
		t.Errorf("unanswered %v", b.Unanswered)
	}
}
