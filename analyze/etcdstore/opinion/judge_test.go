package opinion

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"coldplane/analyze/etcdstore"
	"coldplane/analyze/etcdstore/storetest"
)

// compare checks our reader against etcd's at several revisions.
func compare(t *testing.T, data []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(path, data, 0o400); err != nil {
		t.Fatal(err)
	}
	s, err := etcdstore.Read(t.Context(), bytes.NewReader(data), int64(len(data)), etcdstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Clean() {
		t.Fatalf("damage: %v", s.Damage)
	}
	o := Judge(path, 0)
	if o.Etcd != "starts" || o.Rev != s.Current() {
		t.Errorf("etcd %+v, our revision %d", o, s.Current())
	}
	first := max(o.First, s.Compacted(), 1)
	for _, rev := range []int64{0, o.Rev, (first + 2*o.Rev) / 3, (first + o.Rev) / 2, first + 1} {
		if rev > o.Rev {
			continue
		}
		want := Judge(path, rev)
		got, err := s.HashKV(t.Context(), rev, -1)
		if err != nil {
			t.Errorf("hash at %d: %v", rev, err)
		}
		if want.Hash != got.Hash || want.HashRev != got.Rev || max(want.Compact, 0) != got.CompactRev {
			t.Errorf("at revision %d: %+v, etcd says %d at %d, compacted %d", rev, got, want.Hash, want.HashRev, want.Compact)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(after, data) {
		t.Error("the file changed")
	}
}

func TestAgreesWithEtcd(t *testing.T) {
	var b strings.Builder
	for round := range 6 {
		fmt.Fprintf(&b, "put /registry/pods/ns%d/p count=60 size=900\nput /registry/events/a/e count=80 size=300 times=2\n", round%3)
		fmt.Fprintf(&b, "delete /registry/pods/ns%d/p-00001\ndelete /registry/events/a/e-000%02d\n", round%3, 10+round)
	}
	churn := b.String()
	for name, spec := range map[string]string{
		"fresh":       "put /a size=10\n",
		"churn":       churn,
		"compacted":   churn + "compact 700\n" + churn,
		"tombstone":   "put /a\nput /b\ndelete /a\ncompact 4\nput /c\n",
		"all-deleted": "put /a\nput /b\ndelete /a\ndelete /b\ncompact 4\n",
		"bumped":      churn + "bump 100000000\nput /z\n",
		"bump-marked": churn + "bump 100000000\nmeta scheduled=100000000 finished=500\n",
		"interrupted": churn + "meta scheduled=600 finished=100\n",
		"old":         "version 3.4\n" + churn + "compact 300\n",
	} {
		t.Run(name, func(t *testing.T) {
			data, err := storetest.Build(spec)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, data)
		})
	}
}

// TestRealVersions reads data directories that servers of several versions made.
func TestRealVersions(t *testing.T) {
	const dir = "../../../../shared/real/etcd-versions"
	list, _ := filepath.Glob(dir + "/*.tar.zst")
	if len(list) == 0 {
		t.Skip("no real data directories here")
	}
	for _, path := range list {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".tar.zst"), func(t *testing.T) {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			z, err := zstd.NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			defer z.Close()
			n := 0
			for r := tar.NewReader(z); ; {
				h, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasSuffix(h.Name, "member/snap/db") {
					data, err := io.ReadAll(r)
					if err != nil {
						t.Fatal(err)
					}
					n++
					compare(t, data)
				}
			}
			if n != 1 {
				t.Errorf("%d databases", n)
			}
		})
	}
}
