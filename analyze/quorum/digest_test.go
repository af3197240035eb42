package quorum

import (
	"testing"

	"coldplane/bundle/hostfacts"
)

func TestDigests(t *testing.T) {
	block := func(index, records int64, sum string) hostfacts.DigestBlock {
		return hostfacts.DigestBlock{Index: index, Records: records, Sum: sum}
	}
	d := func(rev, compact, width int64, blocks ...hostfacts.DigestBlock) *hostfacts.StoreDigest {
		return &hostfacts.StoreDigest{Revision: rev, CompactRevision: compact, Width: width, Blocks: blocks}
	}
	compacting := d(200, 50, 64, block(0, 3, "aa"), block(1, 9, "10"), block(2, 9, "20"), block(3, 2, "5"))
	compacting.Compacting = true
	for _, c := range []struct {
		name    string
		a, b    *hostfacts.StoreDigest
		ok, odd bool
	}{
		{"the same", d(200, 50, 64, block(0, 3, "a"), block(1, 9, "10"), block(2, 9, "20"), block(3, 2, "5")), d(200, 50, 64, block(0, 3, "a"), block(1, 9, "10"), block(2, 9, "20"), block(3, 2, "5")), true, false},
		{"old data differ", d(200, 50, 64, block(0, 3, "a"), block(1, 9, "10")), d(200, 50, 64, block(0, 3, "b"), block(1, 9, "10")), true, true},
		{"the last, partial block differs at one revision", d(200, 50, 64, block(3, 2, "5")), d(200, 50, 64, block(3, 2, "6")), true, true},
		{"one is ahead: its partial block does not count", d(200, 50, 64, block(1, 9, "10"), block(3, 2, "5")), d(210, 50, 64, block(1, 9, "10"), block(3, 9, "ff")), true, false},
		{"other widths add up", d(200, 50, 64, block(0, 3, "a"), block(1, 9, "10")), d(200, 50, 128, block(0, 12, "1a")), true, false},
		{"other compactions: below them nothing counts", d(200, 50, 64, block(0, 3, "a"), block(1, 9, "10"), block(2, 9, "20")), d(200, 60, 64, block(0, 1, "1"), block(1, 9, "10"), block(2, 9, "20")), true, false},
		{"other compactions, above them it differs", d(200, 50, 64, block(2, 9, "20")), d(200, 60, 64, block(2, 9, "21")), true, true},
		{"a compaction under way: below it nothing counts", d(200, 50, 64, block(0, 3, "bb"), block(1, 9, "10"), block(2, 9, "20"), block(3, 2, "5")), compacting, true, false},
		{"nothing in common", d(40, 0, 64, block(0, 3, "a")), d(60, 50, 64, block(0, 1, "a")), false, false},
		{"none", d(40, 0, 64, block(0, 3, "a")), nil, false, false},
	} {
		sums, _, ok := digests([]*hostfacts.StoreDigest{c.a, c.b})
		if ok != c.ok || ok && (sums[0] != sums[1]) != c.odd {
			t.Errorf("%s: %v %v", c.name, sums, ok)
		}
	}
}
