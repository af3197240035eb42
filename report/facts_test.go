package report_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"coldplane/report"
)

func TestFactRoundTrip(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	quota := int64(2 << 30)
	want := []report.Store{{Path: "member/snap/db", Size: 100, Quota: &quota, LastWrite: &at, Alarms: []report.Alarm{{Member: "8e9e", Type: "NOSPACE"}}, Types: []report.StoreType{}}}
	r := &report.Report{Facts: map[string]any{report.FactStore: want, report.FactBanner: &report.Banner{Text: "x"}, report.FactMatrix: nil, report.FactQuorum: "three"}}
	got, ok := report.Fact[[]report.Store](r, report.FactStore)
	if d := cmp.Diff(want, got); !ok || d != "" {
		t.Errorf("direct (-want +got):\n%s", d)
	}
	if b, ok := report.Fact[report.Banner](r, report.FactBanner); !ok || b.Text != "x" {
		t.Errorf("pointer: %v %v", b, ok)
	}
	for _, key := range []string{report.FactMatrix, report.FactQuorum, report.FactMembers} {
		if _, ok := report.Fact[report.Quorum](r, key); ok {
			t.Errorf("%s: found in a report that has none", key)
		}
	}
	j, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	back := &report.Report{}
	if err := json.Unmarshal(j, back); err != nil {
		t.Fatal(err)
	}
	got, ok = report.Fact[[]report.Store](back, report.FactStore)
	if d := cmp.Diff(want, got); !ok || d != "" {
		t.Errorf("from JSON (-want +got):\n%s", d)
	}
}
