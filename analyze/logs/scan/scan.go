package scan

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/gzip"

	"coldplane/analyze/logs/logline"
	"coldplane/analyze/logs/signature"
)

const (
	MaxLine   = 8 << 10   // bytes of a line that count
	blockSize = 256 << 10 // read at once
	tailSize  = 24 << 10  // bytes kept for the last lines
	tailLines = 24

	// ActivityGap is the silence that ends a Span of activity.
	ActivityGap = 30 * time.Second

	keepSpans = 2000
	keepSteps = 64
	keepFatal = 8
)

// MaxBytes is the default limit of one stream after decompression.
const MaxBytes = 16 << 30

// ErrBinaryJournal says that a stream is a journal file of journald.
var ErrBinaryJournal = errors.New("binary journal file")

// Options of one scan.
type Options struct {
	// Program is who writes the stream; 0 if the stream has lines of several or
	// it is not known. Names inside the lines win.
	Program signature.Emitter
	// Ref is a time near or after the end of the stream, to tell the year of
	// times without one; zero if not known.
	Ref time.Time
	// Zone is the offset from UTC of times without a zone, valid if ZoneKnown.
	Zone      time.Duration
	ZoneKnown bool
	Limit     int64 // bytes after decompression; 0 is MaxBytes
}

// A Scanner finds the texts of one table. It is safe for concurrent use.
type Scanner struct {
	m *signature.Matcher
}

// Marks of lines that need more than a look at their text.
var marks = []string{" stderr P ", " stdout P ", `"MESSAGE":[`, `"MESSAGE" : [`,
	`"level":"fatal"`, `"level":"panic"`, " stderr F F", " stderr F panic: ", " stderr F fatal error: "}

// New returns a Scanner for a table.
func New(table []signature.Signature) (*Scanner, error) {
	m, err := signature.NewMatcher(table, marks...)
	if err != nil {
		return nil, fmt.Errorf("log signatures: %w", err)
	}
	return &Scanner{m}, nil
}

type key struct {
	sig int
	by  signature.Emitter
}

// state is one scan that is going on.
type state struct {
	m    *signature.Matcher
	o    Options
	res  *Result
	hits []signature.Hit

	offset   int64 // of the first byte of the block
	line     int   // lines before the block
	clock    logline.Clock
	last     time.Time // time of the last timed line
	span     Span
	zone     time.Duration
	zoneSure bool
	ref      time.Time

	counters map[key]*counter
	textBuf  []byte
	pairs    []logline.Pair // of the line that is judged
	tail     []byte         // the end of the stream
	prev     [2][]byte      // the two lines before
	prevBuf  [2][]byte

	join joined
}

// joined is a CRI record that comes in parts.
type joined struct {
	active bool
	stderr bool
	first  []byte // the first part as it stands
	body   []byte
	number int
	offset int64
}

// Scan reads r to its end or limit. An error of r, or a damaged gzip stream,
// ends the scan early and is recorded in the Result; Scan itself returns only
// ErrBinaryJournal and the context's error.
func (s *Scanner) Scan(ctx context.Context, r io.Reader, o Options) (*Result, error) {
	if o.Limit <= 0 {
		o.Limit = MaxBytes
	}
	st := &state{m: s.m, o: o, res: &Result{}, counters: map[key]*counter{}, zone: o.Zone, zoneSure: o.ZoneKnown, ref: o.Ref}
	br := bufio.NewReaderSize(r, 64<<10)
	head, _ := br.Peek(512)
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(br)
		if err != nil {
			st.res.Broken = err.Error()
			return st.res, nil
		}
		defer z.Close()
		br = bufio.NewReaderSize(z, 64<<10)
		head, _ = br.Peek(512)
	}
	if bytes.HasPrefix(head, []byte("LPKSHHRH")) {
		return nil, ErrBinaryJournal
	}
	var err error
	switch {
	case isExport(head):
		err = st.export(ctx, br)
	case isPretty(head):
		err = st.pretty(ctx, br)
	default:
		err = st.text(ctx, br)
	}
	if err != nil {
		return nil, err
	}
	st.finish()
	return st.res, nil
}

