package bundle

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"

	"coldplane/bundle/archive"
)

func writeBundle(t *testing.T, o archive.Options, fill func(*archive.Writer)) string {
	t.Helper()
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, archive.Header{BundleID: "id", Node: "cp7", CollectedAt: time.Unix(1_700_000_000, 0)}, o)
	if err != nil {
		t.Fatal(err)
	}
	fill(w)
	if _, err := w.Close(archive.Complete, archive.Clock{}); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(t.TempDir(), "b.tar.zst")
	if err := os.WriteFile(p, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBundleSaysWhatIsAbsent(t *testing.T) {
	mtime := time.Date(2025, 5, 6, 7, 8, 9, 0, time.UTC)
	fill := func(w *archive.Writer) {
		for _, e := range []archive.Entry{
			{Path: "etc/kubernetes/manifests/etcd.yaml", Treatment: archive.Redacted,
				Source: &archive.Source{Type: "file", Mode: 0o640, UID: 3, GID: 4, MTime: mtime, Size: 99}},
		} {
			if err := w.AddBytes(e, []byte("kind: Pod\n")); err != nil {
				t.Fatal(err)
			}
		}
		for _, e := range []archive.Entry{
			{Path: "etc/kubernetes/pki/ca.key", Treatment: archive.Dropped, Rule: "private-key", Source: &archive.Source{Type: "file", Mode: 0o600, Size: 1675}},
			{Path: "etc/kubernetes/manifests/link.yaml", Treatment: archive.LinkOnly, Source: &archive.Source{Type: "link", Link: "etcd.yaml"}},
			{Path: "etc/kubernetes/manifests/pipe", Treatment: archive.Dropped, Source: &archive.Source{Type: "fifo"}},
			{Path: "etc/kubernetes/admin.conf", Treatment: archive.Failed, Error: "input/output error", Source: &archive.Source{Type: "file"}},
			{Path: "etc/kubernetes/tmp", Treatment: archive.Directory, Source: &archive.Source{Type: "dir", Mode: 0o700}},
		} {
			if err := w.Record(e); err != nil {
				t.Fatal(err)
			}
		}
		w.Dir("/etc/kubernetes/manifests")
		w.Absent("/root/.kube/config")
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []archive.Options{{}, {Compression: archive.None}, {Recipients: []age.Recipient{id.Recipient()}}} {
		s, err := Open(t.Context(), []string{writeBundle(t, o, fill)}, Options{SpoolDir: t.TempDir(), Identities: []age.Identity{id}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		in, n := s.Inputs[0], s.Nodes[0]
		if in.Format != FormatBundle || in.State != "intact" || n.Name != "cp7" || !n.CollectedAt.Equal(time.Unix(1_700_000_000, 0)) {
			t.Fatalf("format %s state %s (%s) node %s at %s", in.Format, in.State, in.Detail, n.Name, n.CollectedAt)
		}
		f, err := n.Stat("/etc/kubernetes/manifests/etcd.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if f.Mode != 0o640 || !f.ModTime.Equal(mtime) || f.UID != 3 || f.Size != 10 {
			t.Errorf("metadata: %v %v %d %d", f.Mode, f.ModTime, f.UID, f.Size)
		}
		if f, err := n.Stat("/etc/kubernetes/manifests/link.yaml"); err != nil {
			t.Error(err)
		} else if b, err := f.Bytes(100); err != nil || string(b) != "kind: Pod\n" {
			t.Errorf("through the link: %q %v", b, err)
		}
		for p, want := range map[string]Reason{
			"/etc/kubernetes/manifests/kube-apiserver.yaml": Absent,       // directory listed in full
			"/root/.kube/config":                            Absent,       // looked for
			"/etc/kubernetes/controller-manager.conf":       NotCollected, // nobody looked
			"/var/lib/etcd":                                 NotCollected,
			"/etc/kubernetes/pki/ca.key":                    Redacted,
			"/etc/kubernetes/admin.conf":                    Unreadable,
			"/etc/kubernetes/manifests/pipe":                NotRegular,
			"/etc/kubernetes/tmp":                           NotRegular,
		} {
			f, err := n.Stat(p)
			if err == nil {
				_, err = f.Open()
			}
			if got := ReasonOf(err); got != want {
				t.Errorf("%s: %q (%v), want %q", p, got, err, want)
			}
		}
	}
}

func TestAlteredBundleIsStillRead(t *testing.T) {
	p := writeBundle(t, archive.Options{Compression: archive.None}, func(w *archive.Writer) {
		if err := w.AddBytes(archive.Entry{Path: "etc/kubernetes/manifests/etcd.yaml"}, []byte("kind: Pod\n")); err != nil {
			t.Fatal(err)
		}
	})
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		in         []byte
	}{
		{"changed", "altered", bytes.Replace(b, []byte("kind: Pod"), []byte("kind: Job"), 1)},
		{"cut", "incomplete", b[:2560]},
		{"more behind", "ambiguous", append(bytes.Clone(b), b...)},
	} {
		q := filepath.Join(t.TempDir(), "c.tar")
		if err := os.WriteFile(q, c.in, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, q)
		if got := s.Inputs[0].State; got != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, got, s.Inputs[0].Detail, c.want)
		}
		if _, err := s.Nodes[0].Stat("/etc/kubernetes/manifests/etcd.yaml"); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
