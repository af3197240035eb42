package boltpage

import (
	"bytes"
	"cmp"
	"slices"
)

// judge decides what it means that a page has keys outside its parent's range:
// Separator when the whole page fits between its neighbours (the parent's key is
// the odd one), KeyRange when most of it belongs elsewhere, 0 when only single
// keys are wrong.
func (s *scanner) judge(p *leafPage) Class {
	in, out := 0, 0
	var first, last []byte
	for i := range p.n {
		k := p.edge(i)
		if k == nil {
			continue
		}
		if first == nil {
			first = k
		}
		last = k
		if below(k, p.lo) || notBelow(k, p.hi) {
			out++
		} else {
			in++
		}
	}
	if out == 0 || s.fits(p, first, last) {
		return Separator
	}
	if in > out {
		return 0
	}
	return KeyRange
}

// fits reports whether a page's keys lie between those of the leaves beside it.
func (s *scanner) fits(p *leafPage, first, last []byte) bool {
	if bytes.Compare(first, last) > 0 {
		return false
	}
	refs := s.leaves.refs
	i, ok := slices.BinarySearchFunc(refs, p.ref.seq, func(r leafRef, seq uint32) int { return cmp.Compare(r.seq, seq) })
	if !ok || len(refs) == 1 {
		return false
	}
	if i > 0 {
		if k := s.neighbour(refs[i-1].id, true); k == nil || bytes.Compare(k, first) >= 0 {
			return false
		}
	}
	if i+1 < len(refs) {
		if k := s.neighbour(refs[i+1].id, false); k == nil || bytes.Compare(last, k) >= 0 {
			return false
		}
	}
	return true
}

// neighbour reads the last or the first key of a leaf page.
func (s *scanner) neighbour(id uint32, last bool) []byte {
	b := make([]byte, s.w.f.pageSize)
	n, _ := s.w.f.r.ReadAt(b, int64(id)*s.w.f.pageSize)
	if n < pageHeader+elemSize {
		return nil
	}
	h := parseHeader(b)
	p := leafPage{b: b[:n]}
	if h.id != uint64(id) || h.flags != flagLeaf || h.count == 0 {
		return nil
	}
	if last {
		return p.edge(h.count - 1)
	}
	return p.edge(0)
}
