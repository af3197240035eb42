package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coldplane/bundle/decode/walframe/walframetest"
)

const walSpec = `
node a cluster c
member a name=cp1 peer=https://192.0.2.11:2380 client=https://192.0.2.11:2379
member b name=cp2 peer=https://192.0.2.12:2380
conf add a
leader 2
conf add-learner b
conf promote b
put /registry/secrets/ns/name size=500 times=4
alarm NOSPACE a raise
state
`

func walTree(t *testing.T, spec string) string {
	t.Helper()
	files := map[string][]byte{"nodes/cp1/var/lib/etcd!wal": []byte(spec)}
	if err := walframetest.Make(files); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for p, b := range files {
		p = filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func walRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := &env{in: strings.NewReader(""), out: &out, err: &errs, now: time.Now, getenv: func(string) string { return "" }}
	code = run(t.Context(), e, append([]string{"etcd", "wal"}, args...))
	return code, out.String(), errs.String()
}

func TestEtcdWAL(t *testing.T) {
	dir := walTree(t, walSpec+"flip 2000\n")
	unchanged(t, dir)
	code, out, errs := walRun(t, dir)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	for _, want := range []string{"a of cluster c", "etcd refuses to start on it", "bad-checksum in 0000000000000000-0000000000000000.wal", "/registry/secrets", "promote b", "NOSPACE raised of a"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the output:\n%s", want, out)
		}
	}
	if strings.Contains(out, "abcdefgh") {
		t.Error("a stored value is in the output")
	}
}

func TestEtcdWALJSON(t *testing.T) {
	code, out, errs := walRun(t, walTree(t, walSpec), "-o", "json")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	var got struct {
		Directories []walReport
		Quorum      []walQuorum
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Directories) != 1 || len(got.Quorum) != 1 {
		t.Fatalf("%d directories, %d clusters", len(got.Directories), len(got.Quorum))
	}
	d, q := got.Directories[0], got.Quorum[0]
	if d.Member != "a" || d.Start != "opens" || d.Last != 9 || len(d.Confs) != 3 || len(d.Members) != 2 || len(d.Alarms) != 1 {
		t.Errorf("directory: %+v", d)
	}
	if q.Voters != 2 || q.Quorum != 2 || len(q.Losses) != 1 || !strings.Contains(q.Losses[0], "no writes") {
		t.Errorf("quorum: %+v", q)
	}
}

func TestEtcdWALWithoutOne(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "etc/kubernetes"), 0o755); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := walRun(t, dir); code != exitUsage || !strings.Contains(errs, "no write-ahead log") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
