package etcdstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"coldplane/bundle/decode/boltpage"
)

// BuildSpec is storetest.Build; the package cannot import it itself.
var BuildSpec func(spec string) ([]byte, error)

const testPage = 4096

// damaged is a file that can be damaged and mended again.
type damaged struct {
	orig, data []byte
	live       []uint64 // reachable pages
	branches   []uint64
	leaves     []uint64
	rng        *rand.Rand
	size       int
	touched    map[int]bool // pages that differ from the original
}

func (d *damaged) reset() {
	for p := range d.touched {
		copy(d.data[p*testPage:(p+1)*testPage], d.orig[p*testPage:])
	}
	d.touched = map[int]bool{}
	d.size = len(d.orig)
}

func (d *damaged) poke(off int, b ...byte) {
	for i, c := range b {
		if off+i < len(d.data) {
			d.data[off+i] = c
			d.touched[(off+i)/testPage] = true
		}
	}
}

func (d *damaged) flip(off int) { d.poke(off, d.data[off]^1<<d.rng.IntN(8)) }

func (d *damaged) pick(list []uint64) int { return int(list[d.rng.IntN(len(list))]) * testPage }

// element returns the offset of a random entry of a page's element table.
func (d *damaged) element(page int) int {
	n := max(1, int(binary.LittleEndian.Uint16(d.orig[page+10:])))
	return page + 16 + 16*d.rng.IntN(min(n, (testPage-16)/16))
}

func (d *damaged) poke32(off int, v uint32) { d.poke(off, binary.LittleEndian.AppendUint32(nil, v)...) }
func (d *damaged) poke64(off int, v uint64) { d.poke(off, binary.LittleEndian.AppendUint64(nil, v)...) }

// meta rewrites a field of both meta pages and repairs their checksums.
func (d *damaged) meta(off int, v uint64) {
	for p := 0; p < 2; p++ {
		m := p*testPage + 16
		d.poke64(m+off, v)
		h := fnv.New64a()
		h.Write(d.data[m : m+56])
		d.poke64(m+56, h.Sum64())
	}
}

func (d *damaged) anyLive() int { return d.pick(d.live) + d.rng.IntN(testPage) }

var extremes = []uint32{0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0, 0xffff, testPage, 1 << 20}

var classes = []struct {
	name string
	do   func(d *damaged)
}{
	{"bit-anywhere", func(d *damaged) { d.flip(d.rng.IntN(len(d.orig))) }},
	{"bit-in-live", func(d *damaged) { d.flip(d.anyLive()) }},
	{"8-bits-in-live", func(d *damaged) {
		for range 8 {
			d.flip(d.anyLive())
		}
	}},
	{"page-header", func(d *damaged) { d.poke(d.pick(d.live)+d.rng.IntN(16), byte(d.rng.Uint32())) }},
	{"element-table", func(d *damaged) {
		d.poke(d.element(d.pick(d.live))+d.rng.IntN(16), byte(d.rng.Uint32()))
	}},
	{"element-extreme", func(d *damaged) {
		d.poke32(d.element(d.pick(d.live))+4*d.rng.IntN(4), extremes[d.rng.IntN(len(extremes))])
	}},
	{"truncate", func(d *damaged) { d.size = d.rng.IntN(len(d.orig)) }},
	{"truncate-page", func(d *damaged) { d.size = d.rng.IntN(len(d.orig)/testPage) * testPage }},
	{"page-swap", func(d *damaged) {
		a, b := d.pick(d.live), d.pick(d.live)
		d.poke(a, d.orig[b:b+testPage]...)
		d.poke(b, d.orig[a:a+testPage]...)
	}},
	{"page-zero", func(d *damaged) { d.poke(d.pick(d.live), make([]byte, testPage)...) }},
	{"page-random", func(d *damaged) {
		p := d.pick(d.live)
		for i := range testPage {
			d.poke(p+i, byte(d.rng.Uint32()))
		}
	}},
	{"lost-write", func(d *damaged) {
		a, b := d.pick(d.leaves), d.pick(d.leaves)
		d.poke(a, d.orig[b:b+testPage]...)
		d.poke64(a, uint64(a/testPage))
	}},
	{"torn-sector", func(d *damaged) {
		p := d.pick(d.live) + 512*d.rng.IntN(8)
		d.poke(p, make([]byte, 512)...)
	}},
	{"branch-cycle", func(d *damaged) {
		b := d.pick(d.branches)
		d.poke64(d.element(b)+8, d.branches[d.rng.IntN(len(d.branches))])
	}},
	{"branch-out", func(d *damaged) {
		d.poke64(d.element(d.pick(d.branches))+8, d.rng.Uint64()>>d.rng.IntN(50))
	}},
	{"huge-count", func(d *damaged) { d.poke(d.pick(d.live)+10, 0xff, byte(d.rng.Uint32())) }},
	{"huge-overflow", func(d *damaged) { d.poke32(d.pick(d.live)+12, extremes[1+d.rng.IntN(len(extremes)-1)]) }},
	{"meta-bits", func(d *damaged) {
		for range 1 + d.rng.IntN(3) {
			d.flip(d.rng.IntN(2)*testPage + d.rng.IntN(80))
		}
	}},
	{"meta-forged", func(d *damaged) {
		d.meta([]int{8, 16, 40}[d.rng.IntN(3)], []uint64{uint64(d.rng.IntN(len(d.orig) / testPage)), d.rng.Uint64(), 0, testPage, 2048}[d.rng.IntN(5)])
	}},
	{"freelist-forged", func(d *damaged) {
		p := d.pick(d.live)
		d.poke(p+8, 0x10, 0, 0xff, 0xff)
		d.meta(32, uint64(p/testPage))
	}},
}

