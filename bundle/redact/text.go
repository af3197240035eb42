package redact

import (
	"bytes"
	"strings"
)

// Text overwrites what looks like a secret in a text, in place and with the same
// length. It returns how many places it overwrote, by shape. It is meant for
// texts without a structure that is known: logs, messages, saved output.
func Text(b []byte) map[string]int {
	var counts map[string]int
	find(b, false, func(start, end int, name string) {
		if Masked(b[start:end]) {
			return
		}
		mask(b[start:end])
		if counts == nil {
			counts = map[string]int{}
		}
		counts[name]++
	})
	return counts
}

// Check is Text with only the shapes that are certain: those that may not occur
// even in fields that are kept. It reports whether it overwrote anything.
func Check(b []byte) bool {
	hit := false
	find(b, true, func(start, end int, _ string) {
		if !Masked(b[start:end]) {
			mask(b[start:end])
			hit = true
		}
	})
	return hit
}

// String is Text for a string: error messages, command lines.
func String(s string) string {
	b := []byte(s)
	Text(b)
	return string(b)
}

// pieceBytes is how much text is searched at a time; pieces end at line ends
// where there are any.
const pieceBytes = 256 << 10

// find calls yield for every secret shape in b. yield may overwrite what it is
// given. With certain set, only shapes that raise the alarm are looked for.
func find(b []byte, certain bool, yield func(start, end int, name string)) {
	for off := 0; off < len(b); {
		end := min(off+pieceBytes, len(b))
		if end < len(b) {
			if i := bytes.LastIndexByte(b[off:end], '\n'); i > 0 {
				end = off + i + 1
			}
		}
		findPiece(b[off:end], certain, func(s, e int, name string) { yield(off+s, off+e, name) })
		off = end
	}
	privateKeys(b, yield)
}

func findPiece(b []byte, certain bool, yield func(start, end int, name string)) {
	bootstrapTokens(b, yield)
	if !certain {
		defer runs(b, yield)
	}
	present := triggered(b, certain)
	if present == 0 {
		return
	}
	low := asciiLower(b)
	for i := range shapes {
		s := &shapes[i]
		if present&(1<<i) == 0 {
			continue
		}
		next := make([]int, len(s.triggers)) // of each trigger, at or after done
		for j := range next {
			next[j] = -1
		}
		for done := 0; done < len(low); {
			at := len(low)
			for j, t := range s.triggers {
				if next[j] < done {
					next[j] = len(low)
					if k := bytes.Index(low[done:], []byte(t)); k >= 0 {
						next[j] = done + k
					}
				}
				at = min(at, next[j])
			}
			if at == len(low) {
				break
			}
			from, to := lineAround(b, at)
			if s.twoLines && to < len(b) {
				_, to = lineAround(b, to)
			}
			s.in(b, max(from, done), to, yield)
			done = max(to, at+1)
		}
	}
}

// A trigger is a text that begins with two given bytes, and the shapes it calls.
type trigger struct {
	text   string
	shapes uint64
}

// index of all triggers by their first two bytes.
var triggers = func() map[uint16][]trigger {
	m := map[uint16][]trigger{}
	for i, s := range shapes {
		for _, t := range s.triggers {
			t += " "[:max(0, 2-len(t))]
			k := uint16(t[0])<<8 | uint16(t[1])
			m[k] = append(m[k], trigger{strings.TrimSpace(t), 1 << i})
		}
	}
	return m
}()

var triggerBits = func() (bits [1 << 16 / 64]uint64) {
	for k := range triggers {
		bits[k/64] |= 1 << (k % 64)
	}
	for c := range 256 { // triggers of one byte
		if k := uint16('[')<<8 | uint16(c); true {
			bits[k/64] |= 1 << (k % 64)
		}
	}
	return bits
}()

var alarmShapes = func() (m uint64) {
	for i, s := range shapes {
		if s.alarm {
			m |= 1 << i
		}
	}
	return m
}()

// triggered returns which shapes can occur in b at all, as a bitmap.
func triggered(b []byte, certain bool) (m uint64) {
	if len(b) < 2 {
		return 0
	}
	k := uint16(lowerByte[b[0]])
	for i := 1; i < len(b); i++ {
		k = k<<8 | uint16(lowerByte[b[i]])
		if triggerBits[k/64]&(1<<(k%64)) == 0 {
			continue
		}
		list := triggers[k]
		if byte(k>>8) == '[' {
			list = triggers[uint16('[')<<8|' ']
		}
		for _, t := range list {
			if t.shapes&^m != 0 && hasLower(b[i-1:], t.text) {
				m |= t.shapes
			}
		}
	}
	if certain {
		m &= alarmShapes
	}
	return m
}

