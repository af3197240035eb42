package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible makes a string from evidence safe to show: control, format,
// private-use, line and paragraph separator characters and invalid UTF-8
// become escapes, and the result is cut at max runes (0 is no limit). A
// backslash is doubled only when it would read as one of these escapes, so
// that paths and expressions stay readable. What a CI system would take for a
// command in its log ("##vso[", "##[", "::name::" at the start of a word) loses
// its first character to an escape.
func Visible(s string, max int) string {
	clean := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '\\' || (c == '#' || c == ':') && ciCommand(s, i) {
			clean = false
			break
		}
	}
	if clean && (max <= 0 || len(s) <= max) {
		return s
	}
	var b strings.Builder
	n := 0
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		if max > 0 && n >= max {
			b.WriteString("…")
			break
		}
		switch {
		case r == utf8.RuneError && w == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\\' && i+1 < len(s) && strings.IndexByte("xunt\\", s[i+1]) >= 0:
			b.WriteString(`\\`)
		case r < 0x20 || r == 0x7f || (r == '#' || r == ':') && ciCommand(s, i):
			fmt.Fprintf(&b, `\x%02x`, r)
		case r >= 0x80 && hidden(r):
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
		n++
		i += w
	}
	return b.String()
}

// ciCommand reports whether a command of a CI system's log begins at s[i].
func ciCommand(s string, i int) bool {
	rest := s[i:]
	if rest[0] == '#' {
		return strings.HasPrefix(rest, "##[") || strings.HasPrefix(rest, "##vso[")
	}
	if !strings.HasPrefix(rest, "::") || len(rest) < 3 || i > 0 && s[i-1] > ' ' {
		return false
	}
	name := strings.IndexFunc(rest[2:], func(r rune) bool { return r != '-' && (r|0x20 < 'a' || r|0x20 > 'z') })
	if name <= 0 {
		return false
	}
	after := rest[2+name:]
	return strings.HasPrefix(after, "::") || after[0] == ' ' && strings.Contains(after, "::")
}

// hidden reports whether a rune does not show itself or changes how others show.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp) || !unicode.IsPrint(r) && !unicode.IsSpace(r)
}
