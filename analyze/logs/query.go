package logs

import (
	"cmp"
	"slices"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs/scan"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
)

// A Found is one text in one stream.
type Found struct {
	Stream *Stream
	*scan.Stat
}

// An At is one occurrence of a text.
type At struct {
	Stream *Stream
	Stat   *scan.Stat
	scan.Hit
}

// Ref points at the occurrence.
func (a At) Ref() bundle.Ref { return a.Stream.Ref(a.Line, a.Offset) }

// Value returns a field of the occurrence, "" if it has none.
func (a At) Value(field string) string { return a.Stat.Value(a.Hit, field) }

// See makes evidence of the occurrence.
func (a At) See() analyze.Evidence { return analyze.See(a.Ref(), a.Excerpt()) }

// Excerpt is the line if it was kept, else what the text means.
func (a At) Excerpt() string {
	for _, l := range a.Stat.Samples {
		if l.Number == a.Line {
			return l.Excerpt
		}
	}
	text := a.Stat.Sig.Texts[0]
	for i, f := range a.Stat.Fields() {
		if i < len(a.Values) && a.Values[i] != "" {
			text += " " + f + "=" + a.Values[i]
		}
	}
	return text
}

// Has reports whether there is a readable log of the program. A journal of
// several programs counts.
func (n *Node) Has(by signature.Emitter) bool {
	for _, s := range n.Streams {
		if s.Result != nil && (s.Program&by != 0 || s.Program == 0) {
			return true
		}
	}
	return false
}

// Of returns the streams of a program, duplicates left out, in order of time.
func (n *Node) Of(by signature.Emitter) []*Stream {
	var out []*Stream
	for _, s := range n.Streams {
		if s.Result != nil && s.SameAs == nil && s.Program&by != 0 {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b *Stream) int { return a.Result.Last.Compare(b.Result.Last) })
	return out
}

// Find returns where a text occurs, duplicates left out. by narrows to texts
// printed by some programs; 0 takes all.
func (n *Node) Find(by signature.Emitter, ids ...string) []Found {
	var out []Found
	for _, s := range n.Streams {
		if s.Result == nil || s.SameAs != nil {
			continue
		}
		for _, st := range s.Result.Stats {
			if slices.Contains(ids, st.Sig.ID) && (by == 0 || st.Program&by != 0) {
				out = append(out, Found{s, st})
			}
		}
	}
	return out
}

// Count returns how often texts occur.
func (n *Node) Count(by signature.Emitter, ids ...string) int {
	c := 0
	for _, f := range n.Find(by, ids...) {
		c += f.Count
	}
	return c
}

// Hits returns the kept occurrences of texts in order of time; those without a
// time come first.
func (n *Node) Hits(by signature.Emitter, ids ...string) []At {
	var out []At
	for _, f := range n.Find(by, ids...) {
		for _, h := range f.Stat.Hits {
			out = append(out, At{f.Stream, f.Stat, h})
		}
	}
	SortHits(out)
	return out
}

// SortHits orders occurrences by time, then place.
func SortHits(hits []At) {
	slices.SortStableFunc(hits, func(a, b At) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Stream.File.Path, b.Stream.File.Path), cmp.Compare(a.Line, b.Line))
	})
}

// First and Last return the outer occurrences of texts; ok is false if there
// are none.
func (n *Node) First(by signature.Emitter, ids ...string) (At, bool) {
	hits := n.Hits(by, ids...)
	if len(hits) == 0 {
		return At{}, false
	}
	return hits[0], true
}

// Last is the newest occurrence of texts.
func (n *Node) Last(by signature.Emitter, ids ...string) (At, bool) {
	hits := n.Hits(by, ids...)
	if len(hits) == 0 {
		return At{}, false
	}
	return hits[len(hits)-1], true
}

// End returns the newest time at which the node wrote any line, and the stream
// that holds it; nil without times.
func (n *Node) End() (time.Time, *Stream) {
	var last time.Time
	var at *Stream
	for _, s := range n.Streams {
		if s.Result != nil && !s.Result.ZoneAssumed && s.Result.Last.After(last) {
			last, at = s.Result.Last, s
		}
	}
	return last, at
}

// Window returns the hours of a text as the number in each quarter hour, over
// all streams.
func Window(found []Found) []scan.Slot {
	sum := map[int64]int{}
	for _, f := range found {
		for _, s := range f.Slots {
			sum[s.Start.Unix()] += s.Count
		}
	}
	var out []scan.Slot
	for t, c := range sum {
		out = append(out, scan.Slot{Start: time.Unix(t, 0).UTC(), Count: c})
	}
	slices.SortFunc(out, func(a, b scan.Slot) int { return a.Start.Compare(b.Start) })
	return out
}

// Busiest returns the largest number of occurrences within one hour (four
// neighbouring quarter hours) and its start.
func Busiest(found []Found) scan.Slot {
	var best scan.Slot
	slots := Window(found)
	for i, s := range slots {
		sum := 0
		for _, t := range slots[i:] {
			if t.Start.Sub(s.Start) >= time.Hour {
				break
			}
			sum += t.Count
		}
		if sum > best.Count {
			best = scan.Slot{Start: s.Start, Count: sum}
		}
	}
	return best
}