func isExport(head []byte) bool {
	return bytes.HasPrefix(head, []byte("__CURSOR=")) || bytes.HasPrefix(head, []byte("__REALTIME_TIMESTAMP="))
}

// text reads lines in blocks.
func (s *state) text(ctx context.Context, r io.Reader) error {
	buf := make([]byte, 0, blockSize)
	var over int64 // bytes of an over-long line already thrown away
	first := true
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		s.res.Bytes += int64(n)
		buf = buf[:len(buf)+n]
		limited := s.res.Bytes >= s.o.Limit
		end := err != nil || limited
		s.res.Limited = s.res.Limited || limited && err == nil
		if !end && len(buf) < cap(buf) && n > 0 {
			continue // fill the block
		}
		if first {
			s.sniff(buf)
			first = false
		}
		cutAt := bytes.LastIndexByte(buf, '\n') + 1
		if end {
			cutAt = len(buf)
		}
		switch {
		case cutAt > 0:
			if over > 0 { // the rest of an over-long line
				i := bytes.IndexByte(buf[:cutAt], '\n') + 1
				if i == 0 {
					i = cutAt
				}
				s.res.Cut += int64(i)
				s.offset += int64(i)
				copy(buf, buf[i:])
				buf = buf[:len(buf)-i]
				cutAt -= i
				over = 0
			}
			s.block(buf[:cutAt])
			s.offset += int64(cutAt)
			buf = buf[:copy(buf, buf[cutAt:])]
		case len(buf) == cap(buf): // a line longer than a block
			if over == 0 {
				s.res.NULs += int64(bytes.Count(buf, []byte{0}))
				s.block(buf[:MaxLine])
				s.res.Long++
				s.res.Cut += int64(len(buf) - MaxLine)
			} else {
				s.res.Cut += int64(len(buf))
			}
			over += int64(len(buf))
			s.offset += int64(len(buf))
			buf = buf[:0]
		}
		if end {
			if err != nil && !errors.Is(err, io.EOF) {
				s.res.Broken = err.Error()
			}
			return nil
		}
	}
}

// sniff looks at the first lines for what later ones need: the zone of local
// times, and a year.
func (s *state) sniff(b []byte) {
	for range 400 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		l := logline.Parse(b[:min(i, MaxLine)])
		b = b[i+1:]
		if s.res.Wrap == "" && (!l.Outer.IsZero() || !l.Inner.IsZero()) {
			s.res.Wrap, s.res.Format = l.Wrap.String(), l.Format.String()
		}
		if s.o.Ref.IsZero() && (l.When().Zoned || l.When().HasYear) && l.When().Time.After(s.ref) {
			s.ref = l.When().Time
		}
		// A local time of the wrapping beside a zoned one of the program tells the zone.
		if !s.zoneSure && l.Wrap == logline.Short && l.Inner.Zoned {
			local := l.Outer.WithYear(l.Inner.Time.Add(14 * time.Hour)).Time
			off := local.Sub(l.Inner.Time).Round(15 * time.Minute)
			if d := local.Sub(l.Inner.Time) - off; d > -2*time.Minute && d < 2*time.Minute && off.Abs() <= 14*time.Hour {
				s.zone, s.zoneSure = off, true
			}
		}
	}
}

// at is the UTC time of a stamp, zero if it cannot be told.
func (s *state) at(st logline.Stamp) time.Time {
	if st.IsZero() {
		return time.Time{}
	}
	if !st.HasYear {
		if s.ref.IsZero() {
			s.res.NoYear = true
			return time.Time{}
		}
		st = st.WithYear(s.ref.Add(s.zone))
		s.res.YearGuessed = true
	}
	if !st.Zoned {
		if !s.zoneSure {
			s.res.ZoneAssumed = true
		}
		return st.Time.Add(-s.zone)
	}
	return st.Time
}

