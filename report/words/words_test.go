package words_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"coldplane/report"
	"coldplane/report/words"
)

var keys = []*regexp.Regexp{
	regexp.MustCompile(`(?:say\.T|p\.head)\(("(?:[^"\\]|\\.)*")`),
	regexp.MustCompile(`\{\{-?\s*T ("(?:[^"\\]|\\.)*")`),
	regexp.MustCompile(`\(T ("(?:[^"\\]|\\.)*")`),
}

// sentences finds what the formats say: the literal keys in their code and
// templates, and the words that stand in a report's fields.
func sentences(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("..", func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(p, "_test.go") || !strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, ".tmpl") {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, re := range keys {
			for _, m := range re.FindAllStringSubmatch(string(b), -1) {
				s, err := strconv.Unquote(m[1])
				if err != nil {
					t.Errorf("%s: %s: %v", p, m[1], err)
				}
				out = append(out, s)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Severities() {
		out = append(out, string(s))
	}
	for _, s := range []string{report.StateCause, report.StateCandidates, report.StateHealthy, report.StateUndetermined} {
		out = append(out, report.Verdict{State: s}.Heading())
	}
	out = append(out, report.PlaneUp, report.PlaneDegraded, report.PlaneDown, report.Alive, report.Dead, report.LastSeen, report.NotKnown, report.Good, report.Bad,
		"held", "lost", "at-risk", string(report.Certain), string(report.Probable), string(report.Possible), "given", "collection", "inferred", "now",
		string(report.Pass), string(report.Fail), string(report.NotApplicable), string(report.Suppressed), string(report.Errored),
		report.RoleSubject, report.RoleExpected, report.RoleContext, "control plane", "user traffic", "not-collected", "absent", "redacted", "truncated", "damaged",
		"unreadable", "too-large", "refused", "not-regular", "spool-full", "unsupported", "undecided", "limit", "failed")
	slices.Sort(out)
	return slices.Compact(out)
}

// TestKoreanIsComplete lists sentences without a Korean word (-v; they are said
// in English) and fails on Korean words nobody asks for.
func TestKoreanIsComplete(t *testing.T) {
	ko, all := words.For("ko"), sentences(t)
	for _, s := range all {
		if strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' }) && !ko.Has(s) && s != "%d" {
			t.Logf("no Korean for %q", s)
		}
	}
	for _, s := range ko.Messages() {
		if !slices.Contains(all, s) {
			t.Errorf("nobody says %q", s)
		}
	}
}

// TestVerbs holds that a translation fills in the same arguments.
func TestVerbs(t *testing.T) {
	ko := words.For("ko")
	verb := regexp.MustCompile(`%(\[\d+\])?[a-z]`)
	for _, s := range ko.Messages() {
		want, got := verb.FindAllString(s, -1), verb.FindAllString(ko.T(s), -1)
		for i := range got {
			got[i] = regexp.MustCompile(`\[\d+\]`).ReplaceAllString(got[i], "")
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%q has %v, its translation %v", s, want, got)
		}
	}
	if got := ko.T("%d rules", 1200); got != "규칙 1,200개" {
		t.Errorf("%q", got)
	}
	if got := ko.T("not a sentence of ours"); got != "not a sentence of ours" {
		t.Errorf("fallback: %q", got)
	}
	if got := words.For("en").T("on %s", "cp1"); got != "on cp1" {
		t.Errorf("%q", got)
	}
}

// TestRuleFiles holds that every file of rules reads, and that a rule stands
// once, in the file of its family.
func TestRuleFiles(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("ko", "rules", "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("files of rules: %v %v", names, err)
	}
	seen := 0
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var rules map[string]map[string]struct{ Of, Text string }
		if err := yaml.UnmarshalStrict(b, &rules); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		seen += len(rules)
		for id := range rules {
			if !strings.EqualFold(id[:3]+".yaml", filepath.Base(name)) {
				t.Errorf("%s stands in %s", id, name)
			}
		}
	}
	if n := len(words.For("ko").RuleIDs()); n != seen {
		t.Errorf("%d rules in the files, %d used", seen, n)
	}
}

// TestStale holds that a translation made from another English text is not used.
func TestStale(t *testing.T) {
	ko := words.For("ko")
	for _, id := range ko.RuleIDs() {
		if got, ok := ko.Rule(id, "a title", "a reason", "a fix"); ok || got.Title != "a title" || got.Fix != "a fix" {
			t.Errorf("%s: a stale translation is used: %+v", id, got)
		}
	}
}

// TestSay holds that sentences of a finished report are recognised with what
// they name, and everything else is left alone.
func TestSay(t *testing.T) {
	ko := words.For("ko")
	for in, want := range map[string]string{
		"Compare the two.": "둘을 비교하십시오.",
		"Archive /var/lib/e%s off the node, so that nothing can start etcd on it.": "아무것도 그 위에서 etcd를 시작할 수 없도록 /var/lib/e%s 디렉터리를 노드 밖에 보관하십시오.",
		"Root cause: cp1: x. It explains 5 further findings of 8.":                 "근본 원인: cp1: x. 이것으로 다른 발견 5건(전체 8건 중)이 설명됩니다.",
		"Root cause: cp1: x.": "근본 원인: cp1: x.",
		"Root cause: ":        "Root cause: ",
		"a sentence nobody translated, with %s and 100 %d": "a sentence nobody translated, with %s and 100 %d",
		"": "",
	} {
		if got := ko.Say(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestSayings holds that a translated sentence has its gaps in the same order,
// and lists (-v) those that no longer stand in the code: they are said in
// English.
func TestSayings(t *testing.T) {
	var code strings.Builder
	for _, dir := range []string{"../../rules", "../../bundle", "../../analyze"} {
		err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(p) != ".go" || strings.HasSuffix(p, "_test.go") {
				return err
			}
			b, err := os.ReadFile(p)
			code.Write(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text := regexp.MustCompile(`" \+\s+"`).ReplaceAllString(code.String(), "")
	verb := regexp.MustCompile(`%[sd]`)
	for english, korean := range words.For("ko").Sayings() {
		if !slices.Equal(verb.FindAllString(english, -1), verb.FindAllString(korean, -1)) {
			t.Errorf("%q has other gaps than %q", english, korean)
		}
		for _, part := range regexp.MustCompile(`%[sd]|\. `).Split(english, -1) {
			if len(part) > 30 && !strings.Contains(text, part) {
				t.Logf("stale, nobody says %q", part)
			}
		}
	}
}
