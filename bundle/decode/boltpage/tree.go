package boltpage

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

var errBeyond = errors.New("beyond the end of the file")

// Leaves are the leaf pages of one bucket in key order, found through the branch
// pages alone: the pages themselves are not read before Scan reads them.
type Leaves struct {
	Bucket string
	Stats  BucketStats // complete after Scan
	refs   []leafRef
	bounds bounds
	inline *Bucket
}

// Len returns the number of leaf pages.
func (l *Leaves) Len() int { return len(l.refs) }

// Release gives up the list of pages; Bucket and Stats stay.
func (l *Leaves) Release() { l.refs, l.bounds = nil, bounds{} }

// A leafRef is a page that should be a leaf, and its place among the bounds.
type leafRef struct{ id, seq uint32 }

// bounds holds the separators of the leaves without one allocation each: entry i
// is the lower bound of the leaf with seq i, entry i+1 its upper bound. An empty
// entry is no bound.
type bounds struct {
	arena []byte
	off   []uint32
}

func (b *bounds) add(key []byte) uint32 {
	if len(key) > maxBound {
		key = key[:maxBound]
	}
	if len(b.arena)+maxBound > math.MaxUint32 {
		key = nil
	}
	if len(b.off) == 0 {
		b.off = append(b.off, 0)
	}
	b.arena = append(b.arena, key...)
	b.off = append(b.off, uint32(len(b.arena)))
	return uint32(len(b.off) - 2)
}

func (b *bounds) at(i uint32) []byte {
	if int(i)+1 >= len(b.off) {
		return nil
	}
	return b.arena[b.off[i]:b.off[i+1]:b.off[i+1]]
}

// below reports key < lo, and notBelow key >= hi, allowing for bounds that were
// cut to maxBound bytes.
func below(key, lo []byte) bool { return len(lo) > 0 && bytes.Compare(key, lo) < 0 }

func notBelow(key, hi []byte) bool {
	if len(hi) == 0 {
		return false
	}
	if len(hi) < maxBound {
		return bytes.Compare(key, hi) >= 0
	}
	return bytes.Compare(key[:min(len(key), maxBound)], hi) > 0
}

// List walks the branch pages of a bucket.
func (w *Walk) List(b Bucket) *Leaves {
	if b.Inline() {
		in := b
		return &Leaves{Bucket: b.Name, inline: &in}
	}
	return w.list(b.Name, b.Root)
}

func (w *Walk) list(bucket string, root uint64) *Leaves {
	l := &Leaves{Bucket: bucket}
	if c, why := w.reach(root); c != 0 {
		w.lose(Damage{Page: root, Class: c, Bucket: bucket, Detail: "root of the tree: " + why, Lost: "the whole bucket"})
		return l
	}
	h, err := w.header(root)
	if err == nil && h.flags == flagBranch {
		w.listBranch(l, root, nil, nil, 1, false)
		return l
	}
	l.leaf(root, nil)
	l.bounds.add(nil)
	l.Stats.Depth = 1
	return l
}

func (l *Leaves) leaf(id uint64, lo []byte) {
	l.refs = append(l.refs, leafRef{id: uint32(id), seq: l.bounds.add(lo)})
}

// reach claims the first page of something, or says why it cannot.
func (w *Walk) reach(id uint64) (Class, string) {
	switch {
	case id >= w.f.HWM():
		return BeyondHWM, fmt.Sprintf("page %d is not below the high water mark %d", id, w.f.HWM())
	case id >= w.f.pages:
		return BeyondEnd, fmt.Sprintf("page %d lies beyond the end of the file", id)
	case !w.claims.take(id):
		return ReachedTwice, fmt.Sprintf("page %d belongs to something else already", id)
	}
	return 0, ""
}

// child is one element of a branch page.
type child struct {
	key []byte
	id  uint64
	bad bool // the key could not be believed and is its predecessor's
}