// block reads whole lines (the last one may lack its end).
func (s *state) block(b []byte) {
	s.keepTail(b)
	s.res.NULs += int64(bytes.Count(b, []byte{0}))
	s.hits = s.m.Find(b, s.hits[:0])
	hits := s.hits
	for pos := 0; pos < len(b); {
		end := len(b)
		next := end
		if i := bytes.IndexByte(b[pos:], '\n'); i >= 0 {
			end, next = pos+i, pos+i+1
		}
		line := b[pos:end]
		s.line++
		n := 0
		for n < len(hits) && hits[n].Pos < end {
			n++
		}
		of := hits[:n]
		hits = hits[n:]
		s.one(line, of, pos)
		pos = next
	}
	for i := range s.prev { // the block is about to be overwritten
		s.prevBuf[i] = append(s.prevBuf[i][:0], s.prev[i][:min(len(s.prev[i]), maxExcerpt)]...)
		s.prev[i] = s.prevBuf[i]
	}
}

// one reads one line with its candidates; pos is its place in the block.
func (s *state) one(line []byte, hits []signature.Hit, pos int) {
	if len(line) > MaxLine {
		s.res.Long++
		s.res.Cut += int64(len(line) - MaxLine)
		line = line[:MaxLine]
	}
	stamp := s.clock.Quick(line)
	if stamp.IsZero() {
		s.res.Untimed++
	} else {
		s.res.LastTimed = s.line
		s.tick(s.at(stamp))
	}
	s.fatal(line, hits, pos)
	if s.join.active || marked(hits, s.m.Marks()) {
		if s.partial(line, pos) {
			return
		}
	}
	if len(hits) > 0 {
		s.candidates(line, hits, pos)
	}
	if len(line) > 0 {
		s.prev[0], s.prev[1] = s.prev[1], line
	}
}

// fatal keeps the last lines with which programs say that they end: klog and
// zap of the highest levels, panics and faults of the Go runtime.
func (s *state) fatal(line []byte, hits []signature.Hit, pos int) {
	bare := len(line) > 8 && (line[0] == 'F' && line[1] >= '0' && line[1] <= '9' && line[5] == ' ' ||
		line[0] == 'p' && bytes.HasPrefix(line, []byte("panic: ")) || line[0] == 'f' && bytes.HasPrefix(line, []byte("fatal error: ")))
	if !bare && !marked(hits, s.m.Marks()) {
		return
	}
	l := logline.Parse(line)
	if l.Level != 'F' && !bytes.HasPrefix(l.Message, []byte("panic: ")) && !bytes.HasPrefix(l.Message, []byte("fatal error: ")) {
		return
	}
	at := s.at(l.When())
	if at.IsZero() {
		at = s.last
	}
	k := keep(&l, line, nil, s.line, s.offset+int64(pos), at)
	k.Level = 'F'
	if err := l.Field("error"); len(err) > 0 {
		k.Message += ": " + cut(Redact(string(err[:min(len(err), maxMessage)])), maxMessage)
	}
	if s.res.Fatal = append(s.res.Fatal, k); len(s.res.Fatal) > keepFatal {
		s.res.Fatal = slices.Delete(s.res.Fatal, 0, 1)
	}
}

func marked(hits []signature.Hit, first int) bool {
	for _, h := range hits {
		if h.Index >= first {
			return true
		}
	}
	return false
}

// tick notes that a line was written at t.
func (s *state) tick(t time.Time) {
	if t.IsZero() {
		return
	}
	r := s.res
	if r.First.IsZero() || t.Before(r.First) {
		r.First = t
	}
	if t.After(r.Last) {
		r.Last = t
	}
	if !s.last.IsZero() && t.Before(s.last.Add(-time.Second)) && len(r.Back) < keepSteps {
		r.Back = append(r.Back, Step{At: s.last, By: s.last.Sub(t), Line: s.line})
	}
	s.last = t
	switch {
	case s.span.From.IsZero():
		s.span = Span{t, t}
	case t.Sub(s.span.To) < ActivityGap && !t.Before(s.span.From):
		if t.After(s.span.To) {
			s.span.To = t
		}
	case t.Before(s.span.From) && s.span.From.Sub(t) < ActivityGap:
		s.span.From = t
	default:
		if len(r.Activity) < keepSpans {
			r.Activity = append(r.Activity, s.span)
			s.span = Span{t, t}
		} else if t.After(s.span.To) {
			s.span.To = t
		}
	}
}

