//go:build linux

package collect

import (
	"bytes"
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"coldplane/bundle/archive"
)

// A defect in one source, or at one file, costs that source or file: it is told,
// nothing unmasked of it is in the bundle, and everything else is.
func TestDefectsStayWhereTheyAre(t *testing.T) {
	n := newTree(t)
	n.full()
	root, err := openRoot(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.close()
	r := &run{o: options(n.dir, t).withDefaults(), root: root, scan: newScan(), paths: findWiring(root)}
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, r.header(), archive.Options{Scanner: r.scan})
	if err != nil {
		t.Fatal(err)
	}
	var results []archive.Result
	for _, s := range []source{
		{name: "manifests", run: r.manifests},
		{name: "breaks", run: func(ctx context.Context, s *sink) error {
			s.take(ctx, "/etc/hostname", smallFile, asText)
			s.take(ctx, "/etc/kubernetes/tokens.csv", smallFile, func(*sink, string, fs.FileInfo, []byte) ([]byte, archive.Treatment, string) { panic("at a file") })
			s.take(ctx, "/etc/fstab", smallFile, asText)
			panic("at the source")
		}},
		{name: "kubeconfigs", run: r.kubeconfigs},
	} {
		res, err := r.one(t.Context(), t.Context(), &s, w)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, res)
	}
	if _, err := w.Close(archive.Degraded, archive.Clock{}); err != nil {
		t.Fatal(err)
	}
	if b := results[1]; b.Outcome != archive.Partial || !strings.Contains(b.Error, "a defect") || len(b.Notes) == 0 || !strings.Contains(b.Notes[0], "a defect") {
		t.Errorf("the source that breaks: %+v", b)
	}
	for _, i := range []int{0, 2} {
		if results[i].Outcome == archive.Failure || results[i].Entries == 0 {
			t.Errorf("%s: %+v", results[i].Source, results[i])
		}
	}
	ms := members(t, out.Bytes())
	for _, p := range []string{"etc/hostname", "etc/fstab", "etc/kubernetes/manifests/etcd.yaml", "etc/kubernetes/admin.conf"} {
		if _, ok := ms[p]; !ok {
			t.Errorf("%s is not in the bundle", p)
		}
	}
	if c, ok := ms[filepath.Join("etc/kubernetes", "tokens.csv")]; ok {
		t.Errorf("the file at which a treatment broke was taken: %d bytes", len(c))
	}
	for s, where := range n.canaries {
		if bytes.Contains(out.Bytes(), []byte(s)) {
			t.Errorf("%s left", where)
		}
	}
}
