package walframe

import (
	"io"
	"sort"
	"strings"
)

// A Segment is one file of a log. R is read only with ReadAt and only below Size.
type Segment struct {
	Name string // base name, "0000000000000000-0000000000000000.wal"
	Size int64  // bytes, of the file and not of what is written in it
	R    io.ReaderAt
}

// ParseSegmentName splits a segment's file name into its sequence number and
// the index of the first entry it was opened for.
func ParseSegmentName(name string) (seq, index uint64, ok bool) {
	return parseHexPair(name, ".wal")
}

// ParseSnapName splits the name of a raft snapshot file into term and index.
func ParseSnapName(name string) (term, index uint64, ok bool) {
	return parseHexPair(name, ".snap")
}

func parseHexPair(name, ext string) (a, b uint64, ok bool) {
	base, found := strings.CutSuffix(name, ext)
	if !found || len(base) != 33 || base[16] != '-' {
		return 0, 0, false
	}
	if a, ok = parseHex16(base[:16]); !ok {
		return 0, 0, false
	}
	b, ok = parseHex16(base[17:])
	return a, b, ok
}

func parseHex16(s string) (uint64, bool) {
	var n uint64
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// placed is a segment whose name could be read.
type placed struct {
	Segment
	seq, index uint64
}

// order sorts segments by sequence number and sets aside names that are not
// those of a segment.
func order(in []Segment) (segs []placed, odd []string) {
	for _, s := range in {
		seq, index, ok := ParseSegmentName(s.Name)
		if !ok {
			odd = append(odd, s.Name)
			continue
		}
		segs = append(segs, placed{s, seq, index})
	}
	sort.SliceStable(segs, func(i, j int) bool {
		if segs[i].seq != segs[j].seq {
			return segs[i].seq < segs[j].seq
		}
		return segs[i].index < segs[j].index
	})
	sort.Strings(odd)
	return segs, odd
}
