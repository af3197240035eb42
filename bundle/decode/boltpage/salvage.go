package boltpage

import (
	"context"
	"slices"
)

// A Leaf is an unreached page that reads as a leaf.
type Leaf struct {
	Page        uint64
	First, Last []byte // keys
	Elements    int
	Buckets     bool // all elements are buckets: it may have been the root
}

// maxCandidates bounds the list of unreached leaves.
const maxCandidates = 1 << 20

// Candidates looks through the pages no pointer reaches, and those whose content
// was refused, for leaves that are whole: chained elements, ascending keys. They
// may be what a broken branch page held, or remains of earlier transactions;
// only the caller can tell, by their keys. Candidates reads every unreached page
// once. The list is in order of position.
func (w *Walk) Candidates(ctx context.Context) ([]Leaf, error) {
	var out []Leaf
	ps := w.f.pageSize
	b := make([]byte, ps)
	for id := uint64(2); id < w.f.all && len(out) < maxCandidates; id++ {
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if w.claims.has(id) && !w.rejected[id] {
			continue
		}
		n, _ := w.f.r.ReadAt(b, int64(id)*ps)
		if n < pageHeader+elemSize {
			continue
		}
		h := parseHeader(b)
		if h.id != id || h.flags != flagLeaf || h.count == 0 || int(le.Uint32(b[pageHeader+4:])) != elemSize*h.count || !chained(b[:n], h.count) {
			continue
		}
		p := leafPage{b: b[:n]}
		l := Leaf{Page: id, First: slices.Clone(p.edge(0)), Last: slices.Clone(p.edge(h.count - 1)), Elements: h.count, Buckets: true}
		for i := range h.count {
			if e := pageHeader + elemSize*i; e+elemSize > n || le.Uint32(b[e:])&elemBucket == 0 {
				l.Buckets = false
				break
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// LostKey reports whether a key of the bucket lies in a range whose pages could
// not be reached. With no meta page at all every key does.
func (w *Walk) LostKey(bucket string, key []byte) bool {
	if w.root == 0 {
		return true
	}
	for _, r := range w.lost {
		if (r.bucket == bucket || r.bucket == "") && !below(key, r.lo) && !notBelow(key, r.hi) {
			return true
		}
	}
	return false
}

// Lost reports whether any range of the bucket could not be reached.
func (w *Walk) Lost(bucket string) bool {
	if w.root == 0 {
		return true
	}
	return slices.ContainsFunc(w.lost, func(r lostRange) bool { return r.bucket == bucket || r.bucket == "" })
}

// ScanCandidates hands out the elements of unreached leaves, marked Salvaged.
// Pages that overlap are not told apart: the same element may come twice.
func (w *Walk) ScanCandidates(ctx context.Context, bucket string, pages []Leaf, o ScanOptions, visit func(*Elem)) error {
	l := &Leaves{Bucket: bucket}
	for _, p := range pages {
		l.refs = append(l.refs, leafRef{id: uint32(p.Page), seq: l.bounds.add(nil)})
		l.bounds.add(nil)
	}
	if o.Head <= 0 {
		o.Head = defaultHead
	}
	o.Head = max(o.Head, o.Whole)
	s := newScanner(w, l, o, visit)
	s.salvage = true
	s.run(ctx, l.refs)
	return ctx.Err()
}