// recSum identifies a record and its content.
type recSum struct {
	rev  Revision
	tomb bool
	crc  uint32
}

type place struct{ first, last int } // pages an element lies on

// readAll returns every record of a file as Read sees it.
func readAll(t testing.TB, data []byte) (*Store, map[recSum]place, error) {
	recs := map[recSum]place{}
	var s *Store
	visit := func(e *boltpage.Elem) {
		main, sub, tomb, _ := parseRevKey(e.Key)
		end := min(e.ValOff+int64(e.ValLen), int64(len(data)))
		recs[recSum{Revision{main, sub}, tomb, crc32.Checksum(data[min(e.KeyOff, end):end], castagnoli)}] = place{int(e.Page), int(max(end-1, 0) / testPage)}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := Read(ctx, bytes.NewReader(data), int64(len(data)), Options{Workers: 1, visit: visit})
	return s, recs, err
}

// silent reports that nothing of the store says that something is wrong.
func silent(s *Store) bool {
	return s.Clean() && s.MissingTotal == 0 && s.Undecoded == 0 && s.Strange == 0 && len(s.Problems) == 0 && len(s.Buckets) >= 8
}

// RunDamage damages a file per times in each class and holds the reader to its
// contract: no panic, no hang, nothing lost without a word beyond one in a
// thousand, and at least 95 % of what lies on undamaged pages still read.
func RunDamage(t *testing.T, per int) {
	d := damageSource(t)
	_, want, err := readAll(t, d.orig)
	if err != nil {
		t.Fatal(err)
	}
	var runs, refused, identical, flagged, values, lost int
	var intact, found int64
	var slowest time.Duration
	for ci, c := range classes {
		var cFlag, cSame, cVal, cLost, cRef int
		var cIntact, cFound int64
		for i := range per {
			d.reset()
			d.rng = rand.New(rand.NewPCG(uint64(ci), uint64(i)))
			c.do(d)
			start := time.Now()
			s, got, err := readAll(t, d.data[:d.size])
			took := time.Since(start)
			slowest = max(slowest, took)
			if took > 8*time.Second {
				t.Errorf("%s %d: took %v", c.name, i, took)
			}
			runs++
			if err != nil {
				cRef++
				continue
			}
			missing, other := 0, 0
			revs := map[Revision]bool{}
			for r := range got {
				revs[r.rev] = true
			}
			for r, p := range want {
				whole := true
				for pg := p.first; pg <= p.last; pg++ {
					whole = whole && !d.touched[pg] && (pg+1)*testPage <= d.size
				}
				if whole {
					cIntact++
				}
				if _, ok := got[r]; ok {
					if whole {
						cFound++
					}
				} else if revs[r.rev] {
					other++
				} else {
					missing++
				}
			}
			if testing.Verbose() && missing > 100 && d.size == len(d.orig) {
				t.Logf("%s %d: %d missing, %d salvaged, first damage %v", c.name, i, missing, s.Salvaged, s.Damage[:min(4, len(s.Damage))])
			}
			added := max(0, len(got)-len(want))
			switch {
			case !silent(s):
				cFlag++
			case missing > 0 || added > 0 || s.Pages.HWM*testPage < uint64(len(d.orig))/2:
				cLost++
				t.Logf("%s %d: %d records lost, %d added, without a word", c.name, i, missing, added)
			case other > 0:
				cVal++
			default:
				cSame++
			}
		}
		refused, flagged, identical, values, lost = refused+cRef, flagged+cFlag, identical+cSame, values+cVal, lost+cLost
		intact, found = intact+cIntact, found+cFound
		t.Logf("%-16s %4d flagged %4d same %4d values only %4d refused %3d silent loss, intact records read %.2f%%",
			c.name, cFlag, cSame, cVal, cRef, cLost, 100*float64(cFound)/float64(max(1, cIntact)))
	}
	share := float64(found) / float64(max(1, intact))
	t.Logf("%d files: %d flagged, %d same, %d value bytes only, %d refused, %d lost without a word; %.2f%% of %d records on intact pages read; slowest %v",
		runs, flagged, identical, values, refused, lost, 100*share, intact, slowest)
	if float64(lost) > 0.001*float64(runs) {
		t.Errorf("%d of %d files lost records without a word", lost, runs)
	}
	if share < 0.95 {
		t.Errorf("only %.1f%% of the records on intact pages were read", 100*share)
	}
}

func damageSource(t *testing.T) *damaged {
	t.Helper()
	if BuildSpec == nil {
		t.Fatal("BuildSpec is not set")
	}
	var b strings.Builder
	b.WriteString("member 8e9e05c52164694d name=cp1 peer=https://10.0.0.1:2380 client=https://10.0.0.1:2379\nlease 70 count=40\n")
	for r := range 5 {
		fmt.Fprintf(&b, "put /registry/pods/ns%d/p count=60 size=1800 gvk=v1/Pod\nput /registry/events/a/e%d count=120 size=400 gvk=v1/Event\nput /registry/configmaps/a/big count=3 size=9000\n", r, r)
		fmt.Fprintf(&b, "delete /registry/pods/ns%d/p-00003\n", r)
	}
	b.WriteString("compact 300\nput /registry/leases/kube-node-lease/n times=300 size=300\nfree 40\n")
	data, err := BuildSpec(b.String())
	if err != nil {
		t.Fatal(err)
	}
	// leave out what the file has grown beyond its pages
	f, err := boltpage.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	data = data[:f.DBSize()]
	d := &damaged{orig: data, data: bytes.Clone(data), touched: map[int]bool{}, size: len(data)}
	w := f.NewWalk(boltpage.Limits{})
	bs, err := w.Buckets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, bk := range bs {
		_ = w.Scan(t.Context(), w.List(bk), boltpage.ScanOptions{}, func(int) func(*boltpage.Elem) { return func(*boltpage.Elem) {} })
	}
	for p := uint64(2); p < f.HWM(); p++ {
		if !w.Reached(p) {
			continue
		}
		h := data[p*testPage:]
		if binary.LittleEndian.Uint64(h) != p {
			continue // overflow
		}
		d.live = append(d.live, p)
		switch binary.LittleEndian.Uint16(h[8:]) {
		case 1:
			d.branches = append(d.branches, p)
		case 2:
			d.leaves = append(d.leaves, p)
		}
	}
	if len(d.branches) == 0 || len(d.leaves) < 100 {
		t.Fatalf("source file too small: %d branch, %d leaf pages", len(d.branches), len(d.leaves))
	}
	return d
}
