package logline

import (
	"bytes"
	"time"
)

// klog reads "Lmmdd hh:mm:ss.uuuuuu thread file.go:line] message". Structured
// calls quote the message and append key="value" pairs.
func (l *Line) klog(b []byte) {
	mon, day := digits(b[1:], 2), digits(b[3:], 2)
	if mon < 1 || mon > 12 || day < 1 || day > 31 || b[5] != ' ' {
		return
	}
	d, n := clock(b[6:])
	if n < 10 {
		return
	}
	end := bytes.Index(b[6+n:min(len(b), 300)], []byte("] "))
	if end < 0 {
		if !bytes.HasSuffix(b, []byte("]")) {
			return
		}
		end = len(b) - 7 - n
	}
	head := b[6+n : 6+n+end]
	l.Level, l.Format, l.Inner = b[0], KlogText, yearless(time.Month(mon), day, d)
	if i := bytes.LastIndexByte(head, ' '); i >= 0 {
		l.Caller = head[i+1:]
	}
	l.Message = b[min(len(b), 6+n+end+2):]
	if len(l.Message) > 1 && l.Message[0] == '"' {
		msg, next := str(l.Message, 0)
		l.Fields = l.Message[min(next, len(l.Message)):]
		l.Message = Unescape(msg)
	}
}

// capnslog reads "2006-01-02 15:04:05.000000 W | pkg: message". The package
// stays part of the message.
func (l *Line) capnslog(b []byte) bool {
	s, n := stamp(b)
	if n == 0 || b[10] != ' ' || len(b) < n+5 || b[n] != ' ' || b[n+2] != ' ' || b[n+3] != '|' {
		return false
	}
	l.Inner, l.Format, l.Level = s, Capnslog, levelOf(b[n+1:n+2])
	l.Message = bytes.TrimPrefix(b[n+4:], []byte(" "))
	return true
}

// zapConsole reads zap's tab-separated output: time, level, caller, message,
// and one JSON object with the fields.
func (l *Line) zapConsole(b []byte) {
	s, n := stamp(b)
	if n == 0 || len(b) < n+3 || b[n] != '\t' {
		return
	}
	parts := bytes.SplitN(b[n+1:], []byte("\t"), 4)
	if len(parts) < 3 || len(parts[0]) == 0 {
		return
	}
	l.Inner, l.Format, l.Level = s, ZapConsole, levelOf(parts[0])
	l.Caller, l.Message = parts[1], parts[2]
	if len(parts) == 4 {
		l.Fields = parts[3]
	}
}

// logfmt reads containerd's time="…" level=… msg="…" key=value ….
func (l *Line) logfmt(b []byte) {
	l.Format, l.Fields = Logfmt, b
	eachPair(b, func(key, val []byte, _ bool) bool {
		switch string(key) {
		case "time":
			l.Inner, _ = stamp(val)
		case "level":
			if len(val) > 0 {
				l.Level = levelOf(val)
			}
		case "msg":
			l.Message = Unescape(val)
			return false
		}
		return true
	})
}

// eachPair calls fn for every key=value and key="value" of b until fn returns
// false. A quoted value comes without its quotes and with its escapes.
func eachPair(b []byte, fn func(key, val []byte, quoted bool) bool) {
	for i := 0; i < len(b); {
		i = skip(b, i, " ")
		eq := bytes.IndexByte(b[i:], '=')
		if eq < 0 {
			return
		}
		key := b[i : i+eq]
		if j := bytes.LastIndexByte(key, ' '); j >= 0 {
			key = key[j+1:]
		}
		i += eq + 1
		if i < len(b) && b[i] == '"' {
			val, next := str(b, i)
			i = next
			if !fn(key, val, true) {
				return
			}
			continue
		}
		end := len(b)
		if j := bytes.IndexByte(b[i:], ' '); j >= 0 {
			end = i + j
		}
		if !fn(key, b[i:end], false) {
			return
		}
		i = end
	}
}

// Each calls fn for every structured field of the line until fn returns false.
// A quoted value still has its escapes; resolve them with Unescape. Values of
// JSON that are no strings come as they stand.
func (l *Line) Each(fn func(key, val []byte, quoted bool) bool) {
	switch l.Format {
	case Zap, KlogJSON, ZapConsole:
		eachJSON(l.Fields, fn)
	case KlogText, Logfmt:
		eachPair(l.Fields, fn)
	}
}

// Field returns the value of a structured field, nil if there is none.
func (l *Line) Field(name string) []byte {
	var found []byte
	l.Each(func(key, val []byte, quoted bool) bool {
		if string(key) != name {
			return true
		}
		if found = val; quoted {
			found = Unescape(val)
		}
		return false
	})
	return found
}