// listBranch adds what is below the claimed branch page id. A doubtful page is
// one whose header does not say branch: it must pass as one in every element.
func (w *Walk) listBranch(l *Leaves, id uint64, lo, hi []byte, depth int, doubtful bool) bool {
	kids, d := w.readBranch(l, id, lo, hi, doubtful)
	for _, x := range d {
		x.Page, x.Bucket = id, l.Bucket
		if x.Elements == -1 {
			x.Lo, x.Hi = lo, hi
			if doubtful {
				return false
			}
			w.lose(x)
			return true
		}
		w.log.add(x)
	}
	if depth > w.lim.MaxDepth {
		w.lose(Damage{Page: id, Class: TooDeep, Bucket: l.Bucket, Detail: fmt.Sprintf("more than %d levels", w.lim.MaxDepth), Lost: "the subtree", Lo: lo, Hi: hi})
		return true
	}
	l.Stats.Depth = max(l.Stats.Depth, depth+1)
	leafLevel, open := w.leafLevel(kids), false
	closeRun := func(bound []byte) {
		if open {
			l.bounds.add(bound)
			open = false
		}
	}
	for i, c := range kids {
		clo, chi := c.key, hi
		if i == 0 {
			clo = lo
			if len(lo) == 0 || bytes.Compare(c.key, lo) > 0 {
				clo = c.key
			}
		}
		for j := i + 1; j < len(kids); j++ {
			if !kids[j].bad {
				chi = kids[j].key
				break
			}
		}
		if class, why := w.reach(c.id); class != 0 {
			w.lose(Damage{Page: id, Class: class, Bucket: l.Bucket, Detail: fmt.Sprintf("child %d: %s", i, why), Lost: "the subtree", Lo: clo, Hi: chi})
			closeRun(clo)
			continue
		}
		if !leafLevel {
			h, err := w.header(c.id)
			if err != nil || h.id != c.id || h.flags != flagLeaf {
				closeRun(clo)
				doubt := err != nil || h.id != c.id || h.flags != flagBranch
				if !w.listBranch(l, c.id, clo, chi, depth+1, doubt) {
					w.lose(Damage{Page: c.id, Class: wrong(h, c.id), Bucket: l.Bucket, Detail: "not the branch it should be", Lost: "the subtree", Lo: clo, Hi: chi})
				}
				continue
			}
		}
		l.leaf(c.id, clo)
		open = true
	}
	closeRun(hi)
	return true
}

// leafLevel reports whether the children of a branch page are leaves, by the
// first of them whose header can be believed. bbolt's trees are level.
func (w *Walk) leafLevel(kids []child) bool {
	for _, c := range kids {
		h, err := w.header(c.id)
		if err == nil && h.id == c.id && (h.flags == flagLeaf || h.flags == flagBranch) {
			return h.flags == flagLeaf
		}
	}
	return true
}

func wrong(h header, id uint64) Class {
	if h.id != id {
		return WrongID
	}
	return WrongType
}

