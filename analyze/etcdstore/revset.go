package etcdstore

import (
	"maps"
	"math/bits"
	"slices"
)

// A revSet remembers which main revisions above a compaction have a record. Every
// transaction that etcd applies makes at least one, so a hole is a loss that no
// page shows.
type revSet struct {
	above  int64
	chunks map[int64]*[revWords]uint64
	last   int64 // number of the chunk used last, and the chunk
	at     *[revWords]uint64
	full   bool
}

const (
	revWords = 1024
	revChunk = revWords * 64
	// maxRevChunks bounds the set to 32 MiB: 268 million revisions.
	maxRevChunks = 4096
	maxMissing   = 100
)

func (r *revSet) add(main int64) {
	if main <= r.above {
		return
	}
	n := main / revChunk
	if r.at == nil || n != r.last {
		if r.chunks == nil {
			r.chunks = map[int64]*[revWords]uint64{}
		}
		c := r.chunks[n]
		if c == nil {
			if len(r.chunks) >= maxRevChunks {
				r.full = true
				return
			}
			c = new([revWords]uint64)
			r.chunks[n] = c
		}
		r.last, r.at = n, c
	}
	b := main % revChunk
	r.at[b/64] |= 1 << (b % 64)
}

func (r *revSet) merge(o *revSet) {
	r.full = r.full || o.full
	for n, c := range o.chunks {
		d := r.chunks[n]
		if d == nil {
			if r.chunks == nil {
				r.chunks = map[int64]*[revWords]uint64{}
			}
			r.chunks[n] = c
			continue
		}
		for i := range c {
			d[i] |= c[i]
		}
	}
}

// missing lists the holes between from (not included) and to. A hole that ends
// at a revision bump is the bump. Without a complete set there is no answer.
func (r *revSet) missing(from, to int64, bumps []int64) (list []Range, total int64) {
	if r.full {
		return nil, 0
	}
	hole := func(a, b int64) {
		if a > b || slices.Contains(bumps, b+1) {
			return
		}
		total += b - a + 1
		if len(list) < maxMissing {
			list = append(list, Range{a, b})
		}
	}
	next := from + 1 // the lowest revision not accounted for
	for _, n := range slices.Sorted(maps.Keys(r.chunks)) {
		for i, word := range r.chunks[n] {
			if word == ^uint64(0) && next == n*revChunk+int64(i)*64 {
				next += 64
				continue
			}
			for ; word != 0; word &= word - 1 {
				rev := n*revChunk + int64(i)*64 + int64(bits.TrailingZeros64(word))
				hole(next, rev-1)
				next = rev + 1
			}
		}
	}
	hole(next, to)
	return list, total
}

func sortedUnique(a []int64) []int64 {
	slices.Sort(a)
	return slices.Compact(a)
}
