package pki

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/facts"
	"coldplane/bundle"
	"coldplane/report"
)

// TestSharedEvidence asks the family's rules over the acceptance cases, where
// they lie beside the repository: what the cases expect of PKI rules must be
// found, and nothing they forbid.
func TestSharedEvidence(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared")
	names, _ := filepath.Glob(filepath.Join(root, "cases", "*", "expected.json"))
	more, _ := filepath.Glob(filepath.Join(root, "real", "*.expected.json"))
	names = append(names, more...)
	if len(names) == 0 {
		t.Skip("no acceptance cases beside the repository")
	}
	for _, name := range names {
		in := filepath.Dir(name)
		if strings.HasSuffix(name, ".expected.json") {
			in = strings.TrimSuffix(name, ".expected.json") + ".tar.zst"
		}
		t.Run(filepath.Base(in), func(t *testing.T) { sharedCase(t, in, name) })
	}
}

type expectation struct {
	Rules       []string `json:"rules"`
	MinSeverity string   `json:"min_severity"`
	Where       []string `json:"where"`
	Tokens      []string `json:"tokens"`
	AtOrAbove   string   `json:"at_or_above"`
	Subject     []string `json:"subject_contains"`
	Message     []string `json:"message_contains"`
	Evidence    []string `json:"evidence_contains"`
}

func sharedCase(t *testing.T, in, name string) {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Now       time.Time     `json:"now"`
		MustFind  []expectation `json:"must_find"`
		MustNot   []expectation `json:"must_not_find"`
		Tolerated []expectation `json:"tolerated"`
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	set, err := bundle.Open(t.Context(), []string{in}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	e := analyze.New(t.Context(), set, analyze.Options{
		AsOf: want.Now, Witnesses: facts.Witnesses(), Kubeadm: facts.Kubeadm,
		Defect: func(what string, stack []byte) { t.Errorf("defect: %s\n%s", what, stack) },
	})
	findings, _, err := e.Evaluate(Rules.List())
	if err != nil {
		t.Fatal(err)
	}
	known := ""
	for _, w := range want.MustFind {
		known += strings.Join(w.Rules, " ") + " "
		if !strings.HasPrefix(w.Rules[0], "PKI") {
			continue
		}
		ok := false
		for _, f := range findings {
			ok = ok || satisfies(f, w)
		}
		if !ok {
			t.Errorf("not found: %v %s %v", w.Rules, w.MinSeverity, w.Where)
		}
	}
	for _, w := range want.Tolerated {
		known += strings.Join(w.Rules, " ") + " "
	}
	for _, f := range findings {
		for _, w := range want.MustNot {
			if violates(f, w) {
				t.Errorf("forbidden: %s %s %s %q: %s", f.Rule, f.Severity, f.Node, f.Subject, f.Message)
			}
		}
		if f.Severity.AtLeast(report.Medium) && !strings.Contains(known, f.Rule) {
			t.Errorf("noise: %s %s %s %q: %s", f.Rule, f.Severity, f.Node, f.Subject, f.Message)
		}
		t.Logf("%s %s %s %q: %s", f.Rule, f.Severity, f.Node, f.Subject, f.Message)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func satisfies(f report.Finding, w expectation) bool {
	if !contains(w.Rules, f.Rule) || !f.Severity.AtLeast(report.Severity(w.MinSeverity)) {
		return false
	}
	text, place := strings.ToLower(f.Subject+" "+f.Message), false
	for _, e := range f.Evidence {
		text += " " + strings.ToLower(e.Path+" "+e.Excerpt)
		for _, p := range w.Where {
			place = place || e.Path == p || strings.HasSuffix(e.Path, "/"+p)
		}
	}
	for _, tok := range w.Tokens {
		if !strings.Contains(text, strings.ToLower(tok)) {
			return false
		}
	}
	return place
}

func violates(f report.Finding, w expectation) bool {
	if !contains(w.Rules, f.Rule) || !f.Severity.AtLeast(report.Severity(w.AtOrAbove)) {
		return false
	}
	if len(w.Subject)+len(w.Message)+len(w.Evidence) == 0 {
		return true
	}
	paths := ""
	for _, e := range f.Evidence {
		paths += " " + e.Path
	}
	for _, c := range []struct {
		words []string
		text  string
	}{{w.Subject, f.Subject}, {w.Message, f.Message}, {w.Evidence, paths}} {
		for _, x := range c.words {
			if strings.Contains(strings.ToLower(c.text), strings.ToLower(x)) {
				return true
			}
		}
	}
	return false
}
