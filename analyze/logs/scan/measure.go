package scan

import (
	"math"
	"math/bits"
	"time"
)

// A Measure is a distribution of durations with buckets an eighth of an octave
// wide, so that a quantile is at most 9 % too high.
type Measure struct {
	N       int
	Max     time.Duration
	buckets map[int]int
}

func bucket(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 1))
	oct := bits.Len64(us) - 1
	frac := 0
	if oct >= 3 {
		frac = int(us>>(oct-3)) & 7
	} else {
		frac = int(us<<(3-oct)) & 7
	}
	return oct*8 + frac
}

// Add counts one duration.
func (m *Measure) Add(d time.Duration) {
	m.N++
	m.Max = max(m.Max, d)
	if m.buckets == nil {
		m.buckets = map[int]int{}
	}
	m.buckets[bucket(d)]++
}

// Merge adds the counts of o.
func (m *Measure) Merge(o Measure) {
	m.N += o.N
	m.Max = max(m.Max, o.Max)
	if m.buckets == nil && len(o.buckets) > 0 {
		m.buckets = map[int]int{}
	}
	for b, n := range o.buckets {
		m.buckets[b] += n
	}
}

// Quantile returns an upper bound of the q-quantile, 0 of an empty measure.
func (m Measure) Quantile(q float64) time.Duration {
	if m.N == 0 {
		return 0
	}
	want := max(int(math.Ceil(q*float64(m.N))), 1)
	seen := 0
	for b := range 8 * 64 {
		if seen += m.buckets[b]; seen >= want {
			oct, frac := b/8, b%8
			top := time.Duration(math.Ldexp(1+float64(frac+1)/8, oct)) * time.Microsecond
			return min(top, m.Max)
		}
	}
	return m.Max
}

// Above returns how many durations are at least d, to within a bucket.
func (m Measure) Above(d time.Duration) int {
	n := 0
	for b, c := range m.buckets {
		if b >= bucket(d) {
			n += c
		}
	}
	return n
}
