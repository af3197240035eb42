package redact

import (
	"os"
	"testing"
)

// BenchmarkStore scrubs the database that COLDPLANE_TEST_DB names.
func BenchmarkStore(b *testing.B) {
	p := os.Getenv("COLDPLANE_TEST_DB")
	if p == "" {
		b.Skip("COLDPLANE_TEST_DB names no database")
	}
	f, err := os.Open(p)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	for _, l := range []Level{LevelSecrets, LevelValues} {
		b.Run(string(l), func(b *testing.B) {
			b.SetBytes(fi.Size())
			out, err := os.CreateTemp(b.TempDir(), "out")
			if err != nil {
				b.Fatal(err)
			}
			defer out.Close()
			scan := NewScanner()
			for b.Loop() {
				if err := out.Truncate(0); err != nil {
					b.Fatal(err)
				}
				if err := out.Truncate(fi.Size()); err != nil {
					b.Fatal(err)
				}
				if _, err := Store(b.Context(), f, fi.Size(), out, StoreOptions{Level: l, Workers: 1, Secret: scan.Secret}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
