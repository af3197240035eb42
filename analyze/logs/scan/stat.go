package scan

import (
	"slices"
	"strings"
	"time"

	"coldplane/analyze/logs/logline"
	"coldplane/analyze/logs/signature"
)

const (
	keepSamples  = 3   // at each end
	keepHits     = 128 // at each end
	keepValues   = 24  // distinct values of a field
	keepEpisodes = 64
	keepSlots    = 3000 // quarter hours: a month
	slotLen      = 15 * time.Minute
	episodeGap   = 15 * time.Second
	maxValue     = 256 // bytes of a field's value
	maxExcerpt   = 400
	maxMessage   = 512
)

func fieldsOf(s *signature.Signature) []string {
	fields := slices.Clone(s.Keys)
	for g := range groupNames(s.Pattern) {
		if !slices.Contains(fields, g) {
			fields = append(fields, g)
		}
	}
	return fields
}

// groupNames yields the names of a pattern's named groups in order, as fields:
// a name of a group cannot hold a hyphen, so an underscore stands for it.
func groupNames(pattern string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := 0; i+4 < len(pattern); i++ {
			if pattern[i:i+4] != "(?P<" {
				continue
			}
			end := i + 4
			for end < len(pattern) && pattern[end] != '>' {
				end++
			}
			if !yield(fieldName(pattern[i+4 : min(end, len(pattern))])) {
				return
			}
		}
	}
}

func fieldName(group string) string { return strings.ReplaceAll(group, "_", "-") }

// counter builds one Stat.
type counter struct {
	stat    *Stat
	sig     int
	fields  []string
	measure int // index in fields, -1
	tail    []Hit
	tailAt  int
	samples []sample // ring of the last ones
	sampAt  int
	ep      Episode
	minute  Slot
	vals    []string // of the current occurrence
	matched bool     // the pattern was applied: to area, with groups aligned with fields
	area    []byte
	groups  []string
	text    map[string]*string
}

type sample struct {
	raw     []byte
	number  int
	offset  int64
	at      time.Time
	context []byte
}

func newCounter(sig int, s *signature.Signature, by signature.Emitter) *counter {
	c := &counter{stat: &Stat{Sig: s, Program: by}, sig: sig, fields: fieldsOf(s), measure: -1, text: map[string]*string{}}
	if s.Measure != "" {
		c.measure = slices.Index(c.fields, s.Measure)
	}
	c.vals = make([]string, len(c.fields))
	return c
}

// intern returns v as a string, once per distinct value up to a limit.
func (c *counter) intern(v []byte) string {
	v = v[:min(len(v), maxValue)]
	if p, ok := c.text[string(v)]; ok {
		return *p
	}
	s := string(v)
	if len(c.text) < 512 {
		c.text[s] = &s
	}
	return s
}

// set gives the current occurrence the value of a field. The first one wins.
func (c *counter) set(field int, v []byte) {
	if c.vals[field] == "" && len(v) > 0 {
		c.vals[field] = c.intern(v)
	}
}

// match remembers what the pattern found, under its groups' names. The first
// of two groups for one field wins.
func (c *counter) match(found [][]byte, names []string) {
	c.groups = append(c.groups[:0], make([]string, len(c.fields))...)
	for g := range found {
		if names[g] == "" || len(found[g]) == 0 {
			continue
		}
		if i := slices.Index(c.fields, fieldName(names[g])); c.groups[i] == "" {
			c.groups[i] = c.intern(found[g])
		}
	}
}

