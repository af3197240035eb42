package main

import (
	"slices"
	"strings"
	"testing"

	"coldplane/report/words"
	"coldplane/rules"
)

// TestKorean lists rules whose Korean texts are missing or stale, with the mark
// to write beside a new translation (go test -v -run TestKorean ./cmd/coldplane).
// Missing ones are no failure, the report says it in English; a translation of
// a rule that is not there is.
func TestKorean(t *testing.T) {
	ko := words.For("ko")
	var ids []string
	for _, r := range rules.All() {
		ids = append(ids, r.ID)
		x, _ := ko.Rule(r.ID, r.Doc.Title, r.Doc.Why, r.Doc.Fix)
		for _, p := range []struct{ name, english, korean string }{{"title", r.Doc.Title, x.Title}, {"why", r.Doc.Why, x.Why}, {"fix", r.Doc.Fix, x.Fix}} {
			if p.english == p.korean {
				t.Logf("%s %s: no Korean, or stale; of: %q", r.ID, p.name, words.Sum(p.english))
			}
		}
	}
	for _, id := range ko.RuleIDs() {
		if !slices.Contains(ids, id) {
			t.Errorf("Korean for %s, which is no rule", id)
		}
	}
}

// TestKoreanReport holds that --lang ko gives a Korean report, text and HTML.
func TestKoreanReport(t *testing.T) {
	args := []string{"analyze", sampleDir, "--as-of", "2026-05-12T09:30:00Z", "--fail-on", "none", "--lang", "ko"}
	for _, format := range []string{"text", "html", "markdown"} {
		code, out, errs := command(t, append(args, "-o", format)...)
		if code != exitOK || errs != "" {
			t.Fatalf("%s: exit %d: %s", format, code, errs)
		}
		for _, want := range []string{"컨트롤 플레인", "이 순서대로 할 일", "하지 말 것", "판단하지 못한 것", "치명"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s lacks %q", format, want)
			}
		}
		if format == "html" && !strings.Contains(out, `<html lang="ko">`) {
			t.Error("the page does not say that it is Korean")
		}
	}
}
