// Package logline takes single log lines apart: who wrote them, when, and what they say.
//
// It knows the shapes in which control-plane logs are found: the CRI log format,
// journald's short, short-iso, export and JSON output, and inside or instead of
// them etcd's zap JSON and capnslog, klog text and JSON, containerd's logfmt.
// Parsing never fails: what is not recognised is a plain line. All slices of a
// Line alias the input. The package imports nothing of ours.
package logline

import (
	"bytes"
	"time"
)

// Format is the innermost shape that was recognised.
type Format uint8

// The shapes.
const (
	Plain Format = iota
	Zap
	KlogText
	KlogJSON
	Capnslog
	Logfmt
	ZapConsole
)

var formatNames = [...]string{"plain", "zap", "klog", "klog-json", "capnslog", "logfmt", "zap-console"}

// String returns the name of the shape.
func (f Format) String() string { return formatNames[f] }

// Wrap is the outer shape around a line.
type Wrap uint8

// The outer shapes.
const (
	Bare     Wrap = iota // nothing around it
	CRI                  // time, stream, tag
	Short                // journald or syslog: local time without year or zone
	ShortISO             // the same with year and zone
	JournalJSON
	JournalExport
)

var wrapNames = [...]string{"bare", "cri", "short", "short-iso", "journal-json", "journal-export"}

// String returns the name of the shape.
func (w Wrap) String() string { return wrapNames[w] }

// A Stamp is a time as far as a line gives it.
type Stamp struct {
	// Time is UTC if Zoned; otherwise its clock reading is the local time of
	// the writer, given as if it were UTC. Without a year the year is 0.
	Time    time.Time
	Zoned   bool
	HasYear bool
}

// IsZero reports whether there is no time at all.
func (s Stamp) IsZero() bool { return s.Time.IsZero() && !s.HasYear && !s.Zoned }

// A Line is one log line taken apart.
type Line struct {
	Wrap   Wrap
	Format Format
	Outer  Stamp  // of the wrapping
	Inner  Stamp  // of the line itself
	Ident  []byte // program or unit named by the wrapping, "" if none
	// Partial says that the CRI tag is P: the line goes on in the next one.
	Partial bool
	Stderr  bool
	Level   byte   // 'D', 'I', 'W', 'E', 'F', or 0
	Caller  []byte // file:line of the source
	Message []byte // the message
	Fields  []byte // the structured rest; read it with Each
	Body    []byte // everything inside the wrapping
}

// When returns the best time of the line: one with a zone before one without,
// and of two equal ones the inner, which is when the program wrote it.
func (l *Line) When() Stamp {
	switch {
	case l.Inner.Zoned:
		return l.Inner
	case l.Outer.Zoned:
		return l.Outer
	case !l.Inner.IsZero():
		return l.Inner
	}
	return l.Outer
}

// Parse takes one line apart. The line has no line break at its end.
func Parse(b []byte) Line {
	b = bytes.TrimRight(b, "\r")
	var l Line
	body := l.unwrap(b)
	l.Body = body
	l.inner(body)
	return l
}

// unwrap reads the outer shape and returns what is inside.
func (l *Line) unwrap(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	switch c := b[0]; {
	case c >= '0' && c <= '9':
		if body, ok := l.cri(b); ok {
			return body
		}
		if body, ok := l.shortISO(b); ok {
			return body
		}
	case c >= 'A' && c <= 'S':
		if body, ok := l.short(b); ok {
			return body
		}
	case c == '{':
		if bytes.Contains(b, []byte(`"__REALTIME_TIMESTAMP"`)) { // the fields have no order
			return l.journalJSON(b)
		}
	case c >= 'a' && c <= 'z':
		if body, ok := l.identOnly(b); ok {
			return body
		}
	}
	return b
}

// inner reads the shape of the line itself.
func (l *Line) inner(b []byte) {
	l.Message = b
	if len(b) == 0 {
		return
	}
	switch c := b[0]; {
	case c == '{':
		l.json(b)
	case (c == 'I' || c == 'W' || c == 'E' || c == 'F') && len(b) > 20:
		l.klog(b)
	case c == 't' && bytes.HasPrefix(b, []byte(`time="`)):
		l.logfmt(b)
	case c >= '0' && c <= '9':
		if !l.capnslog(b) {
			l.zapConsole(b)
		}
	}
}
