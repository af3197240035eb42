package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"coldplane/report/formats"
)

// sums is the SHA-256 of every file below a path.
func sums(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		out[p] = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unchanged fails the test when an input was written to.
func unchanged(t *testing.T, path string) {
	t.Helper()
	before := sums(t, path)
	t.Cleanup(func() {
		after := sums(t, path)
		for p, s := range before {
			if after[p] != s {
				t.Errorf("%s was modified or removed", p)
			}
		}
		for p := range after {
			if before[p] == "" {
				t.Errorf("%s was created", p)
			}
		}
	})
}

const incident = "../../testdata/incident"

// coldplane runs a command line as the binary would.
func coldplane(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := &env{in: bytes.NewReader(nil), out: &out, err: &errs, now: func() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }, getenv: func(string) string { return "" }}
	code = run(context.Background(), e, args)
	return code, out.String(), errs.String()
}

// Same input and --as-of: same bytes of every report, whatever the number of
// processors, the time zone or the day.
func TestReportsAreDeterministic(t *testing.T) {
	unchanged(t, incident)
	first := map[string][]byte{}
	for i, procs := range []int{1, 2, 4} {
		dir := t.TempDir()
		args := []string{"analyze", incident, "--as-of", "2026-05-12T09:30:00Z", "--fail-on", "none"}
		for _, f := range formats.Names() {
			args = append(args, "--report", f+"="+filepath.Join(dir, f))
		}
		old, zone := runtime.GOMAXPROCS(procs), time.Local
		time.Local = time.FixedZone("odd", (i*5+1)*3600)
		code, _, errs := coldplane(t, args...)
		runtime.GOMAXPROCS(old)
		time.Local = zone
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, errs)
		}
		for _, f := range formats.Names() {
			b, err := os.ReadFile(filepath.Join(dir, f))
			if err != nil || len(b) == 0 {
				t.Fatalf("%s: %d bytes, %v", f, len(b), err)
			}
			if i == 0 {
				first[f] = b
			} else if !bytes.Equal(b, first[f]) {
				t.Errorf("%s: run %d differs from the first", f, i+1)
			}
		}
	}
}

func TestExitCodes(t *testing.T) {
	unchanged(t, incident)
	empty := t.TempDir()
	at := []string{"--as-of", "2026-05-12T09:30:00Z", "-o", "json"}
	for _, c := range []struct {
		name string
		want int
		args []string
	}{
		{"findings", exitFindings, append([]string{"analyze", incident}, at...)},
		{"strict", exitIncomplete, append([]string{"analyze", incident, "--fail-on", "none", "--strict"}, at...)},
		{"no input", exitUsage, []string{"analyze"}},
		{"missing input", exitUsage, []string{"analyze", filepath.Join(empty, "none")}},
		{"empty directory", exitUsage, []string{"analyze", empty}},
		{"missing beside a good one", exitFindings, append([]string{"analyze", incident, filepath.Join(empty, "none")}, at...)},
		{"bad flag", exitUsage, []string{"analyze", "--nonsense", incident}},
		{"bad format", exitUsage, []string{"analyze", "-o", "pdf", incident}},
		{"bad time", exitUsage, []string{"analyze", "--as-of", "yesterday", incident}},
		{"bad rule", exitUsage, []string{"analyze", "--rules", "XYZ", incident}},
		{"bad command", exitUsage, []string{"analyse", incident}},
		{"version", exitOK, []string{"version"}},
		{"help", exitOK, []string{"--help"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, errs := coldplane(t, c.args...)
			if code != c.want {
				t.Errorf("exit %d, want %d; stderr: %s", code, c.want, errs)
			}
			if c.want == exitUsage && errs == "" {
				t.Error("no error line")
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	e := &env{in: bytes.NewReader(nil), out: &out, err: &errs, now: time.Now, getenv: func(string) string { return "" }}
	if code := run(ctx, e, []string{"analyze", incident}); code != exitInterrupted || out.Len() > 0 {
		t.Errorf("exit %d, stdout %q", code, out.String())
	}
}
