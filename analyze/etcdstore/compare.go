package etcdstore

import (
	"bytes"
	"cmp"
	"context"
	"hash/crc64"
	"slices"

	"coldplane/bundle/decode/boltpage"
)

// A Comparison is what the files of several members of one cluster say at one
// revision.
type Comparison struct {
	Rev, CompactRev int64 // the pair at which all were hashed
	Hashes          []uint32
	Errs            []error // per file; one with an error takes no part
	Same            bool    // all hashes that there are agree
	Differences     []Difference
	FirstRev        int64 // the lowest revision that differs, 0 when none was found
	More            bool  // there are other differences
}

// A Difference is a record that two files do not share. A and B index the files.
type Difference struct {
	Rev  Revision
	Key  string
	A, B int
	Kind string // "only in A", "only in B", "values differ"
}

const (
	maxDifferences = 100
	sumBlocks      = 1024 // ranges of revisions whose sums are compared first
)

// Compare hashes the files at the highest revision that all have, with the
// highest compaction that any has, and names what differs between the first file
// and the first that disagrees with it.
func Compare(ctx context.Context, stores []*Store) (Comparison, error) {
	c := Comparison{Hashes: make([]uint32, len(stores)), Errs: make([]error, len(stores)), Same: true}
	for i, s := range stores {
		if i == 0 || s.Current() < c.Rev {
			c.Rev = s.Current()
		}
		c.CompactRev = max(c.CompactRev, s.Compacted())
	}
	first := -1
	for i, s := range stores {
		h, err := s.HashKV(ctx, c.Rev, c.CompactRev)
		if ctx.Err() != nil {
			return c, ctx.Err()
		}
		if c.Errs[i] = err; err != nil {
			continue
		}
		c.Hashes[i] = h.Hash
		if first < 0 {
			first = i
			continue
		}
		if h.Hash != c.Hashes[first] {
			if c.Same {
				c.Same = false
				if err := c.diff(ctx, stores, first, i); err != nil {
					return c, err
				}
			}
		}
	}
	if first < 0 {
		c.Same = false
	}
	return c, nil
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// kept64 calls fn with every record of s that counts at the comparison's pair.
func (c *Comparison) kept64(ctx context.Context, s *Store, from, to int64, fn func(r Revision, sum uint64, key []byte)) error {
	keep, err := s.keeper(ctx, c.Rev, c.CompactRev)
	if err != nil {
		return err
	}
	w, l, err := s.keyLeaves(ctx)
	if err != nil || l == nil {
		return err
	}
	buf := make([]byte, 256<<10)
	return w.Scan(ctx, l, boltpage.ScanOptions{InOrder: true, Whole: 256 << 10}, func(int) func(*boltpage.Elem) {
		return func(e *boltpage.Elem) {
			main, sub, tomb, ok := parseRevKey(e.Key)
			if !ok || main > c.Rev || main < from || main > to || !kept(s, e, main, uint32(sub), tomb, c.CompactRev, keep) {
				return
			}
			sum := crc64.Update(crc64.Checksum(e.Key, crcTable), crcTable, e.Val)
			for off := len(e.Val); off < e.ValLen; {
				n, err := s.file.ReadAt(buf[:min(len(buf), e.ValLen-off)], e.ValOff+int64(off))
				sum = crc64.Update(sum, crcTable, buf[:n])
				if off += n; err != nil || n == 0 {
					break
				}
			}
			key, _ := s.recordKey(e)
			fn(Revision{main, sub}, sum, key)
		}
	})
}

// diff finds the ranges of revisions whose sums differ, and the records in them.
func (c *Comparison) diff(ctx context.Context, stores []*Store, a, b int) error {
	width := c.Rev/sumBlocks + 1
	var sums [2][sumBlocks + 1]uint64
	for i, s := range []*Store{stores[a], stores[b]} {
		if err := c.kept64(ctx, s, 0, c.Rev, func(r Revision, sum uint64, _ []byte) { sums[i][r.Main/width] += sum*31 + 1 }); err != nil {
			return err
		}
	}
	lo, hi := int64(-1), int64(-1)
	for i := range sums[0] {
		if sums[0][i] != sums[1][i] {
			if lo < 0 {
				lo = int64(i) * width
			}
			hi = int64(i+1)*width - 1
		}
	}
	if lo < 0 {
		return nil
	}
	type rec struct {
		sum uint64
		key []byte
	}
	// The first file's records of the range are kept; the second's are held
	// against them as they come. A block of revisions is small, unless all differ.
	const maxRecords = 1 << 20
	have := map[Revision]rec{}
	if err := c.kept64(ctx, stores[a], lo, hi, func(r Revision, sum uint64, key []byte) {
		if len(have) < maxRecords {
			have[r] = rec{sum, bytes.Clone(key)}
		} else {
			c.More = true
		}
	}); err != nil {
		return err
	}
	add := func(r Revision, key []byte, kind string) {
		if c.FirstRev == 0 || r.Main < c.FirstRev {
			c.FirstRev = r.Main
		}
		c.Differences = append(c.Differences, Difference{Rev: r, Key: string(key), A: a, B: b, Kind: kind})
	}
	if err := c.kept64(ctx, stores[b], lo, hi, func(r Revision, sum uint64, key []byte) {
		x, ok := have[r]
		delete(have, r)
		switch {
		case !ok && !c.More:
			add(r, key, "only in B")
		case ok && x.sum != sum:
			add(r, key, "values differ")
		}
	}); err != nil {
		return err
	}
	if !c.More {
		for r, x := range have {
			add(r, x.key, "only in A")
		}
	}
	sortDifferences(c)
	return nil
}

// sortDifferences orders by revision and cuts the list.
func sortDifferences(c *Comparison) {
	slices.SortFunc(c.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Rev.Main, b.Rev.Main), cmp.Compare(a.Rev.Sub, b.Rev.Sub), cmp.Compare(a.Kind, b.Kind))
	})
	if len(c.Differences) > maxDifferences {
		c.Differences, c.More = c.Differences[:maxDifferences], true
	}
}
