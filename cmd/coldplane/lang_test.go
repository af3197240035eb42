package main

import (
	"slices"
	"strings"
	"testing"

	"coldplane/report/words"
	"coldplane/rules"
)

// TestKorean lists rules whose Korean texts are missing or stale, with the mark
// to write beside a new translation (go test -v -run 'TestKorean$' ./cmd/coldplane).
// Neither is a failure, the report says the text in English; a translation of
// a rule that is not there is.
func TestKorean(t *testing.T) {
	ko := words.For("ko")
	var ids []string
	texts, said := 0, 0
	for _, r := range rules.All() {
		ids = append(ids, r.ID)
		have := ko.Marks(r.ID)
		for i, english := range []string{r.Doc.Title, r.Doc.Why, r.Doc.Fix} {
			texts++
			name, mark := []string{"title", "why", "fix"}[i], words.Sum(english)
			switch have[i] {
			case mark:
				said++
			case "":
				t.Logf("%s %s: no Korean; of: %q", r.ID, name, mark)
			default:
				t.Logf("%s %s: the Korean is of an older English text; of: %q", r.ID, name, mark)
			}
		}
	}
	t.Logf("%d of %d texts of %d rules are in Korean", said, texts, len(ids))
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
