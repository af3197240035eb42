package analyze_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"coldplane/analyze"
	"coldplane/bundle"
	"coldplane/report"
)

// twoNodes is a set of cp1, which has the file /etc/kubernetes/a, and cp2,
// which has not.
func twoNodes(t *testing.T) *bundle.Set {
	t.Helper()
	dir := t.TempDir()
	for _, f := range []string{"nodes/cp1/etc/kubernetes/a", "nodes/cp1/etc/kubernetes/b", "nodes/cp2/etc/kubernetes/b"} {
		p := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := bundle.Open(t.Context(), []string{dir}, bundle.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

var doc = analyze.Doc{Title: "t", Why: "w", Fix: "f", Since: "v0"}

func rule(id string, needs []analyze.Need, run func(*analyze.Pass) error) *analyze.Rule {
	return &analyze.Rule{ID: id, Name: "test-rule-" + strings.ToLower(id), Severities: []report.Severity{report.High}, Doc: doc, Needs: needs, Run: run}
}

func fileFact(name, path string, calls *atomic.Int32) *analyze.Fact[*bundle.File] {
	return &analyze.Fact[*bundle.File]{Name: name, Kinds: []bundle.Kind{bundle.KindFiles}, Compute: func(c *analyze.Ctx) (*bundle.File, error) {
		calls.Add(1)
		return c.Node().Stat(path)
	}}
}

func outcomes(rs []report.Result) map[string]report.Outcome {
	m := map[string]report.Outcome{}
	for _, r := range rs {
		m[r.Rule+" "+r.Subject] = r.Outcome
	}
	return m
}

func TestMissingEvidenceIsUnknownAndFactsAreComputedOnce(t *testing.T) {
	var calls atomic.Int32
	a := fileFact("a", "/etc/kubernetes/a", &calls)
	ran := 0
	r1 := rule("TST101", []analyze.Need{a}, func(p *analyze.Pass) error {
		ran++
		f, ok := a.In(p)
		if !ok {
			t.Error("a need is not there inside Run")
		}
		p.Report(analyze.Finding{Subject: "s", Severity: report.High, Message: "m", Evidence: []analyze.Evidence{analyze.See(f.Ref(), "")}})
		return nil
	})
	r2 := rule("TST102", []analyze.Need{a}, func(p *analyze.Pass) error { return nil })
	e := analyze.New(t.Context(), twoNodes(t), analyze.Options{Jobs: 1})
	fs, rs, err := e.Evaluate([]*analyze.Rule{r1, r2})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]report.Outcome{"TST101 cp1": report.Fail, "TST101 cp2": report.Unknown, "TST102 cp1": report.Pass, "TST102 cp2": report.Unknown}
	for k, v := range want {
		if got := outcomes(rs)[k]; got != v {
			t.Errorf("%s is %s, want %s", k, got, v)
		}
	}
	if len(fs) != 1 || ran != 1 || calls.Load() != 2 {
		t.Errorf("%d findings, Run called %d times, fact computed %d times", len(fs), ran, calls.Load())
	}
	for _, r := range rs {
		if r.Outcome == report.Unknown && (len(r.Gaps) != 1 || r.Gaps[0].Reason != string(bundle.Absent) || r.Gaps[0].Evidence != string(bundle.KindFiles) || r.Gaps[0].Node != "cp2") {
			t.Errorf("gap of %s: %v", r.Rule, r.Gaps)
		}
	}
}

func TestPanicsStayInside(t *testing.T) {
	bad := &analyze.Fact[int]{Name: "bad", Compute: func(*analyze.Ctx) (int, error) { panic("boom") }}
	defects := 0
	e := analyze.New(t.Context(), twoNodes(t), analyze.Options{Jobs: 1, Defect: func(string, []byte) { defects++ }})
	noEvidence := rule("TST203", nil, func(p *analyze.Pass) error {
		p.Report(analyze.Finding{Severity: report.High, Message: "m"})
		return nil
	})
	undeclared := rule("TST204", nil, func(p *analyze.Pass) error { bad.In(p); return nil })
	severity := rule("TST205", nil, func(p *analyze.Pass) error {
		p.Report(analyze.Finding{Severity: report.Low, Message: "m", Evidence: []analyze.Evidence{analyze.See(p.Node().Ref("/x"), "")}})
		return nil
	})
	_, rs, err := e.Evaluate([]*analyze.Rule{
		rule("TST201", []analyze.Need{bad}, func(*analyze.Pass) error { return nil }),
		rule("TST202", nil, func(*analyze.Pass) error { var p *int; *p = 1; return nil }),
		noEvidence, undeclared, severity,
		rule("TST206", nil, func(*analyze.Pass) error { return errors.New("disk full") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	o := outcomes(rs)
	if o["TST201 cp1"] != report.Unknown {
		t.Errorf("a panicking fact gives %s", o["TST201 cp1"])
	}
	for _, id := range []string{"TST202", "TST203", "TST204", "TST205", "TST206"} {
		if o[id+" cp1"] != report.Errored {
			t.Errorf("%s gives %s, want error", id, o[id+" cp1"])
		}
	}
	if defects == 0 {
		t.Error("nobody was told of the panics")
	}
}

func TestClusterRuleNeedsOneNode(t *testing.T) {
	var calls atomic.Int32
	a, none := fileFact("a", "/etc/kubernetes/a", &calls), fileFact("none", "/etc/kubernetes/none", &calls)
	one := rule("TST301", []analyze.Need{a}, func(p *analyze.Pass) error {
		n := 0
		for _, node := range p.Nodes() {
			if _, ok := a.On(p, node); ok {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the fact is there on %d nodes", n)
		}
		return nil
	})
	zero := rule("TST302", []analyze.Need{none}, func(*analyze.Pass) error { t.Error("called without its need"); return nil })
	one.Scope, zero.Scope = analyze.PerCluster, analyze.PerCluster
	e := analyze.New(t.Context(), twoNodes(t), analyze.Options{})
	_, rs, err := e.Evaluate([]*analyze.Rule{one, zero})
	if err != nil {
		t.Fatal(err)
	}
	o := outcomes(rs)
	if o["TST301 cluster"] != report.Pass || o["TST302 cluster"] != report.Unknown {
		t.Errorf("%v", o)
	}
	if len(rs[0].Gaps) != 1 || rs[0].Gaps[0].Node != "cp2" {
		t.Errorf("the node without the fact must be a gap: %v", rs[0].Gaps)
	}
}

func TestAsOf(t *testing.T) {
	s := twoNodes(t)
	given := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	if a := analyze.New(t.Context(), s, analyze.Options{AsOf: given}).AsOf(nil); a.Source != "given" || !a.Time.Equal(given) {
		t.Errorf("%v", a)
	}
	if a := analyze.New(t.Context(), s, analyze.Options{Now: given}).AsOf(nil); !a.Time.IsZero() || a.Source != "" {
		t.Errorf("without any evidence of time: %v", a)
	}
	w := func(c *analyze.Ctx) (time.Time, string) {
		if c.Node().Name == "cp2" {
			return given, "a log"
		}
		return time.Time{}, ""
	}
	e := analyze.New(t.Context(), s, analyze.Options{Witnesses: []analyze.Witness{w}})
	if a := e.AsOf(nil); a.Source != "inferred" || !a.Time.Equal(given) || a.Detail != "a log" {
		t.Errorf("%v", a)
	}
	s.Nodes[0].CollectedAt = given.Add(time.Hour)
	e = analyze.New(t.Context(), s, analyze.Options{Witnesses: []analyze.Witness{w}})
	if a := e.AsOf(s.Nodes[0]); a.Source != "collection" {
		t.Errorf("%v", a)
	}
}

func TestValidate(t *testing.T) {
	ok := func() *analyze.Rule { return rule("TST101", nil, func(*analyze.Pass) error { return nil }) }
	if err := analyze.Validate([]*analyze.Rule{ok()}); err != nil {
		t.Fatal(err)
	}
	x, y := &analyze.Fact[int]{Name: "x"}, &analyze.Fact[int]{Name: "y"}
	x.Needs, y.Needs = []analyze.Need{y}, []analyze.Need{x}
	for name, change := range map[string]func(*analyze.Rule){
		"id":           func(r *analyze.Rule) { r.ID = "Tst1" },
		"name":         func(r *analyze.Rule) { r.Name = "Bad Name" },
		"undocumented": func(r *analyze.Rule) { r.Doc.Why = "" },
		"severity":     func(r *analyze.Rule) { r.Severities = nil },
		"run":          func(r *analyze.Rule) { r.Run = nil },
		"unit":         func(r *analyze.Rule) { r.Params = []analyze.Param{{Name: "a"}} },
		"cycle":        func(r *analyze.Rule) { r.Needs = []analyze.Need{x} },
		"two facts": func(r *analyze.Rule) {
			r.Needs = []analyze.Need{&analyze.Fact[int]{Name: "z"}}
			r.Wants = []analyze.Need{&analyze.Fact[int]{Name: "z"}}
		},
		"no fact name": func(r *analyze.Rule) { r.Needs = []analyze.Need{&analyze.Fact[int]{}} },
	} {
		r := ok()
		change(r)
		if analyze.Validate([]*analyze.Rule{r}) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if analyze.Validate([]*analyze.Rule{ok(), ok()}) == nil {
		t.Error("duplicate ids accepted")
	}
}
