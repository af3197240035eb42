package etcdstore

import (
	"os"
	"runtime"
	"testing"
)

// BenchmarkRead reads the file named by COLDPLANE_BENCH_DB.
func BenchmarkRead(b *testing.B) {
	path := os.Getenv("COLDPLANE_BENCH_DB")
	if path == "" {
		b.Skip("COLDPLANE_BENCH_DB names no file")
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	b.SetBytes(st.Size())
	for b.Loop() {
		s, err := Read(b.Context(), f, st.Size(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(s.Records), "records")
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapSys>>20), "heapMiB")
}
