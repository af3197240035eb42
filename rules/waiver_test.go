package rules

import (
	"strings"
	"testing"
	"time"

	"coldplane/report"
)

// TestExpiredWaiver: a waiver counts up to its day; from then on the finding is
// open again and says why it was not seen before.
func TestExpiredWaiver(t *testing.T) {
	day := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	ws := []Waiver{{Rule: "HAV101", Reason: "one node on purpose", Expires: day}}
	fs := []report.Finding{{Rule: "HAV101", Message: "no endpoint"}, {Rule: "CAP102", Message: "nearly full"}}
	for _, c := range []struct {
		at   time.Time
		open int
	}{{day.Add(-time.Hour), 1}, {day, 2}, {day.Add(240 * time.Hour), 2}} {
		open, waived, _ := waive(fs, nil, ws, c.at)
		if len(open) != c.open || len(open)+len(waived) != 2 {
			t.Fatalf("at %s: %d open, %d waived", c.at, len(open), len(waived))
		}
		for _, f := range open {
			says := strings.HasSuffix(f.Message, "(its waiver expired on 2026-06-01: one node on purpose)")
			if says != (f.Rule == "HAV101") {
				t.Errorf("at %s: %s says %q", c.at, f.Rule, f.Message)
			}
		}
	}
}
