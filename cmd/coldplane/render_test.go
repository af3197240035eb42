package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"coldplane/report/formats"
)

const sampleDir = "../../testdata/incident"

// command runs a command line as a process would, without a terminal.
func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	return commandOn(t, false, args...)
}

func commandOn(t *testing.T, tty bool, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	ev := &env{
		in: strings.NewReader(""), out: &o, err: &e, errTTY: tty, getenv: func(string) string { return "" },
		now: func() time.Time { return time.Date(2026, 5, 12, 9, 30, 0, 0, time.UTC) },
	}
	code = run(t.Context(), ev, args)
	return code, o.String(), e.String()
}

// TestRenderEqualsAnalyze holds that a saved report renders to the same bytes
// on a machine without the evidence as analyze wrote them.
func TestRenderEqualsAnalyze(t *testing.T) {
	dir := t.TempDir()
	saved := filepath.Join(dir, "report.json")
	args := []string{"analyze", sampleDir, "--as-of", "2026-05-12T09:30:00Z", "--fail-on", "none", "-o", "json", "--out", saved}
	for _, f := range formats.Names() {
		args = append(args, "--report", f+"="+filepath.Join(dir, "direct-"+f))
	}
	if code, _, errs := command(t, args...); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, f := range formats.Names() {
		if f == "json" || f == "yaml" { // the order of a fact's fields is not kept
			continue
		}
		want, err := os.ReadFile(filepath.Join(dir, "direct-"+f))
		if err != nil {
			t.Fatal(err)
		}
		code, got, errs := command(t, "render", saved, "-o", f)
		if code != exitOK || errs != "" {
			t.Errorf("%s: exit %d: %s", f, code, errs)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s differs (-analyze +render):\n%.2000s", f, d)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "text": "no report", "other": `{"apiVersion":"v1","kind":"Pod"}`, "newer": `{"apiVersion":"coldplane/v9","kind":"Report"}`} {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := command(t, "render", p); code != exitUsage || out != "" || !strings.Contains(errs, "is no report") {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, errs)
		}
	}
	ok := filepath.Join(dir, "ok")
	if err := os.WriteFile(ok, []byte(`{"apiVersion":"coldplane/v1","kind":"Report","later":{"field":1}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"unknown output format": {"render", ok, "-o", "pdf"},
		"unknown language":      {"render", ok, "--lang", "tlh"},
		"does not exist":        {"render", filepath.Join(dir, "none")},
		"would be overwritten":  {"render", ok, "-o", "html", "--out", ok},
	} {
		if code, _, errs := command(t, args...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, %q, want %q", args, code, errs, want)
		}
	}
	if code, out, _ := command(t, "render", ok, "-o", "text"); code != exitOK || out == "" {
		t.Errorf("a report with a field of a later version: exit %d, %q", code, out)
	}
}

// TestProgress holds that the live line is for terminals only and never on
// stdout.
func TestProgress(t *testing.T) {
	args := []string{"analyze", sampleDir, "--as-of", "2026-05-12T09:30:00Z", "--fail-on", "none"}
	_, plain, errs := command(t, args...)
	if errs != "" {
		t.Errorf("without a terminal stderr has %q", errs)
	}
	_, out, errs := commandOn(t, true, args...)
	if !strings.Contains(errs, "asking the rules") {
		t.Errorf("on a terminal there is no progress: %q", errs)
	}
	if out != plain {
		t.Error("the report differs when progress is shown")
	}
	if _, _, errs := commandOn(t, true, append(args, "-q")...); errs != "" {
		t.Errorf("-q prints %q", errs)
	}
}
