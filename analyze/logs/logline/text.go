package logline

// AppendText appends what the line says to dst: the message, and after it the
// fields that carry an error or a result, each behind a line break. Other
// fields quote requests and objects and do not count.
func (l *Line) AppendText(dst []byte) []byte {
	dst = append(dst, l.Message...)
	if l.Fields == nil {
		return dst
	}
	l.Each(func(key, val []byte, quoted bool) bool {
		switch string(key) {
		case "error", "err", "reason", "output", "message", "errors":
			dst = append(dst, '\n')
			if quoted {
				val = Unescape(val)
			}
			dst = append(dst, val...)
		}
		return true
	})
	return dst
}
