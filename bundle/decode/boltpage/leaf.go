package boltpage

import (
	"bytes"
	"fmt"
)

// A leafPage is a leaf whose header and extent have been judged.
type leafPage struct {
	ref    leafRef
	id     uint64
	base   int64  // file offset of the page
	b      []byte // the bytes at hand, from the page's start
	table  []byte // header and element table; b or a longer copy
	n      int    // elements
	ext    int64  // bytes that belong to the page
	lo, hi []byte
}

// page judges one listed page and hands out its elements. b holds the bytes at
// hand from the page's start; they may end before the page does, or after.
func (s *scanner) page(r leafRef, b []byte) {
	h, id, ps := parseHeader(b), uint64(r.id), s.w.f.pageSize
	p := leafPage{ref: r, id: id, base: int64(id) * ps, b: b, n: h.count, lo: s.leaves.bounds.at(r.seq), hi: s.leaves.bounds.at(r.seq + 1)}
	if h.id != id || h.flags != flagLeaf {
		if h.id == id && h.flags == flagBranch || !s.strictLeaf(p, h) {
			s.deferred = append(s.deferred, r)
			return
		}
		c, what := WrongType, fmt.Sprintf("type %#x, read as a leaf all the same", h.flags)
		if h.id != id {
			c, what = WrongID, fmt.Sprintf("calls itself page %d, content fits", h.id)
		}
		s.note(id, c, 0, "", what)
	}
	limit := min(int64(s.w.f.pages)*ps, s.w.f.size) - p.base
	p.ext = (int64(h.overflow) + 1) * ps
	if p.ext > limit {
		s.note(id, BeyondEnd, 0, "", fmt.Sprintf("%d pages, %d bytes left in the file", int64(h.overflow)+1, limit))
		p.ext = limit
	}
	if !s.count(&p, limit) {
		s.lose(r, WrongCount, fmt.Sprintf("%d elements do not fit", h.count))
		return
	}
	tail := uint64((p.ext+ps-1)/ps) - 1
	if tail > 0 && !s.salvage {
		if got := s.w.claims.takeTail(id, tail); got < tail {
			s.note(id, ReachedTwice, 0, "", fmt.Sprintf("its page %d of %d belongs to something else", got+1, tail+1))
			p.ext = int64(got+1) * ps
			tail = got
		}
	}
	s.stats.Leaves++
	s.stats.Overflow += tail
	s.stats.AllocSize += int64(tail+1) * ps
	s.fetch(&p)
	if int64(len(p.b)) > p.ext {
		p.b = p.b[:p.ext]
	}
	s.elements(&p)
}

// fetch replaces the bytes at hand by the page's whole extent where that costs
// less than asking for each element's beginning.
func (s *scanner) fetch(p *leafPage) {
	if p.ext <= int64(len(p.b)) || p.ext > chunkBytes {
		return
	}
	// Most elements begin on the first page, and their heads with them.
	away := 0
	for i := range p.n {
		e := pageHeader + elemSize*i
		vs := int64(le.Uint32(p.table[e+12:]))
		if vs > int64(s.o.Whole) {
			vs = min(vs, int64(s.o.Head))
		}
		if int64(e)+int64(le.Uint32(p.table[e+4:]))+int64(le.Uint32(p.table[e+8:]))+vs > int64(len(p.b)) {
			away++
		}
	}
	if away <= 2 && s.o.Whole == 0 {
		return
	}
	if cap(s.table) < int(p.ext) {
		s.table = make([]byte, chunkBytes)
	}
	if n, _ := s.w.f.r.ReadAt(s.table[:p.ext], p.base); n == int(p.ext) {
		p.b = s.table[:n]
		p.table = p.b
	}
}

// count settles how many elements the page has and how far it really goes. The
// first key lies right behind the element table and the last value ends on the
// page's last page: both are checked against the header, and win over it.
func (s *scanner) count(p *leafPage, limit int64) bool {
	ps := s.w.f.pageSize
	p.table = p.b
	if p.n > 0 && len(p.b) >= pageHeader+elemSize {
		first := int(le.Uint32(p.b[pageHeader+4:]))
		if first != elemSize*p.n {
			if first > 0 && first%elemSize == 0 && int64(pageHeader+first) <= p.ext && first/elemSize <= 0xffff && chained(p.b, first/elemSize) {
				s.note(p.id, WrongCount, 0, "", fmt.Sprintf("says %d elements, has %d", p.n, first/elemSize))
				p.n = first / elemSize
			} else if !chained(p.b, p.n) {
				s.note(p.id, WrongCount, 0, "", fmt.Sprintf("%d elements, first key at %d", p.n, first))
			}
		}
	} else if p.n == 0 && len(p.b) >= pageHeader+elemSize && !s.salvage {
		// An empty leaf is legal only as the root of an empty bucket.
		if first := int(le.Uint32(p.b[pageHeader+4:])); first > 0 && first%elemSize == 0 && len(p.lo)+len(p.hi) > 0 && chained(p.b, first/elemSize) {
			s.note(p.id, WrongCount, 0, "", fmt.Sprintf("says 0 elements, has %d", first/elemSize))
			p.n = first / elemSize
		}
	}
	need := int64(pageHeader + elemSize*p.n)
	if need > p.ext {
		return false
	}
	if need > int64(len(p.b)) {
		t := make([]byte, need)
		if n, _ := s.w.f.r.ReadAt(t, p.base); int64(n) < need {
			return false
		}
		p.table = t
	}
	if p.n == 0 {
		return true
	}
	e := pageHeader + elemSize*(p.n-1)
	end := int64(e) + int64(le.Uint32(p.table[e+4:])) + int64(le.Uint32(p.table[e+8:])) + int64(le.Uint32(p.table[e+12:]))
	have, want := p.ext/ps, (end+ps-1)/ps
	if have == want || have == end/ps+1 || p.ext == limit {
		return true
	}
	if chained(p.table, p.n) && want*ps <= limit+ps {
		s.note(p.id, Overflow, 0, "", fmt.Sprintf("says %d pages, its content takes %d", have, want))
		p.ext = min(want*ps, limit)
	}
	return true
}

