package boltpage

import (
	"bytes"
	"context"
	"fmt"
)

// Limits of a walk. A zero field takes the default.
type Limits struct {
	MaxDamage int // entries kept in the damage list, default 1000
	MaxDepth  int // levels of a tree, default 48
}

const (
	defaultMaxDamage = 1000
	defaultMaxDepth  = 48
	// maxBranchBytes bounds a branch page with its overflow. bbolt splits pages at
	// the page size; only keys of many KiB make a branch page overflow at all.
	maxBranchBytes = 1 << 20
	// maxBuckets bounds the top-level buckets; etcd has ten.
	maxBuckets = 1024
	// maxBound is how much of a separator key is kept. etcd's are 17 bytes.
	maxBound = 64
)

// A Walk is one pass over a file. It is not safe for concurrent use, though Scan
// runs workers of its own.
type Walk struct {
	f        *File
	lim      Limits
	root     uint64
	claims   *claims
	log      damageLog
	lost     []lostRange
	rejected map[uint64]bool // claimed by a pointer, but the content belongs elsewhere
	buckets  []Bucket
	totals   BucketStats
}

// A lostRange is a part of a bucket whose keys could not be reached.
type lostRange struct {
	bucket string
	lo, hi []byte
}

// A Bucket is a top-level bucket.
type Bucket struct {
	Name     string
	Root     uint64 // page id; 0 when the bucket lives inside its parent's leaf
	Sequence uint64
	ValOff   int64 // file offset of the bucket header
	size     int64 // bytes of header and inline page
}

// Inline reports whether the bucket has no page of its own.
func (b Bucket) Inline() bool { return b.Root == 0 }

// BucketStats counts what a tree is made of.
type BucketStats struct {
	Branches  int    // branch pages, without overflow
	Leaves    int    // leaf pages, without overflow
	Overflow  uint64 // overflow pages of both
	Depth     int
	Elements  int64
	KeyBytes  int64
	ValBytes  int64
	UsedBytes int64 // headers, element tables, keys and values
	AllocSize int64 // bytes of the pages
}

func (s *BucketStats) add(o BucketStats) {
	s.Branches += o.Branches
	s.Leaves += o.Leaves
	s.Overflow += o.Overflow
	s.Depth = max(s.Depth, o.Depth)
	s.Elements += o.Elements
	s.KeyBytes += o.KeyBytes
	s.ValBytes += o.ValBytes
	s.UsedBytes += o.UsedBytes
	s.AllocSize += o.AllocSize
}

// NewWalk starts a pass from the root of the meta page in use.
func (f *File) NewWalk(lim Limits) *Walk {
	w := f.newWalk(lim)
	for i, m := range f.metas {
		if m.State != MetaValid {
			w.log.add(Damage{Page: uint64(i), Class: MetaLost, Detail: m.State.String()})
		}
	}
	if f.chosen >= 0 {
		if !f.noRoot {
			w.root = f.Meta().Root
		}
		if end := f.DBSize(); end > f.size {
			missing := (end - f.size + f.pageSize - 1) / f.pageSize
			w.log.add(Damage{Page: uint64(f.size / f.pageSize), Class: Truncated, Elements: -1,
				Detail: fmt.Sprintf("the file ends at byte %d, the database at %d", f.size, end),
				Lost:   fmt.Sprintf("%d of %d pages", missing, f.HWM())})
		}
		w.freelist()
	}
	return w
}

// NewWalkAt starts a pass from a page that may have been the root bucket's: one
// of the Candidates.
func (f *File) NewWalkAt(root uint64, lim Limits) *Walk {
	w := f.NewWalk(lim)
	w.root = root
	return w
}

func (f *File) newWalk(lim Limits) *Walk {
	if lim.MaxDamage <= 0 {
		lim.MaxDamage = defaultMaxDamage
	}
	if lim.MaxDepth <= 0 || lim.MaxDepth > defaultMaxDepth {
		lim.MaxDepth = defaultMaxDepth
	}
	w := &Walk{f: f, lim: lim, claims: newClaims(f.all), log: damageLog{limit: lim.MaxDamage}, rejected: map[uint64]bool{}}
	w.claims.take(0)
	w.claims.take(1)
	return w
}

