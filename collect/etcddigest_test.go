//go:build linux

package collect

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"coldplane/analyze/etcdstore"
	"coldplane/analyze/etcdstore/storetest"
)

func digestFile(t *testing.T, spec string) (string, []byte) {
	t.Helper()
	p := filepath.Join(t.TempDir(), "db")
	if err := storetest.Write(p, spec); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	return p, b
}

// The digest counts every record, and tells a changed value by the block of
// revisions in which it was written.
func TestStoreDigest(t *testing.T) {
	spec := "put /registry/configmaps/ns/c size=300 count=300 times=3\nput /registry/a/big size=600000\nput /registry/b value=one\ndelete /registry/configmaps/ns/gone\nput /registry/b value=two-and-more\n"
	for _, s := range []string{spec, spec + "compact 500\n", spec + "compact 902\n"} {
		_, b := digestFile(t, s)
		d := storeDigest(t.Context(), bytes.NewReader(b), int64(len(b)))
		if d == nil {
			t.Fatal("no digest")
		}
		st, err := etcdstore.Read(context.Background(), bytes.NewReader(b), int64(len(b)), etcdstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d.Revision != st.Current() || d.CompactRevision != st.Compacted() || d.Compacting {
			t.Errorf("%+v at %d/%d, want %d/%d", d.Compacting, d.Revision, d.CompactRevision, st.Current(), st.Compacted())
		}
		var n int64
		for _, x := range d.Blocks {
			n += x.Records
		}
		if n < st.Records-1 || n > st.Records || len(d.Blocks) > maxBlocks {
			t.Errorf("%d records in %d blocks", n, len(d.Blocks))
		}
		other := bytes.Replace(b, []byte("two-and-more"), []byte("twO-and-more"), 1)
		e := storeDigest(t.Context(), bytes.NewReader(other), int64(len(other)))
		diff := ""
		for i := range d.Blocks {
			if d.Blocks[i] != e.Blocks[i] {
				diff += fmt.Sprint(d.Blocks[i].Index, " ")
			}
		}
		if want := fmt.Sprint(d.Revision/d.Width, " "); diff != want {
			t.Errorf("the newest value changed: blocks %q differ, want %q", diff, want)
		}
	}
}