// readBranch reads the elements of a branch page. Damage with Elements -1 means
// that nothing of the page is usable.
func (w *Walk) readBranch(l *Leaves, id uint64, lo, hi []byte, doubtful bool) (kids []child, ds []Damage) {
	gone := func(c Class, format string, a ...any) ([]child, []Damage) {
		return nil, []Damage{{Class: c, Detail: fmt.Sprintf(format, a...), Lost: "the subtree", Elements: -1}}
	}
	note := func(c Class, format string, a ...any) {
		ds = append(ds, Damage{Class: c, Detail: fmt.Sprintf(format, a...)})
	}
	h, err := w.header(id)
	switch {
	case errors.Is(err, errBeyond):
		return gone(BeyondEnd, "%v", err)
	case err != nil:
		return gone(ReadError, "%v", err)
	case h.id != id && !doubtful:
		return gone(WrongID, "calls itself page %d", h.id)
	}
	ps := uint64(w.f.pageSize)
	ov := uint64(h.overflow)
	if (ov+1)*ps > maxBranchBytes {
		note(Overflow, "branch page of %d pages", ov+1)
		ov = 0
	}
	got := w.claims.takeTail(id, ov)
	if got < ov {
		note(Overflow, "overflow %d meets a page that is taken", ov)
	}
	b := make([]byte, min(int64((got+1)*ps), w.f.size-int64(id*ps)))
	if _, err := w.f.r.ReadAt(b, int64(id*ps)); err != nil {
		return gone(ReadError, "%v", err)
	}
	n := h.count
	if len(b) < pageHeader+elemSize {
		return gone(BeyondEnd, "cut after %d bytes", len(b))
	}
	// The first key lies right behind the element table, so it tells the count.
	if first := int(le.Uint32(b[pageHeader:])); first != elemSize*n {
		if first%elemSize != 0 || first == 0 || pageHeader+first > len(b) {
			if n == 0 || pageHeader+elemSize*n > len(b) {
				return gone(WrongCount, "%d elements, first key at %d", n, first)
			}
			note(WrongCount, "%d elements, first key at %d", n, first)
		} else {
			note(WrongCount, "says %d elements, has %d", n, first/elemSize)
			n = first / elemSize
		}
	}
	if n == 0 {
		return gone(EmptyBranch, "no children")
	}
	if pageHeader+elemSize*n > len(b) {
		return gone(WrongCount, "%d elements do not fit", n)
	}
	kids, bad, outside := branchElements(b, n, lo, hi, note)
	if len(kids) == 0 || doubtful && (bad > 0 || len(ds) > 0) {
		return gone(ElementBounds, "no usable element")
	}
	if 2*outside > len(kids) {
		// A pointer to somebody else's subtree. Give it back for its owner.
		for o := range got + 1 {
			w.claims.release(id + o)
		}
		return gone(KeyRange, "the subtree belongs elsewhere")
	}
	l.Stats.Branches++
	l.Stats.Overflow += got
	used := pageHeader + elemSize*n
	for _, k := range kids {
		used += len(k.key)
	}
	l.Stats.UsedBytes += int64(used)
	l.Stats.AllocSize += int64((got + 1) * ps)
	return kids, ds
}

// branchElements decodes n elements. A key that breaks the order or the range is
// replaced by its predecessor's, which only loosens the bounds of two children.
func branchElements(b []byte, n int, lo, hi []byte, note func(Class, string, ...any)) (kids []child, bad, outside int) {
	kids = make([]child, 0, n)
	prev, before, end := lo, lo, uint64(pageHeader+elemSize*n)
	distrust := func(i int, c Class, why string) {
		bad++
		kids[i].bad, kids[i].key = true, before
		note(c, "key of child %d %s", i, why)
	}
	for i := range n {
		e := pageHeader + elemSize*i
		pos, ks := uint64(e)+uint64(le.Uint32(b[e:])), uint64(le.Uint32(b[e+4:]))
		kids = append(kids, child{key: prev, id: le.Uint64(b[e+8:])})
		if ks == 0 || ks > MaxKey || pos+ks > uint64(len(b)) {
			before = prev
			distrust(i, ElementBounds, "out of the page")
			continue
		}
		if pos < end {
			before = prev
			distrust(i, ElementOverlap, "overlaps its neighbour")
			continue
		}
		key := b[pos : pos+ks : pos+ks]
		end = pos + ks
		switch {
		case notBelow(key, hi) || i == 0 && below(key, lo):
			before = prev
			outside++
			distrust(i, KeyRange, "is outside the parent's range")
		case i > 0 && bytes.Compare(key, prev) <= 0 && !kids[i-1].bad && bytes.Compare(key, before) > 0:
			// the neighbour before is the odd one
			distrust(i-1, KeyOrder, "is above its neighbour's")
			kids[i].key, prev = key, key
		case i > 0 && bytes.Compare(key, prev) <= 0:
			before = prev
			distrust(i, KeyOrder, "is not above its neighbour's")
		default:
			kids[i].key, before, prev = key, prev, key
		}
	}
	return kids, bad, outside
}
