package logline

import (
	"bytes"
	"strconv"
	"time"
)

// cri reads a line of /var/log/pods: RFC 3339 time with nanoseconds, stream,
// tag (F, or P for a line that goes on; further tags after a colon), content.
func (l *Line) cri(b []byte) ([]byte, bool) {
	s, n := stamp(b)
	if n == 0 || !s.Zoned || len(b) < n+9 || b[n] != ' ' {
		return nil, false
	}
	rest := b[n+1:]
	stderr := bytes.HasPrefix(rest, []byte("stderr "))
	if !stderr && !bytes.HasPrefix(rest, []byte("stdout ")) {
		return nil, false
	}
	rest = rest[7:]
	if len(rest) == 0 || rest[0] != 'F' && rest[0] != 'P' || len(rest) > 1 && rest[1] != ' ' && rest[1] != ':' {
		return nil, false
	}
	l.Wrap, l.Outer, l.Stderr, l.Partial = CRI, s, stderr, rest[0] == 'P'
	if i := bytes.IndexByte(rest, ' '); i >= 0 {
		return rest[i+1:], true
	}
	return rest[:0], true
}

// short reads "Jan 02 15:04:05 host ident[pid]: ", with optional fraction.
func (l *Line) short(b []byte) ([]byte, bool) {
	m := month(b)
	if m == 0 || len(b) < 16 || b[3] != ' ' {
		return nil, false
	}
	day := digits(b[4:], 2)
	if b[4] == ' ' {
		day = digits(b[5:], 1)
	}
	d, n := clock(b[7:])
	if day < 1 || day > 31 || n == 0 || b[6] != ' ' {
		return nil, false
	}
	l.Wrap, l.Outer = Short, yearless(m, day, d)
	return l.syslog(b[7+n:]), true
}

// shortISO reads "2026-01-02T15:04:05+0100 host ident[pid]: ".
func (l *Line) shortISO(b []byte) ([]byte, bool) {
	s, n := stamp(b)
	if n == 0 || b[10] != 'T' || len(b) < n+2 || b[n] != ' ' {
		return nil, false
	}
	save := l.Ident
	body := l.syslog(b[n:])
	if len(l.Ident) == 0 { // a program's own time, not syslog's
		l.Ident = save
		return nil, false
	}
	l.Wrap, l.Outer = ShortISO, s
	return body, true
}

// syslog reads " host ident[pid]: " and returns what follows. Without the
// colon everything after the time is the body.
func (l *Line) syslog(b []byte) []byte {
	b = bytes.TrimPrefix(b, []byte(" "))
	host := bytes.IndexByte(b, ' ')
	if host < 0 {
		return b
	}
	rest := b[host+1:]
	if body, ok := l.ident(rest); ok {
		return body
	}
	if body, ok := l.ident(b); ok { // no host
		return body
	}
	return b
}

// ident reads "name[pid]: " or "name: ".
func (l *Line) ident(b []byte) ([]byte, bool) {
	colon := bytes.Index(b[:min(len(b), 96)], []byte(":"))
	if colon <= 0 || colon+1 < len(b) && b[colon+1] != ' ' {
		return nil, false
	}
	name := b[:colon]
	if i := bytes.IndexByte(name, '['); i > 0 && name[len(name)-1] == ']' {
		name = name[:i]
	}
	if bytes.ContainsAny(name, " \"{}[]=") {
		return nil, false
	}
	l.Ident = name
	return bytes.TrimPrefix(b[colon+1:], []byte(" ")), true
}

// identOnly reads "kubelet[123]: text", as people cut it out of a journal.
func (l *Line) identOnly(b []byte) ([]byte, bool) {
	i := bytes.IndexByte(b[:min(len(b), 64)], '[')
	if i <= 0 {
		return nil, false
	}
	j := bytes.Index(b[i:min(len(b), i+16)], []byte("]: "))
	if j < 0 || digits(b[i+1:], j-1) < 0 || j == 1 {
		return nil, false
	}
	return l.ident(b)
}

// journalJSON reads one object of "journalctl -o json". A message that is not
// text is an array of byte values there.
func (l *Line) journalJSON(b []byte) []byte {
	l.Wrap = JournalJSON
	var body []byte
	eachJSON(b, func(key, val []byte, quoted bool) bool {
		switch string(key) {
		case "__REALTIME_TIMESTAMP":
			if us, err := strconv.ParseInt(string(val), 10, 64); err == nil {
				l.Outer = micros(us)
			}
		case "SYSLOG_IDENTIFIER":
			l.Ident = Unescape(val)
		case "_SYSTEMD_UNIT", "UNIT":
			if len(l.Ident) == 0 {
				l.Ident = Unescape(val)
			}
		case "_TRANSPORT":
			if string(val) == "kernel" {
				l.Ident = []byte("kernel")
			}
		case "MESSAGE":
			if quoted {
				body = Unescape(val)
			} else {
				body = byteArray(val)
			}
		}
		return true
	})
	return body
}

// micros is the time of a journal's microseconds since 1970.
func micros(us int64) Stamp {
	if us < 0 || us > 1<<53 {
		return Stamp{}
	}
	return Stamp{Time: time.UnixMicro(us).UTC(), Zoned: true, HasYear: true}
}

// byteArray reads "[1,2,3]".
func byteArray(val []byte) []byte {
	if len(val) < 2 || val[0] != '[' {
		return nil
	}
	var out []byte
	n, seen := 0, false
	for _, c := range val[1:] {
		switch {
		case c >= '0' && c <= '9' && n < 1000:
			n, seen = n*10+int(c-'0'), true
		case c == ',' || c == ']':
			if seen && n < 256 {
				out = append(out, byte(n))
			}
			n, seen = 0, false
		}
	}
	return out
}
