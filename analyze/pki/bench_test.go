package pki_test

import (
	"archive/tar"
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"coldplane/analyze"
	"coldplane/analyze/analyzetest"
	"coldplane/analyze/pki"
	"coldplane/analyze/pki/pkitest"
	"coldplane/bundle"
)

// BenchmarkThreeNodes reads and joins the credentials of three control-plane
// nodes with RSA CAs, from an archive, as an analysis does. The aim is 150 ms.
func BenchmarkThreeNodes(b *testing.B) {
	files, err := analyzetest.Base("ha")
	if err != nil {
		b.Fatal(err)
	}
	files["x!pki"] = []byte("keys files\nca alg=rsa2048\netcd/ca alg=rsa2048\nfront-proxy-ca alg=rsa2048\nkubelet.crt cn=x\n")
	if err := pkitest.Make(files); err != nil {
		b.Fatal(err)
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: p, Mode: 0o600, Size: int64(len(files[p]))}); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Write(files[p]); err != nil {
			b.Fatal(err)
		}
	}
	w.Close()
	name := filepath.Join(b.TempDir(), "in.tar")
	if err := os.WriteFile(name, buf.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		set, err := bundle.Open(b.Context(), []string{name}, bundle.Options{SpoolDir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		e := analyze.New(b.Context(), set, analyze.Options{AsOf: analyzetest.DefaultAsOf})
		cl, err := pki.Joined.Get(e.Ctx(nil))
		if err != nil || len(cl.Checks) < 30 {
			b.Fatalf("%d checks, %v", len(cl.Checks), err)
		}
		set.Close()
	}
}