// add counts the current occurrence, whose values were set before.
func (c *counter) add(at time.Time, number int, offset int64, line *logline.Line, raw, context []byte) {
	st := c.stat
	st.Count++
	for i, v := range c.vals {
		if v == "" {
			continue
		}
		if i == c.measure {
			if d, ok := duration(v); ok {
				st.Measured.Add(d)
			}
			continue
		}
		if st.Values == nil {
			st.Values = map[string]map[string]int{}
		}
		m := st.Values[c.fields[i]]
		if m == nil {
			m = map[string]int{}
			st.Values[c.fields[i]] = m
		}
		if _, ok := m[v]; ok || len(m) < keepValues {
			m[v]++
		}
	}
	if len(st.Hits) < keepHits {
		st.Hits = append(st.Hits, Hit{at, number, offset, slices.Clone(c.vals)})
	} else if len(c.tail) < keepHits {
		c.tail = append(c.tail, Hit{at, number, offset, slices.Clone(c.vals)})
	} else {
		h := &c.tail[c.tailAt]
		h.Time, h.Line, h.Offset = at, number, offset
		copy(h.Values, c.vals)
		c.tailAt = (c.tailAt + 1) % keepHits
		st.Dropped++
	}
	clear(c.vals)
	if len(st.Samples) < keepSamples {
		st.Samples = append(st.Samples, keep(line, raw, context, number, offset, at))
	} else {
		if len(c.samples) < keepSamples {
			c.samples = append(c.samples, sample{})
		}
		s := &c.samples[c.sampAt]
		s.raw = append(s.raw[:0], raw[:min(len(raw), MaxLine)]...)
		s.context = append(s.context[:0], context...)
		s.number, s.offset, s.at = number, offset, at
		c.sampAt = (c.sampAt + 1) % keepSamples
	}
	if !at.IsZero() {
		c.time(at)
	}
}

// time puts an occurrence into slots, minutes and episodes.
func (c *counter) time(at time.Time) {
	st := c.stat
	if d := at.Sub(c.minute.Start); d < 0 || d >= time.Minute || c.minute.Count == 0 {
		c.minute = Slot{Start: at.Truncate(time.Minute)}
	}
	c.minute.Count++
	if c.minute.Count > st.Minute.Count {
		st.Minute = c.minute
	}
	start := c.minute.Start.Truncate(slotLen)
	i := len(st.Slots) - 1
	for ; i >= 0 && st.Slots[i].Start.After(start); i-- {
	}
	switch {
	case i >= 0 && st.Slots[i].Start.Equal(start):
		st.Slots[i].Count++
	case len(st.Slots) < keepSlots:
		st.Slots = slices.Insert(st.Slots, i+1, Slot{start, 1})
	}
	if c.ep.Count > 0 && at.Sub(c.ep.To) <= episodeGap && at.Sub(c.ep.From) >= 0 {
		if at.After(c.ep.To) {
			c.ep.To = at
		}
		c.ep.Count++
		return
	}
	c.endEpisode()
	c.ep = Episode{at, at, 1}
}

// endEpisode keeps the running episode. When there are too many, the shortest
// of the older half gives way.
func (c *counter) endEpisode() {
	if c.ep.Count == 0 {
		return
	}
	st := c.stat
	if len(st.Episodes) == keepEpisodes {
		short := 0
		for i, e := range st.Episodes[:keepEpisodes/2] {
			if e.To.Sub(e.From) < st.Episodes[short].To.Sub(st.Episodes[short].From) {
				short = i
			}
		}
		st.Episodes = slices.Delete(st.Episodes, short, short+1)
	}
	st.Episodes = append(st.Episodes, c.ep)
	c.ep = Episode{}
}

// finish returns the Stat with its rings put in order.
func (c *counter) finish() *Stat {
	c.endEpisode()
	st := c.stat
	st.Hits = append(st.Hits, c.tail[c.tailAt:]...)
	st.Hits = append(st.Hits, c.tail[:c.tailAt]...)
	for i := range c.samples {
		s := &c.samples[(c.sampAt+i)%len(c.samples)]
		l := logline.Parse(s.raw)
		st.Samples = append(st.Samples, keep(&l, s.raw, s.context, s.number, s.offset, s.at))
	}
	return st
}

// keep makes the part of a line that a report may show.
func keep(l *logline.Line, raw, context []byte, number int, offset int64, at time.Time) Line {
	excerpt := string(raw[:min(len(raw), 4*maxExcerpt)])
	if len(context) > 0 {
		excerpt = string(context) + " ⏎ " + excerpt
	}
	return Line{Number: number, Offset: offset, Time: at, Level: l.Level, Caller: string(l.Caller),
		Message: cut(Redact(string(l.Message[:min(len(l.Message), 2*maxMessage)])), maxMessage),
		Excerpt: cut(Redact(excerpt), maxExcerpt)}
}

// cut shortens s to at most n bytes at a rune border.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// duration reads a Go duration, or seconds as a bare number.
func duration(v string) (time.Duration, bool) {
	if d, err := time.ParseDuration(v); err == nil {
		return d, true
	}
	return 0, false
}
