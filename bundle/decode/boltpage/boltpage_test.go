package boltpage

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
)

// sample describes a bolt file shaped like etcd's: one big bucket with revision
// keys, some small ones, churn so that free pages exist.
type sample struct {
	pageSize int
	records  int
	maxValue int
	freelist bool
	seed     uint64
}

func revKey(n int) []byte {
	k := make([]byte, 17)
	binary.BigEndian.PutUint64(k, uint64(n))
	k[8] = '_'
	return k
}

// write makes the file and returns its path.
func (s sample) write(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: s.pageSize, NoFreelistSync: !s.freelist, NoSync: true, NoGrowSync: true})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(s.seed, 1))
	value := func() []byte {
		v := make([]byte, 1+rng.IntN(s.maxValue))
		for i := range v {
			v[i] = byte(rng.Uint32())
		}
		return v
	}
	put := func(bucket string, k, v []byte) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(bucket))
			if err != nil {
				return err
			}
			b.FillPercent = 0.9
			return b.Put(k, v)
		}
	}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range []string{"alarm", "cluster", "lease", "members", "meta"} {
		check(db.Update(put(b, []byte(b+"-key"), []byte("value of "+b))))
	}
	for at := 0; at < s.records; {
		check(db.Update(func(tx *bolt.Tx) error {
			for range 200 {
				if at++; at > s.records {
					break
				}
				if err := put("key", revKey(at), value())(tx); err != nil {
					return err
				}
			}
			return nil
		}))
		if at%1000 < 200 && at > 1000 {
			check(db.Update(func(tx *bolt.Tx) error {
				for range 100 {
					if err := tx.Bucket([]byte("key")).Delete(revKey(1 + rng.IntN(at))); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	}
	check(db.Close())
	return path
}

type pair struct{ k, v []byte }

// withBolt is the oracle: bbolt's own cursor.
func withBolt(t testing.TB, path string) map[string][]pair {
	t.Helper()
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	out := map[string][]pair{}
	err = db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				out[string(name)] = append(out[string(name)], pair{bytes.Clone(k), bytes.Clone(v)})
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// walkAll reads every bucket whole, in key order, by one worker.
func walkAll(t testing.TB, data []byte) (map[string][]pair, *Walk) {
	t.Helper()
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, nil
	}
	w := f.NewWalk(Limits{})
	return collectWalk(t, w, ScanOptions{InOrder: true, Whole: 1 << 20}), w
}

func collectWalk(t testing.TB, w *Walk, o ScanOptions) map[string][]pair {
	t.Helper()
	bs, err := w.Buckets(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]pair{}
	for _, b := range bs {
		parts := make([][]pair, max(1, o.Workers))
		if err := w.Scan(context.Background(), w.List(b), o, func(i int) func(*Elem) {
			return func(e *Elem) {
				if len(e.Val) != e.ValLen {
					t.Errorf("value of %d bytes came as %d", e.ValLen, len(e.Val))
				}
				parts[i] = append(parts[i], pair{bytes.Clone(e.Key), bytes.Clone(e.Val)})
			}
		}); err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			out[b.Name] = append(out[b.Name], p...)
		}
	}
	return out
}

func same(a, b map[string][]pair) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d buckets, want %d", len(a), len(b))
	}
	for n, want := range b {
		got := a[n]
		if len(got) != len(want) {
			return fmt.Errorf("bucket %s: %d elements, want %d", n, len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i].k, want[i].k) || !bytes.Equal(got[i].v, want[i].v) {
				return fmt.Errorf("bucket %s: element %d differs", n, i)
			}
		}
	}
	return nil
}

func TestAgreesWithBolt(t *testing.T) {
	for _, s := range []sample{
		{pageSize: 4096, records: 3000, maxValue: 3000},
		{pageSize: 4096, records: 5000, maxValue: 40, freelist: true},
		{pageSize: 1024, records: 3000, maxValue: 9000},
		{pageSize: 16384, records: 2000, maxValue: 700},
		{pageSize: 65536, records: 3000, maxValue: 3000},
		{pageSize: 4096, records: 3, maxValue: 10},
	} {
		t.Run(fmt.Sprintf("page%d-%d", s.pageSize, s.records), func(t *testing.T) {
			path := s.write(t)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := withBolt(t, path)
			got, w := walkAll(t, data)
			if err := same(got, want); err != nil {
				t.Error(err)
			}
			if d, _ := w.Damage(); len(d) > 0 {
				t.Errorf("damage in a clean file: %v", d)
			}
			f, _ := Open(bytes.NewReader(data), int64(len(data)))
			two := collectWalk(t, f.NewWalk(Limits{}), ScanOptions{InOrder: true, Whole: 1 << 20, Workers: 3})
			if err := same(two, want); err != nil {
				t.Errorf("three workers: %v", err)
			}
			checkPages(t, path, w)
		})
	}
}

// checkPages compares the page count with bbolt's, which loads the free list.
func checkPages(t *testing.T, path string, w *Walk) {
	t.Helper()
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	st := w.Finish()
	if free := uint64(db.Stats().FreePageN + db.Stats().PendingPageN); st.Free != free {
		t.Errorf("free pages %d, bbolt says %d", st.Free, free)
	}
	var n uint64
	w.Unreached(func(_, c uint64) { n += c })
	if n != st.Free {
		t.Errorf("unreached pages %d, free %d", n, st.Free)
	}
}

func TestOffsets(t *testing.T) {
	data, err := os.ReadFile(sample{pageSize: 4096, records: 800, maxValue: 9000}.write(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	w := f.NewWalk(Limits{})
	bs, _ := w.Buckets(t.Context())
	n := 0
	for _, b := range bs {
		_ = w.Scan(t.Context(), w.List(b), ScanOptions{}, func(int) func(*Elem) {
			return func(e *Elem) {
				n++
				if !bytes.Equal(data[e.KeyOff:e.KeyOff+int64(len(e.Key))], e.Key) {
					t.Fatalf("key at %d differs", e.KeyOff)
				}
				if !bytes.Equal(data[e.ValOff:e.ValOff+int64(len(e.Val))], e.Val) {
					t.Fatalf("value at %d differs", e.ValOff)
				}
				if want := min(e.ValLen, defaultHead); len(e.Val) < want {
					t.Fatalf("head of %d bytes, want %d", len(e.Val), want)
				}
			}
		})
	}
	if n != 805 {
		t.Errorf("%d elements, want 805", n)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want error
	}{
		{"empty", nil, ErrEmpty},
		{"short", make([]byte, 100), ErrTooSmall},
		{"zeros", make([]byte, 1<<16), ErrNotBolt},
		{"text", bytes.Repeat([]byte("not a database\n"), 4096), ErrNotBolt},
	} {
		if _, err := Open(bytes.NewReader(c.data), int64(len(c.data))); err != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	data, err := os.ReadFile(sample{pageSize: 4096, records: 100, maxValue: 100}.write(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, off := range []int{16, 4096 + 16} {
		binary.BigEndian.PutUint32(data[off:], magic)
	}
	if _, err := Open(bytes.NewReader(data), int64(len(data))); err != ErrByteSwapped {
		t.Errorf("swapped: %v", err)
	}
}
