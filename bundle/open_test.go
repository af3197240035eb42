package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// write makes files below a new directory; a name ending in "/" is a
// directory, a content beginning with "->" a symbolic link.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range sortedKeys(files) {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		c := files[name]
		var err error
		switch {
		case name[len(name)-1] == '/':
			err = os.MkdirAll(p, 0o755)
		case len(c) > 2 && c[:2] == "->":
			err = os.Symlink(c[2:], p)
		default:
			err = os.WriteFile(p, []byte(c), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, paths ...string) *Set {
	t.Helper()
	s, err := Open(t.Context(), paths, Options{Digest: true, SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestAbsentAndNotCollected(t *testing.T) {
	dir := write(t, map[string]string{
		"etc/kubernetes/manifests/etcd.yaml": "    - --name=cp1\n",
		"etc/kubernetes/pki/ca.crt":          "x",
		"etc/kubernetes/link":                "->/etc/kubernetes/pki/ca.crt",
		"etc/kubernetes/out":                 "->../../../../../../etc/passwd",
		"etc/kubernetes/loop":                "->loop",
	})
	s := open(t, dir)
	if len(s.Nodes) != 1 || s.Nodes[0].Name != "cp1" {
		t.Fatalf("nodes = %v", s.Nodes)
	}
	n := s.Nodes[0]
	for p, want := range map[string]Reason{
		"/etc/kubernetes/pki/ca.crt":            "",
		"/etc/kubernetes/link":                  "",
		"/etc/kubernetes/pki/sa.pub":            Absent,
		"/etc/kubernetes/manifests/sched.yaml":  Absent,
		"/etc/kubernetes/pki/etcd/ca.crt":       NotCollected,
		"/var/lib/etcd/member":                  NotCollected,
		"/var/lib/kubelet":                      NotCollected,
		"/kubeadm-config.yaml":                  NotCollected,
		"/etc/kubernetes/out":                   NotCollected, // stays inside: /etc/passwd of the node
		"/etc/kubernetes/loop":                  Unreadable,
		"/etc/kubernetes/pki/ca.crt/below-file": Absent,
	} {
		_, err := n.Stat(p)
		if got := ReasonOf(err); got != want {
			t.Errorf("%s: %q (%v), want %q", p, got, err, want)
		}
	}
	if f, err := n.Stat("/etc/kubernetes/link"); err != nil || f.Resolved != "/etc/kubernetes/pki/ca.crt" {
		t.Errorf("link resolved to %v, %v", f, err)
	}
	if got := len(n.Glob("/etc/kubernetes/*/*.crt")); got != 1 {
		t.Errorf("glob found %d files", got)
	}
	f, _ := n.Stat("/etc/kubernetes/manifests")
	if _, err := f.Bytes(10); ReasonOf(err) != NotRegular {
		t.Errorf("directory read as a file: %v", err)
	}
}

func tarball(t *testing.T, hs []tar.Header, bodies ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := range hs {
		h := hs[i]
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		body := ""
		if i < len(bodies) {
			body = bodies[i]
			h.Size = int64(len(body))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostileTar(t *testing.T) {
	data := tarball(t, []tar.Header{
		{Name: "./etc/kubernetes/manifests/etcd.yaml"},
		{Name: "etc/kubernetes/manifests/etcd.yaml"},
		{Name: "../../etc/cron.d/x"},
		{Name: "/etc/shadow"},
		{Name: "etc/kubernetes/a\\b"},
		{Name: "etc/kubernetes/hard", Typeflag: tar.TypeLink, Linkname: "/etc/shadow"},
		{Name: "etc/kubernetes/fifo", Typeflag: tar.TypeFifo},
		{Name: "etc/kubernetes/manifests/etcd.yaml/below"},
	}, "first", "second", "x", "x", "x", "", "", "x")
	p := filepath.Join(t.TempDir(), "cp1.tar")
	if err := os.WriteFile(p, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, p)
	in := s.Inputs[0]
	if len(in.Refusals) != 7 {
		t.Errorf("%d refusals: %v", len(in.Refusals), in.Refusals)
	}
	f, err := s.Nodes[0].Stat("/etc/kubernetes/manifests/etcd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := f.Bytes(100); err != nil || string(b) != "first" {
		t.Errorf("content %q, %v", b, err)
	}
	if _, err := s.Nodes[0].Stat("/etc/kubernetes/hard"); ReasonOf(err) != Refused {
		t.Errorf("hard link: %v", err)
	}
	s.WaitDigests()
	if in.SHA256 == "" {
		t.Error("no digest")
	}
}

func TestTruncatedArchiveKeepsWhatItHas(t *testing.T) {
	var b bytes.Buffer
	w, _ := zstd.NewWriter(&b)
	big := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, 1<<20)
	w.Write(tarball(t, []tar.Header{{Name: "etc/kubernetes/a"}, {Name: "var/lib/etcd/member/snap/db"}}, "small", string(big)))
	w.Close()
	p := filepath.Join(t.TempDir(), "x.tar.zst")
	os.WriteFile(p, b.Bytes()[:b.Len()/2], 0o600)
	s := open(t, p)
	if s.Inputs[0].State != "damaged" {
		t.Errorf("state %q", s.Inputs[0].State)
	}
	if _, err := s.Nodes[0].Stat("/etc/kubernetes/a"); err != nil {
		t.Error(err)
	}
}

func TestInputErrors(t *testing.T) {
	dir := t.TempDir()
	mk := func(name, body string) string {
		p := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(p), 0o755)
		os.WriteFile(p, []byte(body), 0o644)
		return p
	}
	os.Mkdir(filepath.Join(dir, "empty"), 0o755)
	for name, p := range map[string]string{
		"missing": filepath.Join(dir, "nothing"), "empty dir": filepath.Join(dir, "empty"), "empty file": mk("zero.db", ""),
		"text": mk("t.txt", "hello\n"), "no root": filepath.Dir(mk("stuff/readme", "x")), "cut gzip": mk("g.tgz", "\x1f\x8b\x08"),
		"binary": mk("bin", "\x00\x01\x02\x03"), "sos": filepath.Dir(filepath.Dir(mk("sos/sos_commands/x", "x"))),
	} {
		_, err := Open(context.Background(), []string{p}, Options{})
		var ie *InputError
		if !errors.As(err, &ie) || ie.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := write(t, map[string]string{"etc/kubernetes/manifests/x": ""})
	s := open(t, good, filepath.Join(dir, "zero.db"))
	if len(s.Problems) != 1 {
		t.Errorf("problems: %v", s.Problems)
	}
}

func TestSparseMemberTakesNoRoom(t *testing.T) {
	x := &spool{dir: t.TempDir(), limit: 1 << 20}
	c, err := x.write(bytes.NewReader(append(make([]byte, 8<<20), 7)), 8<<20+1, make([]byte, spoolBlock))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := c.open()
	b := make([]byte, 1)
	if _, err := r.ReadAt(b, 8<<20); err != nil || b[0] != 7 {
		t.Errorf("%v %v", b, err)
	}
	if x.used > spoolBlock {
		t.Errorf("%d bytes used", x.used)
	}
	x.close()
}

func TestOpenTimeLimit(t *testing.T) {
	p := filepath.Join(t.TempDir(), "x.tar")
	os.WriteFile(p, tarball(t, []tar.Header{{Name: "etc/kubernetes/a"}}, "x"), 0o600)
	_, err := Open(t.Context(), []string{p}, Options{Limits: Limits{OpenTime: time.Nanosecond}})
	if err == nil {
		t.Error("no error past the time limit")
	}
}
