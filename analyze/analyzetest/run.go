package analyzetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"coldplane/analyze"
	"coldplane/analyze/facts"
	"coldplane/bundle"
	"coldplane/report"
)

// A Generator turns files named PATH!KIND of one case into real ones. It may
// look at and add any file of the case.
type Generator struct {
	Kind string // "cert", "etcd", ...
	Make func(files map[string][]byte) error
}

// Run runs the scripts of a family's rules, found in dir.
func Run(t *testing.T, cat *analyze.Catalogue, dir string, gens ...Generator) {
	t.Helper()
	rules := cat.List()
	if err := analyze.Validate(rules); err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(dir, strings.ToLower(r.ID)+".txtar")
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatalf("every rule needs its script: %v", err)
			}
			cases, err := parseScript(ar)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			seen := map[string]bool{}
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) { runCase(t, r, c, gens) })
				for _, w := range c.wants {
					if w.rule != r.ID {
						t.Errorf("%s: %s is another rule", c.name, w.src)
					}
					if w.finding() {
						seen["fail"] = true
					} else {
						seen[w.severity] = true
					}
				}
			}
			for _, o := range []string{"fail", "pass", "unknown"} {
				if !seen[o] {
					t.Errorf("%s has no case that wants %s", name, o)
				}
			}
		})
	}
}

func runCase(t *testing.T, r *analyze.Rule, c *tcase, gens []Generator) {
	t.Helper()
	if len(c.wants) == 0 {
		t.Fatal("the case wants nothing")
	}
	for _, g := range gens {
		if err := g.Make(c.files); err != nil {
			t.Fatalf("generator %s: %v", g.Kind, err)
		}
	}
	for p := range c.files {
		if strings.Contains(filepath.Base(p), "!") {
			t.Fatalf("no generator for %s", p)
		}
	}
	dir := filepath.Join(t.TempDir(), "in")
	if err := c.write(dir); err != nil {
		t.Fatal(err)
	}
	set, err := bundle.Open(t.Context(), []string{dir}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	e := analyze.New(t.Context(), set, analyze.Options{
		AsOf: c.asOf, Target: c.target, Params: c.sets, Witnesses: facts.Witnesses(), Kubeadm: facts.Kubeadm,
		Defect: func(what string, stack []byte) { t.Errorf("defect: %s\n%s", what, stack) },
	})
	findings, results, err := e.Evaluate([]*analyze.Rule{r})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if !claim(c, dir, f) {
			t.Errorf("unwanted %s", describe(f))
		}
	}
	for _, w := range c.wants {
		if !w.finding() {
			outcome(t, w, results)
			continue
		}
		if !w.met {
			t.Errorf("not met: %s", w.src)
		}
	}
}

func describe(f report.Finding) string {
	s := fmt.Sprintf("%s %s %s %q: %s", f.Rule, f.Severity, f.Node, f.Subject, f.Message)
	for _, e := range f.Evidence {
		s += fmt.Sprintf("\n    %s %s:%d %s %q", e.Role, e.Path, e.Line, e.Key, e.Excerpt)
	}
	return s
}

// claim finds a want the finding meets.
func claim(c *tcase, dir string, f report.Finding) bool {
	ev := f.Evidence[0]
	for _, w := range c.wants {
		switch {
		case !w.finding() || w.met || w.rule != f.Rule,
			w.severity != "" && w.severity != string(f.Severity),
			w.node != "" && w.node != f.Node,
			ev.Path != w.path && !strings.HasSuffix(ev.Path, "/"+w.path),
			w.lineNo != 0 && w.lineNo != ev.Line,
			w.line != nil && !w.line.MatchString(sourceLine(dir, ev)),
			w.message != nil && !w.message.MatchString(f.Message):
			continue
		}
		w.met = true
		return true
	}
	return false
}

// sourceLine is the text of the line evidence points at.
func sourceLine(dir string, ev report.Evidence) string {
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(ev.Path)))
	if err != nil || ev.Line < 1 {
		return ""
	}
	ls := strings.Split(string(b), "\n")
	if ev.Line > len(ls) {
		return ""
	}
	return ls[ev.Line-1]
}

func outcome(t *testing.T, w *want, results []report.Result) {
	t.Helper()
	for _, r := range results {
		if r.Rule != w.rule || w.node != "" && r.Subject != w.node {
			continue
		}
		if string(r.Outcome) != w.severity {
			t.Errorf("%s: outcome of %s is %s %s, gaps %v", w.src, r.Subject, r.Outcome, r.Detail, r.Gaps)
			continue
		}
		if w.reason != "" {
			ok := false
			for _, g := range r.Gaps {
				ok = ok || g.Reason == w.reason
			}
			if !ok {
				t.Errorf("%s: gaps are %v", w.src, r.Gaps)
			}
		}
		w.met = true
	}
	if !w.met {
		t.Errorf("not met: %s", w.src)
	}
}