func (w *Walk) lose(d Damage) {
	d.Elements = -1
	d.Lo, d.Hi = bytes.Clone(d.Lo), bytes.Clone(d.Hi)
	w.log.add(d)
	if len(w.lost) < w.lim.MaxDamage {
		w.lost = append(w.lost, lostRange{bucket: d.Bucket, lo: d.Lo, hi: d.Hi})
	}
}

// Buckets lists the top-level buckets in key order.
func (w *Walk) Buckets(ctx context.Context) ([]Bucket, error) {
	if w.root == 0 {
		return nil, nil
	}
	l := w.list("", w.root)
	seen := map[string]bool{}
	err := w.Scan(ctx, l, ScanOptions{InOrder: true, Whole: 1 << 20}, func(int) func(*Elem) {
		return func(e *Elem) {
			name := string(e.Key)
			switch {
			case e.Flags&elemBucket == 0:
				w.log.add(Damage{Page: e.Page, Class: NotBucket, Detail: "a plain value among the buckets", Lost: fmt.Sprintf("element %d", e.Index), Elements: 1})
			case e.ValLen < bucketBytes || len(e.Val) < bucketBytes:
				w.log.add(Damage{Page: e.Page, Class: ElementBounds, Bucket: name, Detail: "bucket header too short", Lost: "the whole bucket", Elements: -1})
			case seen[name] || len(w.buckets) >= maxBuckets:
				w.log.add(Damage{Page: e.Page, Class: NotBucket, Bucket: name, Detail: "one bucket too many", Lost: "the whole bucket", Elements: -1})
			default:
				seen[name] = true
				w.buckets = append(w.buckets, Bucket{Name: name, Root: le.Uint64(e.Val), Sequence: le.Uint64(e.Val[8:]), ValOff: e.ValOff, size: int64(e.ValLen)})
			}
		}
	})
	return w.buckets, err
}

// Damage returns what was found so far and how many entries did not fit the list.
func (w *Walk) Damage() (list []Damage, dropped int) { return w.log.list, w.log.dropped }

// Lossy counts the entries, kept or dropped, that lost something.
func (w *Walk) Lossy() int { return w.log.lossy }

// Clean reports that nothing at all was found wrong so far.
func (w *Walk) Clean() bool { return len(w.log.list) == 0 && w.log.dropped == 0 }

// freelist claims the pages of a stored free list and checks that it is one.
func (w *Walk) freelist() {
	m := w.f.Meta()
	if !m.FreelistStored() {
		return
	}
	h, err := w.header(m.Freelist)
	if err != nil || h.id != m.Freelist || h.flags != flagFreelist {
		w.log.add(Damage{Page: m.Freelist, Class: FreelistWrong, Detail: "not a free list page"})
		return
	}
	if !w.claims.take(m.Freelist) || w.claims.takeTail(m.Freelist, uint64(h.overflow)) != uint64(h.overflow) {
		w.log.add(Damage{Page: m.Freelist, Class: FreelistWrong, Detail: "longer than the file"})
	}
}

type header struct {
	id       uint64
	flags    uint16
	count    int
	overflow uint32
}

func parseHeader(b []byte) header {
	return header{id: le.Uint64(b), flags: le.Uint16(b[8:]), count: int(le.Uint16(b[10:])), overflow: le.Uint32(b[12:])}
}

func (w *Walk) header(id uint64) (header, error) {
	var b [pageHeader]byte
	if id >= w.f.pages {
		return header{}, errBeyond
	}
	if _, err := w.f.r.ReadAt(b[:], int64(id)*w.f.pageSize); err != nil {
		return header{}, err
	}
	return parseHeader(b[:]), nil
}