// partial joins a CRI record that comes in parts and judges it when it is
// whole. It reports whether the line belonged to one.
func (s *state) partial(line []byte, pos int) bool {
	l := logline.Parse(line)
	j := &s.join
	if l.Wrap != logline.CRI || j.active && l.Stderr != j.stderr || !j.active && !l.Partial {
		if l.Wrap == logline.JournalJSON {
			s.whole(&l, line, s.line, s.offset+int64(pos))
			return true
		}
		return false
	}
	if !j.active {
		*j = joined{active: true, stderr: l.Stderr, first: append(j.first[:0], line...), body: j.body[:0],
			number: s.line, offset: s.offset + int64(pos)}
	}
	if room := MaxLine - len(j.body); room > 0 {
		j.body = append(j.body, l.Body[:min(room, len(l.Body))]...)
	}
	if !l.Partial {
		s.endJoin()
	}
	return true
}

func (s *state) endJoin() {
	j := &s.join
	if !j.active {
		return
	}
	j.active = false
	s.res.Partials++
	head := logline.Parse(j.first)
	raw := append(bytes.Clone(j.first[:len(j.first)-len(head.Body)]), j.body...)
	l := logline.Parse(raw)
	s.whole(&l, raw, j.number, j.offset)
}

// whole judges a line whose content stands nowhere as it is.
func (s *state) whole(l *logline.Line, raw []byte, number int, offset int64) {
	text := l.AppendText(nil, l.AppendPairs(nil))
	var hits []signature.Hit
	for _, h := range s.m.Find(text, nil) {
		if h.Index < s.m.Marks() {
			hits = append(hits, h)
		}
	}
	if len(hits) > 0 {
		s.judge(l, raw, hits, number, offset)
	}
}

// candidates judges the literals found in a line.
func (s *state) candidates(line []byte, hits []signature.Hit, pos int) {
	n := 0
	for _, h := range hits {
		if h.Index < s.m.Marks() && h.Pos-pos < len(line) {
			hits[n] = h
			n++
		}
	}
	if n == 0 {
		return
	}
	l := logline.Parse(line)
	s.judge(&l, line, hits[:n], s.line, s.offset+int64(pos))
}

// program is who wrote the line; several bits if it is not known.
func (s *state) program(l *logline.Line) signature.Emitter {
	if len(l.Ident) > 0 {
		if e := signature.Named(string(l.Ident)); e != 0 || s.o.Program == 0 {
			return e
		}
	}
	if s.o.Program != 0 {
		return s.o.Program
	}
	return signature.Any &^ signature.Events
}

// judge counts the signatures that really are in the line: printed by a program
// that prints them, in the place where they count.
func (s *state) judge(l *logline.Line, raw []byte, hits []signature.Hit, number int, offset int64) {
	by := s.program(l)
	if by == 0 || quotes(l.Message) && by != signature.Events {
		return
	}
	s.textBuf, s.pairs = s.textBuf[:0], s.pairs[:0]
	var at time.Time
	timed, paired := false, l.Fields == nil
	for i, h := range hits {
		sig := s.m.Sig(h)
		def := &s.m.Table[sig]
		if def.By&by == 0 {
			continue
		}
		if slices.ContainsFunc(hits[:i], func(o signature.Hit) bool { return o.Index >= 0 && s.m.Sig(o) == sig }) {
			continue // counted already
		}
		if !paired && (def.In == signature.Text || len(def.Keys) > 0) {
			s.pairs, paired = l.AppendPairs(s.pairs), true
		}
		area := l.Message
		if def.In == signature.Text {
			if len(s.textBuf) == 0 {
				s.textBuf = l.AppendText(s.textBuf, s.pairs)
			}
			area = s.textBuf
		}
		if !s.m.In(h, area) {
			hits[i].Index = -1
			continue
		}
		if !timed {
			if at = s.at(l.When()); at.IsZero() {
				at = s.last
			}
			timed = true
		}
		s.count(sig, by&def.By, l, raw, area, at, number, offset)
	}
}

// quotes reports whether a message shows an event of something else.
func quotes(msg []byte) bool {
	return bytes.HasPrefix(msg, []byte("Event(v1.")) || bytes.Equal(msg, []byte("Event occurred"))
}

