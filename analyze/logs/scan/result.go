package scan

import (
	"slices"
	"time"

	"coldplane/analyze/logs/signature"
)

// A Result is what one stream holds.
type Result struct {
	Wrap   string // shape of the stream: "cri", "short", ... of its first timed line
	Format string // shape of the lines inside
	Bytes  int64  // read, after decompression
	Lines  int

	First, Last time.Time // of the lines, UTC; zero without times
	// ZoneAssumed says that local times were taken for UTC because nothing told
	// the zone; they may be off by up to 14 hours.
	ZoneAssumed bool
	// YearGuessed says that the year was chosen by the reference time.
	YearGuessed bool
	// NoYear says that lines have times without a year and nothing tells it.
	NoYear bool

	LastTimed int   // number of the last line with a time of its own
	Untimed   int   // lines without a time of their own
	Long      int   // lines longer than MaxLine
	Cut       int64 // bytes of long lines not looked at
	NULs      int64
	Partials  int    // CRI records joined from parts
	Limited   bool   // the stream is longer than the limit
	Broken    string // why reading ended early, "" if it did not

	Activity []Span // times at which lines were written, gaps of 30 s and more apart
	Back     []Step // jumps of the clock to an earlier time by more than a second

	Stats []*Stat // sorted by signature and program
	Tail  []Line  // the last lines, oldest first
	Fatal []Line  // the last lines with which the program says that it ends
}

// A Span is a stretch of time.
type Span struct{ From, To time.Time }

// A Step is a jump of the clock between two lines.
type Step struct {
	At   time.Time // before the jump
	By   time.Duration
	Line int // the line after the jump
}

// A Line is one line kept.
type Line struct {
	Number  int   // 1-based
	Offset  int64 // of its first byte in the decompressed stream
	Time    time.Time
	Level   byte // 'I', 'W', 'E', 'F', 'D' or 0
	Caller  string
	Message string // at most 512 bytes, secrets removed
	Excerpt string // the line, at most 400 bytes, secrets removed
}

// A Stat is what is known of one text from one program in one stream.
type Stat struct {
	Sig     *signature.Signature
	Program signature.Emitter // who printed it; several bits when not known
	Count   int

	Samples []Line // the first three and the last three occurrences
	Hits    []Hit  // the first and last occurrences in order; all of them if Dropped is 0
	Dropped int    // occurrences between them that are only counted

	Slots    []Slot                    // per quarter hour, sorted
	Minute   Slot                      // the busiest minute
	Values   map[string]map[string]int // field -> value -> count, at most 24 values per field
	Measured Measure                   // of the field named by Sig.Measure
	Episodes []Episode                 // runs of occurrences no more than 15 s apart, at most 64
}

// A Hit is one occurrence.
type Hit struct {
	Time   time.Time
	Line   int
	Offset int64
	Values []string // aligned with Stat.Fields
}

// A Slot counts occurrences in a stretch that starts at Start.
type Slot struct {
	Start time.Time
	Count int
}

// An Episode is a run of occurrences.
type Episode struct {
	From, To time.Time
	Count    int
}

// First and Last return the times of the outer occurrences, zero if they have
// none.
func (s *Stat) First() time.Time {
	for _, h := range s.Hits {
		if !h.Time.IsZero() {
			return h.Time
		}
	}
	return time.Time{}
}

// Last returns the time of the last occurrence.
func (s *Stat) Last() time.Time {
	for _, h := range slices.Backward(s.Hits) {
		if !h.Time.IsZero() {
			return h.Time
		}
	}
	return time.Time{}
}

// Fields returns the names of the values of a Hit: the signature's keys, then
// the named groups of its pattern.
func (s *Stat) Fields() []string { return fieldsOf(s.Sig) }

// Value returns a field of an occurrence, "" if it has none.
func (s *Stat) Value(h Hit, field string) string {
	for i, f := range s.Fields() {
		if f == field && i < len(h.Values) && h.Values[i] != "" {
			return h.Values[i]
		}
	}
	return ""
}

// Stat returns what is known of a text, over all programs of the stream in
// order, nil if it does not occur.
func (r *Result) Stat(id string) *Stat {
	for _, s := range r.Stats {
		if s.Sig.ID == id {
			return s
		}
	}
	return nil
}