// chained reports that the n elements of table follow each other without a hole,
// the way bbolt writes them. Only the part of the table that is at hand counts.
func chained(table []byte, n int) bool {
	end := int64(pageHeader + elemSize*n)
	for i := range n {
		e := pageHeader + elemSize*i
		if e+elemSize > len(table) {
			return i > 1
		}
		if int64(e)+int64(le.Uint32(table[e+4:])) != end || le.Uint32(table[e+8:]) == 0 {
			return false
		}
		end += int64(le.Uint32(table[e+8:])) + int64(le.Uint32(table[e+12:]))
	}
	return true
}

// strictLeaf decides whether a page with a wrong header is the leaf it should
// be: its elements must be chained and its keys inside the parent's range.
func (s *scanner) strictLeaf(p leafPage, h header) bool {
	n := h.count
	if first := int(le.Uint32(p.b[min(len(p.b)-4, pageHeader+4):])); n == 0 || first != elemSize*n || !chained(p.b, n) {
		return false
	}
	first, last := p.edge(0), p.edge(n-1)
	if first == nil || last == nil || len(p.lo)+len(p.hi) == 0 {
		return false
	}
	return !below(first, p.lo) && !notBelow(first, p.hi) && !notBelow(last, p.hi)
}

// edge returns the key of element i when its bytes are at hand.
func (p *leafPage) edge(i int) []byte {
	e := pageHeader + elemSize*i
	if i < 0 || e+elemSize > len(p.b) {
		return nil
	}
	pos, ks := int64(e)+int64(le.Uint32(p.b[e+4:])), int64(le.Uint32(p.b[e+8:]))
	if ks == 0 || ks > MaxKey || pos+ks > int64(len(p.b)) {
		return nil
	}
	return p.b[pos : pos+ks]
}

// elements hands out the elements of a page whose table is at hand.
func (s *scanner) elements(p *leafPage) {
	t, n := p.table, p.n
	prevEnd := int64(pageHeader + elemSize*n)
	used := prevEnd
	var prev, before []byte
	x := &s.elem
	x.Page, x.Salvaged = p.id, s.salvage
	head := pageHeader + elemSize*n
	x.Head, x.Base, x.Extent = t[:head:head], p.base, p.ext
	rangeOK, judged := len(p.lo)+len(p.hi) == 0, false
	for i := range n {
		e := pageHeader + elemSize*i
		start := int64(e) + int64(le.Uint32(t[e+4:]))
		ks, vs := int64(le.Uint32(t[e+8:])), int64(le.Uint32(t[e+12:]))
		end := start + ks + vs
		next := end
		if i+1 < n {
			next = int64(e) + elemSize + int64(le.Uint32(t[e+elemSize+4:]))
		}
		if start != prevEnd || end != next {
			var ok bool
			if start, vs, ok = s.mend(p, i, prevEnd, start, ks, vs, next); !ok {
				continue
			}
			end = start + ks + vs
		}
		if ks == 0 || ks > MaxKey || end > p.ext {
			s.note(p.id, ElementBounds, 1, "one element", fmt.Sprintf("element %d out of the page", i))
			if next > prevEnd && next <= p.ext {
				prevEnd = next
			}
			continue
		}
		prevEnd = end
		key, val, ok := s.bytes(p, start, ks, vs)
		if !ok {
			s.note(p.id, ReadError, 1, "one element", fmt.Sprintf("element %d cannot be read", i))
			continue
		}
		if prev != nil && bytes.Compare(key, prev) <= 0 {
			if before == nil || bytes.Compare(key, before) <= 0 {
				s.note(p.id, KeyOrder, 1, "one element", fmt.Sprintf("element %d is not above its neighbour", i))
				continue
			}
			s.note(p.id, KeyOrder, 0, "", fmt.Sprintf("element %d is above its neighbour", i-1))
			prev = before
		}
		if !rangeOK && (below(key, p.lo) || notBelow(key, p.hi)) {
			if !judged {
				judged = true
				switch s.judge(p) {
				case Separator:
					rangeOK = true
					s.note(p.id, Separator, 0, "", "outside the parent's range, fits its neighbours")
				case KeyRange:
					s.lose(p.ref, KeyRange, "the content belongs elsewhere")
					s.rejected = append(s.rejected, p.id)
					return
				}
			}
			if !rangeOK {
				s.note(p.id, KeyRange, 1, "one element", fmt.Sprintf("element %d is outside the parent's range", i))
				continue
			}
		}
		before, prev = prev, key
		used += ks + vs
		s.stats.Elements++
		s.stats.KeyBytes += ks
		s.stats.ValBytes += vs
		x.Index, x.Flags = i, le.Uint32(t[e:])
		if x.Flags&elemBucket != 0 && s.leaves.Bucket != "" {
			s.note(p.id, NotBucket, 1, "what it holds", "a bucket inside a bucket")
			continue
		}
		x.Key, x.Val, x.ValLen = key, val, int(vs)
		x.KeyOff, x.ValOff = p.base+start, p.base+start+ks
		s.visit(x)
	}
	s.stats.UsedBytes += used
}