func (s *state) count(sig int, by signature.Emitter, l *logline.Line, raw, area []byte, at time.Time, number int, offset int64) {
	c := s.counters[key{sig, by}]
	if c == nil {
		c = newCounter(sig, &s.m.Table[sig], by)
		s.counters[key{sig, by}] = c
	}
	for k, name := range c.stat.Sig.Keys {
		for _, f := range s.pairs {
			if string(f.Key) != name {
				continue
			}
			if f.Quoted {
				f.Val = logline.Unescape(f.Val)
			}
			c.set(k, f.Val)
		}
	}
	if c.stat.Sig.Pattern != "" {
		if !c.matched || !bytes.Equal(area, c.area) { // a program in a loop repeats itself
			c.matched, c.area = true, append(c.area[:0], area...)
			c.match(s.m.Submatch(sig, area), s.m.Groups(sig))
		}
		for i, v := range c.groups {
			if c.vals[i] == "" {
				c.vals[i] = v
			}
		}
	}
	var context []byte
	if c.stat.Sig.Context {
		for _, p := range s.prev {
			if len(p) > 0 {
				context = append(context, p[:min(len(p), 200)]...)
				context = append(context, " ⏎ "...)
			}
		}
		context = bytes.TrimSuffix(context, []byte(" ⏎ "))
	}
	c.add(at, number, offset, l, raw, context)
}

// export reads journald's export format entry by entry.
func (s *state) export(ctx context.Context, r io.Reader) error {
	s.res.Wrap = logline.JournalExport.String()
	e := logline.NewExportReader(io.LimitReader(r, s.o.Limit))
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rec, err := e.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.res.Broken = err.Error()
			}
			return nil
		}
		s.res.Lines++
		s.res.Bytes += int64(len(rec.Message)) + rec.Cut
		if rec.Cut > 0 {
			s.res.Long++
			s.res.Cut += rec.Cut
		}
		s.line = rec.Line
		l := logline.Parse(rec.Message)
		l.Wrap, l.Outer = logline.JournalExport, rec.Stamp
		if len(l.Ident) == 0 {
			l.Ident = rec.Ident
		}
		s.tick(s.at(rec.Stamp))
		s.whole(&l, bytes.Clone(rec.Message), rec.Line, rec.Offset)
		s.keepTail(rec.Message)
		s.keepTail([]byte("\n"))
	}
}

// keepTail remembers the end of what was read.
func (s *state) keepTail(b []byte) {
	if len(b) > tailSize {
		b = b[len(b)-tailSize:]
	}
	s.tail = append(s.tail, b...)
	if drop := len(s.tail) - tailSize; drop > 0 {
		s.tail = s.tail[:copy(s.tail, s.tail[drop:])]
	}
}

// finish puts the result in order.
func (s *state) finish() {
	s.endJoin()
	r := s.res
	if r.Wrap != logline.JournalExport.String() {
		r.Lines = s.line
	}
	if !s.span.From.IsZero() {
		r.Activity = append(r.Activity, s.span)
	}
	for _, c := range s.counters {
		r.Stats = append(r.Stats, c.finish())
	}
	order := make(map[*Stat]int, len(s.counters))
	for k, c := range s.counters {
		order[c.stat] = k.sig
	}
	slices.SortFunc(r.Stats, func(a, b *Stat) int {
		if a.Sig != b.Sig {
			return order[a] - order[b]
		}
		return int(a.Program) - int(b.Program)
	})
	s.lastLines()
}

// lastLines takes the kept end of the stream apart.
func (s *state) lastLines() {
	b := bytes.TrimRight(s.tail, "\n\r\x00")
	lines := bytes.Split(b, []byte("\n"))
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	} else if len(s.tail) == tailSize && len(lines) > 1 {
		lines = lines[1:] // cut in its middle
	}
	after := bytes.Count(s.tail[len(b):], []byte("\n"))
	number := s.res.Lines - max(after-1, 0) - len(lines) + 1
	var at time.Time
	for i, raw := range lines {
		raw = bytes.TrimRight(raw, "\r")
		if len(bytes.TrimLeft(raw, "\x00")) == 0 {
			continue
		}
		l := logline.Parse(raw[:min(len(raw), MaxLine)])
		if t := s.at(l.When()); !t.IsZero() {
			at = t
		}
		s.res.Tail = append(s.res.Tail, keep(&l, raw, nil, number+i, 0, at))
	}
}
