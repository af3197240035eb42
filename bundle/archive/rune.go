package archive

import "unicode/utf8"

// decodeRune is utf8.DecodeRuneInString with -1 for a byte that is no UTF-8.
func decodeRune(s string) (rune, int) {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n <= 1 {
		return -1, 1
	}
	return r, n
}
