package provenance

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"coldplane/analyze"
	"coldplane/bundle"
)

// A tree is what one case writes: mode and age of files of a node.
type tree map[string]struct {
	mode os.FileMode
	age  time.Duration
}

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func attributes(t *testing.T, files tree, asOf time.Time) Attributes {
	t.Helper()
	dir := t.TempDir()
	for p, f := range files {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(full, f.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(full, now.Add(-f.age), now.Add(-f.age)); err != nil {
			t.Fatal(err)
		}
	}
	set, err := bundle.Open(t.Context(), []string{dir}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	e := analyze.New(t.Context(), set, analyze.Options{AsOf: asOf})
	a, err := OfNode.Get(e.Ctx(set.Nodes[0]))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRealNode(t *testing.T) {
	a := attributes(t, tree{
		"etc/kubernetes/admin.conf":          {0o600, 60 * 24 * time.Hour},
		"etc/kubernetes/pki/ca.crt":          {0o644, 60 * 24 * time.Hour},
		"etc/kubernetes/manifests/etcd.yaml": {0o600, 24 * time.Hour},
		"var/lib/etcd/member/snap/db":        {0o600, time.Second},
	}, now)
	if a.Modes != "" || a.Times != "" {
		t.Errorf("a node's own attributes are doubted: %+v", a)
	}
}

func TestCheckout(t *testing.T) {
	a := attributes(t, tree{
		"etc/kubernetes/admin.conf":          {0o644, -30 * 24 * time.Hour},
		"etc/kubernetes/pki/ca.crt":          {0o644, -30 * 24 * time.Hour},
		"etc/kubernetes/pki/gen.sh":          {0o755, -30 * 24 * time.Hour},
		"etc/kubernetes/manifests/etcd.yaml": {0o644, -60 * 24 * time.Hour},
	}, now)
	if a.Modes != sameMode || a.Times != newer {
		t.Errorf("a checkout is believed: %+v", a)
	}
}

func TestPlainCopy(t *testing.T) {
	a := attributes(t, tree{
		"etc/kubernetes/admin.conf":          {0o600, time.Hour},
		"etc/kubernetes/pki/ca.crt":          {0o644, time.Hour + time.Second},
		"etc/kubernetes/manifests/etcd.yaml": {0o600, time.Hour + 2*time.Second},
	}, now)
	if a.Modes != "" {
		t.Errorf("a copy keeps the modes it can: %+v", a)
	}
	if a.Times != oneMoment {
		t.Errorf("a copy's times are believed: %+v", a)
	}
}

func TestTooFew(t *testing.T) {
	a := attributes(t, tree{"etc/kubernetes/admin.conf": {0o644, time.Hour}}, now)
	if a != (Attributes{tooFew, tooFew, tooFew}) {
		t.Errorf("one file decides: %+v", a)
	}
}
