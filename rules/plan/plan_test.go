package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/analyzetest"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules"
	"coldplane/rules/upg"
)

// audit evaluates the UPG rules over a base tree with some files changed.
func audit(t *testing.T, base, target string, edit func(map[string][]byte)) *report.Report {
	t.Helper()
	files, err := analyzetest.Base(base)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(files)
	}
	dir := t.TempDir()
	for p, b := range files {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := bundle.Open(t.Context(), []string{dir}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	r, err := rules.Evaluate(t.Context(), set, rules.Options{Rules: upg.Rules.List(), Options: analyze.Options{Target: target, AsOf: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPlan(t *testing.T) {
	r := audit(t, "ha", "v1.37.2", func(f map[string][]byte) {
		for p, b := range f {
			s := strings.ReplaceAll(string(b), "v1.37.2", "v1.35.4")
			if strings.HasSuffix(p, "cp1/etc/kubernetes/manifests/etcd.yaml") {
				s = strings.Replace(s, "    - --snapshot-count", "    - --quota-backend-bytes=8589934592\n    - --snapshot-count", 1)
			}
			f[p] = []byte(strings.ReplaceAll(s, "etcd:3.7.3-0", "etcd:3.6.8-0"))
		}
	})
	p := r.Plan
	if p == nil || p.State != report.PlanBlocked || p.From != "v1.35.4" || len(p.Stages) != 2 {
		t.Fatalf("%+v", p)
	}
	if p.Stages[0].Etcd != "3.6.8-0" || p.Stages[1].Etcd != "3.7.0-0" || p.Stages[1].Version != "v1.37.2" {
		t.Errorf("stages %+v", p.Stages)
	}
	if s := p.Stages[0].Steps; len(s) != 7 || s[0].Node != "cp1" || s[2].Node != "cp2" || s[2].Command != "kubeadm upgrade node" {
		t.Errorf("steps %+v", s)
	}
	hand := 0
	for _, w := range p.Rewrites {
		if w.HandEdit {
			hand++
			if w.Item != "--quota-backend-bytes" || w.Node != "cp1" || w.Loses == "" {
				t.Errorf("rewrite %+v", w)
			}
		}
	}
	if hand != 1 {
		t.Errorf("%d hand edits in %+v", hand, p.Rewrites)
	}
	if len(p.First) < 5 || !strings.Contains(p.First[0].Command, "snapshot save") {
		t.Errorf("first %+v", p.First)
	}
}

func TestNoTarget(t *testing.T) {
	if r := audit(t, "single", "", nil); r.Plan != nil {
		t.Errorf("a plan without a target: %+v", r.Plan)
	}
}

// TestBeyondTheTables: a target newer than the tables is said to be unknown,
// and is never ready.
func TestBeyondTheTables(t *testing.T) {
	p := audit(t, "ha", "v1.99.0", nil).Plan
	if p == nil || p.State == report.PlanReady || !strings.Contains(p.Summary, "what 1.99 changes is not known to it") {
		t.Errorf("%+v", p)
	}
}
