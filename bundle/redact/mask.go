package redact

// mask overwrites letters and digits: letters become x, digits 1, bytes that are
// not ASCII x. Punctuation stays, and with it the syntax of whatever this is part
// of.
func mask(b []byte) {
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			b[i] = '1'
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= 0x80:
			b[i] = 'x'
		}
	}
}

// Masked reports whether a text holds nothing but what mask leaves.
func Masked(b []byte) bool {
	n := 0
	for _, c := range b {
		switch {
		case c == 'x' || c == '1':
			n++
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= 0x80:
			return false
		}
	}
	return n > 0
}
