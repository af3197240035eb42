package boltpage

import (
	"bytes"
	"hash/fnv"
	"os"
	"testing"
)

// repairMetas makes the checksums of both meta pages right, so that fuzzing
// reaches what lies behind them.
func repairMetas(data []byte) {
	for _, off := range []int{pageHeader, 1024 + pageHeader} {
		if off+64 <= len(data) {
			h := fnv.New64a()
			h.Write(data[off : off+56])
			le.PutUint64(data[off+56:], h.Sum64())
		}
	}
}

// FuzzWalk holds the reader to its contract on any bytes: no panic; keys and
// values are the bytes at their offsets; no more elements than the file has room
// for; and a second pass sees the same.
func FuzzWalk(f *testing.F) {
	for _, s := range []sample{{pageSize: 1024, records: 60, maxValue: 300}, {pageSize: 1024, records: 40, maxValue: 3000, freelist: true}} {
		data, err := os.ReadFile(s.write(f))
		if err != nil {
			f.Fatal(err)
		}
		file, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(int64(len(data)), file.DBSize())])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			return
		}
		data = bytes.Clone(data)
		repairMetas(data)
		count := func() (n int) {
			file, err := Open(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				return -1
			}
			w := file.NewWalk(Limits{})
			visit := func(e *Elem) {
				n++
				if e.KeyOff < 0 || e.ValOff+int64(len(e.Val)) > int64(len(data)) || !bytes.Equal(data[e.KeyOff:e.KeyOff+int64(len(e.Key))], e.Key) ||
					!bytes.Equal(data[e.ValOff:e.ValOff+int64(len(e.Val))], e.Val) || len(e.Val) > e.ValLen {
					t.Fatalf("element at %d is not what the file holds there", e.KeyOff)
				}
			}
			bs, err := w.Buckets(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range bs {
				if err := w.Scan(t.Context(), w.List(b), ScanOptions{Workers: 2}, func(int) func(*Elem) { return visit }); err != nil {
					t.Fatal(err)
				}
			}
			if n > len(data)/elemSize {
				t.Fatalf("%d elements in %d bytes", n, len(data))
			}
			cand, err := w.Candidates(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := w.ScanCandidates(t.Context(), "key", cand, ScanOptions{}, visit); err != nil {
				t.Fatal(err)
			}
			st := w.Finish()
			if st.Reached > st.HWM || st.Free > st.HWM {
				t.Fatalf("%d pages reached, %d free, of %d", st.Reached, st.Free, st.HWM)
			}
			list, dropped := w.Damage()
			if len(list) > defaultMaxDamage || dropped > 0 && len(list) < defaultMaxDamage {
				t.Fatalf("%d entries, %d dropped", len(list), dropped)
			}
			return n
		}
		if a, b := count(), count(); a != b {
			t.Fatalf("%d elements, then %d", a, b)
		}
	})
}