// mend decides about an element that does not begin where its predecessor ends,
// or does not end where its successor begins. It returns where the element is
// believed to be, or that it is lost.
func (s *scanner) mend(p *leafPage, i int, prevEnd, start, ks, vs, next int64) (int64, int64, bool) {
	switch {
	case start != prevEnd && prevEnd+ks+vs == next:
		s.note(p.id, ElementOverlap, 0, "", fmt.Sprintf("element %d: position wrong by %d, mended", i, start-prevEnd))
		return prevEnd, vs, true
	case start == prevEnd && next >= start+ks && next <= p.ext:
		// its length is wrong, or its successor's position is: the successor's own
		// successor tells
		if trusted(p.table, p.n, i+1) {
			s.note(p.id, ElementOverlap, 0, "", fmt.Sprintf("element %d: length wrong by %d, mended", i, start+ks+vs-next))
			return start, next - start - ks, true
		}
		s.note(p.id, ElementOverlap, 0, "", fmt.Sprintf("a hole or an overlap behind element %d", i))
		return start, vs, true
	case start >= prevEnd:
		s.note(p.id, ElementOverlap, 0, "", fmt.Sprintf("a hole of %d bytes before element %d", start-prevEnd, i))
		return start, vs, true
	}
	s.note(p.id, ElementOverlap, 1, "one element", fmt.Sprintf("element %d overlaps its neighbour", i))
	return 0, 0, false
}

// trusted reports that element i ends where element i+1 begins.
func trusted(t []byte, n, i int) bool {
	e := pageHeader + elemSize*i
	if i+1 >= n {
		return i < n
	}
	end := int64(e) + int64(le.Uint32(t[e+4:])) + int64(le.Uint32(t[e+8:])) + int64(le.Uint32(t[e+12:]))
	return end == int64(e)+elemSize+int64(le.Uint32(t[e+elemSize+4:]))
}

// bytes returns the key and as much of the value as was asked for.
func (s *scanner) bytes(p *leafPage, start, ks, vs int64) (key, val []byte, ok bool) {
	want := vs
	if vs > int64(s.o.Whole) {
		want = min(vs, int64(s.o.Head))
	}
	if have := int64(len(p.b)); start+ks+want <= have {
		mid, end := start+ks, min(start+ks+vs, have)
		return p.b[start:mid:mid], p.b[mid:end:end], true
	}
	s.turn = (s.turn + 1) % len(s.heads)
	h := s.heads[s.turn]
	if int64(cap(h)) < ks+want {
		h = make([]byte, max(ks+want, 1024))
		s.heads[s.turn] = h
	}
	h = h[:ks+want]
	if n, _ := s.w.f.r.ReadAt(h, p.base+start); int64(n) < ks+want {
		return nil, nil, false
	}
	return h[:ks:ks], h[ks:], true
}

// inline hands out the elements of a bucket that lives inside its parent's leaf.
func (s *scanner) inline(b *Bucket) {
	n := b.size - bucketBytes
	if n < pageHeader || n > chunkBytes {
		s.note(uint64(b.ValOff/s.w.f.pageSize), ElementBounds, -1, "the whole bucket", fmt.Sprintf("inline bucket of %d bytes", n))
		return
	}
	buf := make([]byte, n)
	if got, _ := s.w.f.r.ReadAt(buf, b.ValOff+bucketBytes); int64(got) < n {
		s.note(uint64(b.ValOff/s.w.f.pageSize), ReadError, -1, "the whole bucket", "cannot be read")
		return
	}
	h := parseHeader(buf)
	p := leafPage{id: uint64(b.ValOff / s.w.f.pageSize), base: b.ValOff + bucketBytes, b: buf, n: h.count, ext: n}
	if h.flags != flagLeaf {
		s.note(p.id, WrongType, 0, "", fmt.Sprintf("inline bucket of type %#x", h.flags))
	}
	if !s.count(&p, n) {
		s.note(p.id, WrongCount, -1, "the whole bucket", fmt.Sprintf("inline bucket: %d elements do not fit", h.count))
		return
	}
	s.elements(&p)
}
