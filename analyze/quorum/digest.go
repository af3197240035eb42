package quorum

import (
	"slices"
	"strconv"

	"coldplane/bundle/hostfacts"
)

// digests sums what several members' digests have in common: the blocks of
// revisions that all of them have whole. up is the last revision summed; ok is
// false when there is no such block.
func digests(list []*hostfacts.StoreDigest) (sums []uint64, up int64, ok bool) {
	width, low, high := int64(1), int64(0), int64(1)<<62
	same := true
	for _, d := range list {
		if d == nil || d.Width <= 0 || d.Width&(d.Width-1) != 0 {
			return nil, 0, false
		}
		width, high = max(width, d.Width), min(high, d.Revision)
		low = max(low, d.CompactRevision)
		same = same && !d.Compacting && d.CompactRevision == list[0].CompactRevision
	}
	whole := func(i int64) bool {
		// A block counts up to the newest revision of all when all end there.
		end := (i+1)*width - 1
		full := end <= high || !slices.ContainsFunc(list, func(d *hostfacts.StoreDigest) bool { return d.Revision != high })
		return full && (same || i*width > low)
	}
	for _, d := range list {
		var sum uint64
		for _, b := range d.Blocks {
			i := b.Index * d.Width / width
			if b.Index < 0 || !whole(i) {
				continue
			}
			v, err := strconv.ParseUint(b.Sum, 16, 64)
			if err != nil {
				return nil, 0, false
			}
			sum += v
			up, ok = max(up, min((i+1)*width-1, high)), true
		}
		sums = append(sums, sum)
	}
	return sums, up, ok
}
