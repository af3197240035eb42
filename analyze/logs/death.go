package logs

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"coldplane/analyze/logs/scan"
	"coldplane/analyze/logs/signature"
)

// A Class says why a process ended, as far as its own log tells.
type Class string

// Classes of ends. Their names appear in messages.
const (
	ClassOrderly Class = "stopped in order"
	ClassFlag    Class = "a flag or feature gate is not accepted"
	ClassFile    Class = "a file is missing or cannot be read"
	ClassPort    Class = "a port is taken"
	ClassAddress Class = "an address is not on this host"
	ClassDisk    Class = "no space left on the device"
	ClassData    Class = "etcd's data cannot be read"
	ClassBehind  Class = "the raft log is shorter than what was acknowledged"
	ClassMembers Class = "the member list and the flags disagree"
	ClassVersion Class = "the binary is older than the data"
	ClassStore   Class = "the store does not answer"
	ClassTLS     Class = "TLS to the store fails"
	ClassLease   Class = "the leader lease was lost"
	ClassPanic   Class = "panic"
	ClassError   Class = "fatal error"
	ClassUnknown Class = ""
)

// fatalClass gives the classes of texts with which a process ends, in the
// order in which they explain: the particular before the general.
var fatalClass = []struct {
	id    string
	class Class
}{
	{"R08", ClassBehind}, {"E100", ClassData}, {"E22", ClassData}, {"E23", ClassData}, {"E24", ClassData}, {"E25", ClassData},
	{"E61", ClassData}, {"E74", ClassData}, {"E96", ClassData},
	{"S06", ClassFlag}, {"A14", ClassFlag}, {"A15", ClassFlag}, {"A16", ClassFlag}, {"E65", ClassFlag}, {"K32", ClassFlag}, {"A35", ClassFlag},
	{"X08", ClassDisk}, {"E29", ClassDisk}, {"X10", ClassPort}, {"X11", ClassAddress},
	{"E17", ClassMembers}, {"E18", ClassMembers}, {"E19", ClassMembers}, {"E20", ClassMembers}, {"E21", ClassMembers}, {"E62", ClassMembers},
	{"E48", ClassVersion}, {"E27", ClassFile}, {"E67", ClassFile}, {"A25", ClassFile}, {"A43", ClassFile},
	{"E28", ClassData}, {"E60", ClassData}, {"A50", ClassStore}, {"A18", ClassPort}, {"E66", ClassPort},
	{"C01", ClassLease}, {"C09", ClassLease}, {"X21", ClassError},
}

// startIDs are texts with which a process begins.
var startIDs = []string{"E52", "X26", "X27", "X28"}

// A Death is the end of a process as its log shows it.
type Death struct {
	Class   Class
	Sig     string // signature that decided, "" if none
	Line    scan.Line
	Orderly bool   // told to stop, and did
	Value   string // the flag, gate, file or address concerned, when known
}

// deathSpan is how many timed lines may follow the last words of a process:
// other goroutines go on writing for a moment.
const deathSpan = 12

// Death tells how the process that wrote the stream ended; ok is false if the
// stream does not show an end. Only streams of a single program can be judged.
func (s *Stream) Death() (d Death, ok bool) {
	r := s.Result
	if r == nil || s.Program == 0 || s.Rotated || s.Program == signature.Events {
		return Death{}, false
	}
	started := 0
	for _, st := range r.Stats {
		if slices.Contains(startIDs, st.Sig.ID) {
			started = max(started, st.Hits[len(st.Hits)-1].Line)
		}
	}
	after := func(line int) bool { return line >= started && line >= r.LastTimed-deathSpan }

	best := len(fatalClass)
	for _, st := range r.Stats {
		h := st.Hits[len(st.Hits)-1]
		i := slices.IndexFunc(fatalClass, func(f struct {
			id    string
			class Class
		}) bool {
			return f.id == st.Sig.ID
		})
		if i < 0 || i >= best || !after(h.Line) || !final(r, st, h) {
			continue
		}
		best = i
		d, ok = Death{Class: fatalClass[i].class, Sig: st.Sig.ID, Line: lineOf(st, h)}, true
		for _, v := range h.Values {
			d.Value = cmp.Or(d.Value, v)
		}
		if st.Sig.ID == "X21" && d.Value != "" { // the words are in the error
			d.Line.Message, d.Value = d.Value, ""
		}
	}
	last := lastFatal(r, after)
	if last == nil && ok {
		return refine(d, r), true
	}
	if last != nil {
		if !ok {
			d = Death{Class: ClassError, Line: *last}
			if strings.HasPrefix(last.Message, "panic: ") || strings.HasPrefix(last.Message, "fatal error: ") {
				d.Class = ClassPanic
			}
		}
		return refine(d, r), true
	}
	if st := r.Stat("X20"); st != nil && after(st.Hits[len(st.Hits)-1].Line) {
		return Death{Class: ClassPanic, Sig: "X20", Line: lineOf(st, st.Hits[len(st.Hits)-1])}, true
	}
	for _, id := range []string{"E95", "E68", "A21"} {
		if st := r.Stat(id); st != nil {
			h := st.Hits[len(st.Hits)-1]
			if h.Line >= started && h.Line >= r.LastTimed-60 && (id != "E68" || r.Last.Sub(h.Time) < time.Minute) {
				return Death{Class: ClassOrderly, Sig: id, Line: lineOf(st, h), Orderly: true}, true
			}
		}
	}
	return Death{}, false
}

