package logline

// A Pair is one structured field of a line, as Each gives it.
type Pair struct {
	Key, Val []byte
	Quoted   bool // Val still has its escapes
}

// AppendPairs appends the structured fields of the line to dst.
func (l *Line) AppendPairs(dst []Pair) []Pair {
	l.Each(func(key, val []byte, quoted bool) bool {
		dst = append(dst, Pair{key, val, quoted})
		return true
	})
	return dst
}

// AppendText appends what the line says to dst: the message, and after it those
// of its fields that carry an error or a result, each behind a line break. Other
// fields quote requests and objects and do not count.
func (l *Line) AppendText(dst []byte, fields []Pair) []byte {
	dst = append(dst, l.Message...)
	for _, f := range fields {
		switch string(f.Key) {
		case "error", "err", "reason", "output", "message", "errors":
			dst = append(dst, '\n')
			if f.Quoted {
				dst = AppendUnescaped(dst, f.Val)
			} else {
				dst = append(dst, f.Val...)
			}
		}
	}
	return dst
}