var lowerByte = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if i >= 'A' && i <= 'Z' {
			t[i] = byte(i) + 'a' - 'A'
		}
	}
	return t
}()

// hasLower reports whether b begins with text, which is in lower case.
func hasLower(b []byte, text string) bool {
	if len(b) < len(text) {
		return false
	}
	for i := range len(text) {
		if lowerByte[b[i]] != text[i] {
			return false
		}
	}
	return true
}

func asciiLower(b []byte) []byte {
	low := make([]byte, len(b))
	for i, c := range b {
		low[i] = lowerByte[c]
	}
	return low
}

// lineAround is the line of b that at lies in, with its line end; of very long
// lines the neighbourhood.
func lineAround(b []byte, at int) (from, to int) {
	const reach = 16 << 10
	lo, hi := max(0, at-reach), min(len(b), at+reach)
	if i := bytes.LastIndexByte(b[lo:at], '\n'); i >= 0 {
		lo += i + 1
	}
	if i := bytes.IndexByte(b[at:hi], '\n'); i >= 0 {
		hi = at + i + 1
	}
	return lo, hi
}

func (s *shape) in(b []byte, from, to int, yield func(start, end int, name string)) {
	w := b[from:to]
	for len(w) > 0 {
		m := s.re.FindSubmatchIndex(w)
		if m == nil {
			return
		}
		g := 2 * s.group
		if m[g] >= 0 && m[g+1] > m[g] && (s.keep == nil || !s.keep(w[m[0]:m[g+1]], w[m[g]:m[g+1]])) {
			yield(from+m[g], from+m[g+1], s.name)
		}
		next := max(m[1], m[0]+1)
		from += next
		w = w[next:]
	}
}

// bootstrapTokens finds six and sixteen characters of [a-z0-9] around a dot:
// kubeadm's bootstrap tokens. Names of Events end the same way, with a time in
// hexadecimal; those begin with 1 and are left alone.
func bootstrapTokens(b []byte, yield func(start, end int, name string)) {
	for off := 0; ; {
		i := bytes.IndexByte(b[off:], '.')
		if i < 0 {
			return
		}
		dot := off + i
		off = dot + 1
		if dot < 6 || dot+17 > len(b) || !tokenChars(b[dot-6:dot]) || !tokenChars(b[dot+1:dot+17]) {
			continue
		}
		if dot > 6 && wordByte(b[dot-7]) || dot+17 < len(b) && wordByte(b[dot+17]) {
			continue
		}
		if tail := b[dot+1 : dot+17]; tail[0] == '1' && isHex(tail) || digits(tail) == 0 {
			continue
		}
		yield(dot-6, dot+17, "bootstrap-token")
	}
}

func tokenChars(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_'
}

var beginKey = []byte("PRIVATE KEY")

// privateKeys finds the bodies of PEM private keys, with or without an end line,
// with real or escaped line ends.
func privateKeys(b []byte, yield func(start, end int, name string)) {
	for off := 0; ; {
		i := bytes.Index(b[off:], beginKey)
		if i < 0 {
			return
		}
		at := off + i
		off = at + len(beginKey)
		lineStart := max(0, at-48)
		begin := bytes.LastIndex(b[lineStart:at], []byte("-----BEGIN"))
		rest := b[off:]
		if begin < 0 || bytes.Contains(b[lineStart+begin:at], []byte("\n")) {
			continue
		}
		for _, tail := range []string{" BLOCK-----", "-----"} {
			if bytes.HasPrefix(rest, []byte(tail)) {
				rest = rest[len(tail):]
				n := keyBody(rest)
				if n > 0 {
					start := len(b) - len(rest)
					yield(start, start+n, "private-key")
					off = start + n
				}
				break
			}
		}
	}
}

// keyBody returns how much of b belongs to a key's body: up to the end line, or
// as long as the characters fit.
func keyBody(b []byte) int {
	const most = 64 << 10
	lim := min(len(b), most)
	if i := bytes.Index(b[:lim], []byte("-----END")); i >= 0 {
		return i
	}
	n, line := 0, 0
	for n < lim {
		c := b[n]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		switch c {
		case '\n':
			line = n + 1
			ok = true
		case '+', '/', '=', '\r', '\t', '\\', ':', ',', '-':
			ok = true
		case ' ': // only in the headers of an encrypted key, or before a line
			rest := b[line:n]
			ok = len(bytes.TrimSpace(rest)) == 0 || bytes.HasSuffix(rest, []byte(":"))
			if !ok {
				return line
			}
		}
		if !ok {
			break
		}
		n++
	}
	return n
}