// final reports whether a text ends a process: those that also occur in a
// running one must be beside a fatal line, or be the very last.
func final(r *scan.Result, st *scan.Stat, h scan.Hit) bool {
	switch st.Sig.ID {
	case "S06", "A14", "A15", "A16", "E65", "K32", "A35", "R08", "E100", "C01", "C09", "X21", "A50", "E25", "E48":
		return true
	}
	if h.Line >= r.LastTimed-1 {
		return true
	}
	return slices.ContainsFunc(r.Fatal, func(f scan.Line) bool { return f.Number >= h.Line-3 && f.Number <= h.Line+deathSpan })
}

func lastFatal(r *scan.Result, after func(int) bool) *scan.Line {
	// A panic's own line explains more than the crash of its goroutines.
	for i := range r.Fatal {
		if after(r.Fatal[i].Number) {
			return &r.Fatal[i]
		}
	}
	if n := len(r.Tail); n > 0 && r.Tail[n-1].Level == 'F' {
		return &r.Tail[n-1]
	}
	return nil
}

// refine reads the class of a general fatal line off its words.
func refine(d Death, r *scan.Result) Death {
	text := d.Line.Message + " " + d.Line.Excerpt
	if d.Class != ClassError && d.Class != ClassPanic {
		return d
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case has("no such file or directory", "permission denied", "could not load", "unable to load client CA"):
		d.Class = ClassFile
	case has("no space left on device"):
		d.Class = ClassDisk
	case has("address already in use"):
		d.Class = ClassPort
	case has("cannot assign requested address"):
		d.Class = ClassAddress
	case has("crc mismatch", "page ", "freelist", "invalid database", "assertion failed", "freepages"):
		if d.Class == ClassPanic || has("crc mismatch", "invalid database") {
			d.Class = ClassData
		}
	case has("context deadline exceeded", "connection refused", "grpc connection not ready", "error creating storage factory"):
		d.Class = ClassStore
		if g := r.Stat("G10"); g != nil {
			h := g.Hits[len(g.Hits)-1]
			if c := signature.ConnError(g.Value(h, "err")); c.TLS() {
				d.Class, d.Value = ClassTLS, string(c)
			} else if c != signature.ConnUnknown {
				d.Value = string(c)
			}
		}
	}
	return d
}

// lineOf returns the kept line of an occurrence, or what is known of it.
func lineOf(st *scan.Stat, h scan.Hit) scan.Line {
	for _, l := range st.Samples {
		if l.Number == h.Line {
			return l
		}
	}
	return scan.Line{Number: h.Line, Offset: h.Offset, Time: h.Time, Message: st.Sig.Means, Excerpt: st.Sig.Texts[0]}
}

// LastError returns the last line of a stream that reports an error, else its
// last line; ok is false for an empty stream.
func (s *Stream) LastError() (scan.Line, bool) {
	if s.Result == nil || len(s.Result.Tail) == 0 {
		return scan.Line{}, false
	}
	for _, l := range slices.Backward(s.Result.Tail) {
		if l.Level == 'E' || l.Level == 'F' || strings.HasPrefix(l.Message, "Error: ") || strings.HasPrefix(l.Message, "panic: ") {
			return l, true
		}
	}
	return s.Result.Tail[len(s.Result.Tail)-1], true
}
