package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/google/go-cmp/cmp"

	"coldplane/report"
)

// unpack extracts regular files, directories and links of an archive that we
// made ourselves, holes as holes.
func unpack(t *testing.T, p, dir string) {
	t.Helper()
	f, err := os.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !filepath.IsLocal(h.Name) {
			t.Fatal(h, err)
		}
		full := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(full, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, full)
		case tar.TypeReg, tar.TypeGNUSparse:
			err = unpackFile(full, h, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpackFile(full string, h *tar.Header, r io.Reader) error {
	w, err := os.OpenFile(full, os.O_CREATE|os.O_WRONLY, h.FileInfo().Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	buf, n := make([]byte, 64<<10), int64(0)
	for err == nil {
		var k int
		k, err = io.ReadFull(r, buf)
		if strings.Trim(string(buf[:k]), "\x00") != "" {
			if _, werr := w.WriteAt(buf[:k], n); werr != nil {
				return errors.Join(werr, w.Close())
			}
		}
		n += int64(k)
	}
	if err := errors.Join(w.Truncate(n), w.Close()); err != nil {
		return err
	}
	return os.Chtimes(full, h.ModTime, h.ModTime)
}

// realCases are the real clusters' archives by name, with the moment of their
// collection. Some by default, all with COLDPLANE_TORTURE=full.
func realCases(t *testing.T, some ...string) map[string]string {
	t.Helper()
	all, err := filepath.Glob("../../../shared/real/*.tar.zst")
	if err != nil || len(all) == 0 {
		t.Skip("no real clusters at ../shared/real")
	}
	out := map[string]string{}
	for _, p := range all {
		name := strings.TrimSuffix(filepath.Base(p), ".tar.zst")
		if os.Getenv("COLDPLANE_TORTURE") != "full" && !slices.Contains(some, name) {
			continue
		}
		b, err := os.ReadFile(strings.TrimSuffix(p, ".tar.zst") + ".expected.json")
		if err != nil {
			t.Fatal(err)
		}
		var x struct{ Now string }
		if err := json.Unmarshal(b, &x); err != nil {
			t.Fatal(err)
		}
		out[p] = x.Now
	}
	return out
}

// verdicts are an analysis' findings, by rule, subject and severity, and how each
// rule that could not be answered was not.
func verdicts(t *testing.T, now string, in ...string) map[string]string {
	t.Helper()
	code, out, errs := coldplane(t, append([]string{"analyze", "-o", "json", "--as-of", now, "--fail-on", "none"}, in...)...)
	var r struct {
		Findings []struct {
			Rule, RuleID, Subject, Severity, Message string
			Nodes                                    []string
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("code %d: %v\n%s", code, err, errs)
	}
	m := map[string]string{}
	for _, f := range r.Findings {
		m[f.Rule+f.RuleID+" "+f.Severity+" "+f.Subject] = f.Message
	}
	return m
}

// sameVerdicts compares two analyses; except says which rules may differ, and
// how is in docs/security.md.
func sameVerdicts(t *testing.T, what string, a, b map[string]string, except func(id, x, y string) bool) {
	t.Helper()
	if len(a) < 3 {
		t.Errorf("%s: only %d findings, the comparison compares nothing", what, len(a))
	}
	ids := slices.Sorted(maps.Keys(a))
	for id := range b {
		if _, ok := a[id]; !ok {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if a[id] != b[id] && !except(id, a[id], b[id]) {
			t.Errorf("%s: %s\n\traw %q\n\tnow %q", what, id, a[id], b[id])
		}
	}
}

// What the rules say of real clusters is the same on their databases and on the
// scrubbed copies.
func TestScrubbedVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("analyzes real clusters twice")
	}
	for p, now := range realCases(t, "baseline-single", "ha-one-down", "corrupt-02-leaf-page-header", "encryption-aescbc", "ns-deleted-restored") {
		dir := filepath.Join(t.TempDir(), "in")
		unpack(t, p, dir)
		raw := verdicts(t, now, dir)
		err := filepath.WalkDir(dir, func(f string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || d.Name() != "db" && !strings.HasSuffix(d.Name(), ".db") {
				return err
			}
			fi, err := d.Info()
			if err != nil {
				return err
			}
			if code, _, errs := coldplane(t, "scrub", "-q", f, f+".scrubbed"); code != 0 {
				t.Logf("%s: stays as it is: %s", d.Name(), errs) // no database at all
				return nil
			}
			if err := os.Rename(f+".scrubbed", f); err != nil {
				return err
			}
			return errors.Join(os.Chmod(f, fi.Mode().Perm()), os.Chtimes(f, fi.ModTime(), fi.ModTime()))
		})
		if err != nil {
			t.Fatal(err)
		}
		sameVerdicts(t, filepath.Base(p), raw, verdicts(t, now, dir), func(id, x, y string) bool {
			// The damage is told of what is left of the page, which is less.
			return strings.HasPrefix(id, "DIR105") && x != "" && y != ""
		})
	}
}

// What a bundle says is what the node says from which it was collected; the
// bundles of several nodes together, what the nodes say together.
func TestBundlesSayWhatTheirNodesSay(t *testing.T) {
	if testing.Short() {
		t.Skip("collects real clusters")
	}
	for p, now := range realCases(t, "ha-one-down", "kubelet-healthy", "certs-expired-live") {
		dir := filepath.Join(t.TempDir(), "in")
		unpack(t, p, dir)
		roots, _ := filepath.Glob(filepath.Join(dir, "nodes", "*"))
		if len(roots) == 0 {
			roots = []string{dir}
		}
		// What is not a node's own file is not collected from a mounted disk.
		for _, r := range append([]string{dir}, roots...) {
			for _, x := range []string{"crictl", "etcdctl", "journal", "coldplane", "listing", "etcd", "kubeadm-config.yaml"} {
				if err := os.RemoveAll(filepath.Join(r, x)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var bundles []string
		for _, r := range roots {
			out := filepath.Join(t.TempDir(), "b.tar.zst")
			args := []string{"collect", "-q", "--root", r, "-o", out, "--rate", "0", "--low-priority=false", "--reserve", "0", "--since", "1000000h"}
			if len(roots) > 1 {
				args = append(args, "--node", filepath.Base(r))
			}
			if code, _, errs := coldplane(t, args...); code != 0 {
				t.Fatalf("%s: %d: %s", r, code, errs)
			}
			bundles = append(bundles, out)
		}
		sameVerdicts(t, filepath.Base(p), verdicts(t, now, dir), verdicts(t, now, bundles...), func(id, _, _ string) bool {
			// A bundle holds kubeadm's configuration, taken out of the database.
			return strings.HasPrefix(id, "BUN101")
		})
		a, b := story(t, now, dir), story(t, now, bundles...)
		if len(a) < 10 {
			t.Errorf("%s: a story of %d lines compares nothing", filepath.Base(p), len(a))
		}
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("%s: the bundles tell another story than their nodes (- nodes, + bundles):\n%s", filepath.Base(p), d)
		}
	}
}

// story is what a reader sees first: the verdict with its headline and chain, and
// every row of the matrix.
func story(t *testing.T, now string, in ...string) []string {
	t.Helper()
	code, out, errs := coldplane(t, append([]string{"analyze", "-o", "json", "--as-of", now, "--fail-on", "none"}, in...)...)
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("code %d: %v\n%s", code, err, errs)
	}
	v := r.Verdict
	lines := []string{"verdict " + v.State + " " + v.ChainName + " " + v.Control + " " + v.UserPlane}
	name := func(id string) string {
		if f := r.Find(id); f != nil {
			return f.Rule + " " + f.Node + " " + f.Subject
		}
		return "?"
	}
	if v.Headline != nil {
		lines = append(lines, "headline "+name(*v.Headline))
	}
	for _, l := range v.Chain {
		lines = append(lines, "chain "+name(l.Finding))
	}
	var typed struct {
		Facts struct{ Matrix report.Matrix }
	}
	if err := json.Unmarshal([]byte(out), &typed); err != nil {
		t.Fatal(err)
	}
	for _, row := range typed.Facts.Matrix.Rows {
		lines = append(lines, strings.Join([]string{row.Plane, row.Subject, row.Name, row.State, row.Text}, " | "))
	}
	return lines
}
