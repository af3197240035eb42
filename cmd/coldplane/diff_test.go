package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"coldplane/analyze/etcdstore/storetest"
)

// TestDiff compares two snapshots: objects lost and gained, and the exit code.
func TestDiff(t *testing.T) {
	dir := t.TempDir()
	write := func(name, spec string) string {
		p := filepath.Join(dir, name)
		if err := storetest.Write(p, spec); err != nil {
			t.Fatal(err)
		}
		return p
	}
	const ns = "object\napiVersion: v1\nkind: Namespace\nmetadata: {name: NAME, uid: u-NAME, creationTimestamp: \"2026-01-01T00:00:00Z\"}\nend\n"
	name := func(n string) string { return string(bytes.ReplaceAll([]byte(ns), []byte("NAME"), []byte(n))) }
	a := write("a.db", name("kube-system")+name("shop"))
	b := write("b.db", name("kube-system")+name("new")+"member 1 name=cp1 peer=https://10.0.0.1:2380 client=https://10.0.0.1:2379\nalarm NOSPACE 1\n")
	sum := func(p string) []byte { x, _ := os.ReadFile(p); return x }
	before := [][]byte{sum(a), sum(b)}
	run1 := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		e := &env{in: bytes.NewReader(nil), out: &out, err: &errs, now: time.Now, getenv: func(string) string { return "" }, width: 100}
		return run(t.Context(), e, args), out.String(), errs.String()
	}
	code, out, errs := run1("diff", a, b, "-o", "json", "--as-of", "2026-01-02")
	var d comparison
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v: %s %s", err, out, errs)
	}
	if len(d.Objects) == 0 || d.Objects[0].OnlyA != 1 || d.Objects[0].OnlyB != 1 || d.Objects[0].Unchanged != 1 {
		t.Errorf("objects %+v", d.Objects)
	}
	found := false
	for _, f := range d.New {
		found = found || f.Rule == "CAP101"
	}
	if !found || code != 1 {
		t.Errorf("exit %d, new %+v", code, d.New)
	}
	if code, _, _ := run1("diff", a, a, "--as-of", "2026-01-02"); code != 0 {
		t.Errorf("the same file differs from itself: exit %d", code)
	}
	if code, _, _ := run1("diff", a); code != 2 {
		t.Errorf("one argument: exit %d", code)
	}
	if !bytes.Equal(before[0], sum(a)) || !bytes.Equal(before[1], sum(b)) {
		t.Error("an input was changed")
	}
}
