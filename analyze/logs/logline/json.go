package logline

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// eachJSON calls fn for every member of the outermost object of b until fn
// returns false. A string value comes without its quotes and with its escapes
// (quoted is true); other values come raw. A cut-off object gives the members
// that are whole, and the beginning of a cut-off string.
func eachJSON(b []byte, fn func(key, val []byte, quoted bool) bool) {
	i := bytes.IndexByte(b, '{') + 1
	if i == 0 {
		return
	}
	for {
		i = skip(b, i, " ,\t")
		if i >= len(b) || b[i] != '"' {
			return
		}
		key, next := str(b, i)
		i = skip(b, next, " \t:")
		if i >= len(b) {
			return
		}
		if b[i] == '"' {
			val, next := str(b, i)
			i = next
			if !fn(key, val, true) {
				return
			}
			continue
		}
		end := value(b, i)
		if !fn(key, b[i:end], false) {
			return
		}
		i = end
	}
}

func skip(b []byte, i int, set string) int {
	for ; i < len(b); i++ {
		if strings.IndexByte(set, b[i]) < 0 {
			break
		}
	}
	return i
}

// str returns the content of the string that starts at the quote b[i], and the
// position after its closing quote.
func str(b []byte, i int) ([]byte, int) {
	i++
	start := i
	for {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return b[start:], len(b)
		}
		i += j
		esc := 0
		for k := i - 1; k >= start && b[k] == '\\'; k-- {
			esc++
		}
		if esc%2 == 0 {
			return b[start:i], i + 1
		}
		i++
	}
}

// value returns the end of the number, word, array or object at b[i].
func value(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			_, i = str(b, i)
			continue
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// Unescape resolves the escapes of a JSON or klog string; without one it
// returns b itself.
func Unescape(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	return AppendUnescaped(make([]byte, 0, len(b)), b)
}

// AppendUnescaped appends b to dst with the escapes of a JSON or klog string
// resolved.
func AppendUnescaped(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 || i+1 == len(b) {
			return append(dst, b...)
		}
		dst = append(dst, b[:i]...)
		c := b[i+1]
		b = b[i+2:]
		switch c {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'u':
			if len(b) >= 4 {
				if r, err := strconv.ParseUint(string(b[:4]), 16, 32); err == nil {
					dst = utf8.AppendRune(dst, rune(r))
					b = b[4:]
					continue
				}
			}
			dst = append(dst, 'u')
		default:
			dst = append(dst, c)
		}
	}
}

// json reads a line of zap or of klog's JSON output. Which one it is shows in
// the type of ts: zap writes a time, klog milliseconds.
func (l *Line) json(b []byte) {
	known := false
	eachJSON(b, func(key, val []byte, quoted bool) bool {
		switch string(key) {
		case "level":
			if quoted && len(val) > 0 {
				l.Level = levelOf(val)
			}
		case "ts":
			if quoted {
				if s, n := stamp(val); n > 0 {
					l.Inner, l.Format, known = s, Zap, true
				}
			} else if ms, err := strconv.ParseFloat(string(val), 64); err == nil {
				if s, ok := unixMillis(ms); ok {
					l.Inner, l.Format, known = s, KlogJSON, true
				} else if s, ok := unixMillis(ms * 1000); ok { // zap's epoch seconds
					l.Inner, l.Format, known = s, Zap, true
				}
			}
		case "caller":
			l.Caller = val
		case "msg":
			if known || l.Level != 0 {
				l.Message = Unescape(val)
				l.Fields = b
				if l.Format == Plain {
					l.Format = Zap
				}
				return false
			}
		}
		return true
	})
	if l.Format == KlogJSON && l.Level == 0 {
		l.Level = 'I'
		if bytes.Contains(b, []byte(`"err":`)) {
			l.Level = 'E'
		}
	}
}

func levelOf(name []byte) byte {
	switch name[0] {
	case 'd', 'D', 't':
		return 'D'
	case 'i', 'I', 'N', 'n':
		return 'I'
	case 'w', 'W':
		return 'W'
	case 'e', 'E':
		return 'E'
	case 'f', 'F', 'p', 'C', 'c':
		return 'F'
	}
	return 0
}
