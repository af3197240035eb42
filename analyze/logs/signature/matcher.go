package signature

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
)

// The filter looks at one 4-byte gram in every stride bytes of the input. Each
// literal enters all grams of one window of minLiteral bytes, so any occurrence
// puts exactly one of them under a sample. Rare windows keep it quiet.
const (
	gram       = 4
	stride     = 6
	minLiteral = stride + gram - 1
	hashBits   = 16
	hashMul    = 0x9E3779B1
)

// A Hit is an occurrence of a literal: Index is the number given at building,
// Pos the offset of its first byte.
type Hit struct {
	Index, Pos int
}

// entry is one sampled gram: the literal it belongs to and its offset therein.
type entry struct {
	gram   uint32
	hash   uint32
	offset int32
	lit    int32
	more   bool // the next entry is of the same bucket
}

// A filter finds many literals in one pass. It is immutable and safe for
// concurrent use.
type filter struct {
	set     [1 << hashBits / 64]uint64
	first   [1 << hashBits]uint16 // start of a bucket in entries, by hash
	entries []entry               // sorted by hash; a bucket ends with more == false
	lits    [][]byte
}

// newFilter builds a filter over literals of at least minLiteral bytes.
func newFilter(lits []string) *filter {
	f := &filter{}
	for i, l := range lits {
		b := []byte(l)
		f.lits = append(f.lits, b)
		at := rareWindow(b)
		for j := at; j < at+stride; j++ {
			g := binary.LittleEndian.Uint32(b[j:])
			h := g * hashMul >> (32 - hashBits)
			f.set[h>>6] |= 1 << (h & 63)
			f.entries = append(f.entries, entry{gram: g, hash: h, offset: int32(j), lit: int32(i)})
		}
	}
	slices.SortStableFunc(f.entries, func(a, b entry) int { return cmp.Compare(a.hash, b.hash) })
	for i := len(f.entries) - 1; i >= 0; i-- {
		h := f.entries[i].hash
		f.entries[i].more = i+1 < len(f.entries) && f.entries[i+1].hash == h
		f.first[h] = uint16(i)
	}
	return f
}

// find appends every occurrence of every literal in b, ordered by the line in
// which it lies as long as no literal contains a line break.
func (f *filter) find(b []byte, hits []Hit) []Hit {
	for i := 0; i+gram <= len(b); i += stride {
		g := binary.LittleEndian.Uint32(b[i:])
		h := g * hashMul >> (32 - hashBits)
		if f.set[h>>6]>>(h&63)&1 == 0 {
			continue
		}
		for j := f.first[h]; ; j++ {
			e := &f.entries[j]
			if start := i - int(e.offset); e.gram == g && start >= 0 {
				l := f.lits[e.lit]
				if len(b)-start >= len(l) && bytes.Equal(b[start:start+len(l)], l) {
					hits = append(hits, Hit{int(e.lit), start})
				}
			}
			if !e.more {
				break
			}
		}
	}
	return hits
}

// rareWindow returns the start of the minLiteral bytes of b that are least
// likely in a log, judged by single bytes: capitals, digits in words and
// punctuation are rare, blanks and frequent letters are not.
func rareWindow(b []byte) int {
	const frequent = " etaoinsrl"
	cost := func(c byte) int {
		switch {
		case strings.IndexByte(frequent, c) >= 0:
			return 3
		case c >= 'a' && c <= 'z':
			return 2
		}
		return 1
	}
	best, bestCost := 0, 1<<30
	for at := 0; at+minLiteral <= len(b); at++ {
		sum := 0
		for _, c := range b[at : at+minLiteral] {
			sum += cost(c)
		}
		if sum < bestCost {
			best, bestCost = at, sum
		}
	}
	return best
}

// text is one text of one signature, split at its gaps.
type text struct {
	sig   int
	parts [][]byte
	key   int // the part the filter looks for
}

// A Matcher finds signatures in raw bytes and judges single lines. It is
// immutable and safe for concurrent use.
type Matcher struct {
	Table    []Signature
	patterns []*regexp.Regexp // by signature, nil without one
	groups   [][]string       // names of the pattern's groups, in order
	texts    []text
	marks    int // first index that is a caller's mark, not a text
	filter   *filter
}

// NewMatcher builds a matcher. Marks are further literals the caller wants to
// be told of; their hits have indexes from Marks() on. A table that does not
// validate, a bad pattern or a mark shorter than nine bytes is an error.
func NewMatcher(table []Signature, marks ...string) (*Matcher, error) {
	if err := Validate(table); err != nil {
		return nil, err
	}
	m := &Matcher{Table: table, patterns: make([]*regexp.Regexp, len(table)), groups: make([][]string, len(table))}
	var lits []string
	for i, s := range table {
		if s.Pattern != "" {
			re, err := regexp.Compile(s.Pattern)
			if err != nil {
				return nil, err
			}
			m.patterns[i] = re
			m.groups[i] = re.SubexpNames()
		}
		for _, t := range s.Texts {
			tx := text{sig: i}
			for p := range strings.SplitSeq(t, Gap) {
				if len(tx.parts) > 0 && len(p) > len(tx.parts[tx.key]) {
					tx.key = len(tx.parts)
				}
				tx.parts = append(tx.parts, []byte(p))
			}
			m.texts = append(m.texts, tx)
			lits = append(lits, longestPart(t))
		}
	}
	m.marks = len(lits)
	for _, l := range marks {
		if len(l) < minLiteral {
			return nil, errShortMark
		}
		lits = append(lits, l)
	}
	m.filter = newFilter(lits)
	return m, nil
}

type matchError string

func (e matchError) Error() string { return string(e) }

const errShortMark = matchError("mark shorter than nine bytes")

// Marks returns the index of the caller's first mark in Hit.Index.
func (m *Matcher) Marks() int { return m.marks }

// Find appends the candidates in b to hits: literals, not yet judged by
// program or place. Hits of earlier lines come before those of later ones.
func (m *Matcher) Find(b []byte, hits []Hit) []Hit { return m.filter.find(b, hits) }

// Sig returns the signature (its index in Table) of a candidate that is no mark.
func (m *Matcher) Sig(h Hit) int { return m.texts[h.Index].sig }

// In reports whether the candidate's whole text lies in s, at its start if the
// signature asks for that.
func (m *Matcher) In(h Hit, s []byte) bool {
	t := &m.texts[h.Index]
	for i, p := range t.parts {
		at := bytes.Index(s, p)
		if at < 0 || i == 0 && at > 0 && m.Table[t.sig].Start {
			return false
		}
		s = s[at+len(p):]
	}
	return true
}

// Groups returns the names of the pattern's groups of signature i; unnamed ones
// are empty. The first stands for the whole match.
func (m *Matcher) Groups(i int) []string { return m.groups[i] }

// Submatch applies the pattern of signature i to s and returns the groups, or
// nil without a pattern or match.
func (m *Matcher) Submatch(i int, s []byte) [][]byte {
	if m.patterns[i] == nil {
		return nil
	}
	return m.patterns[i].FindSubmatch(s)
}
