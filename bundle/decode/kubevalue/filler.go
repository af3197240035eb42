package kubevalue

// A filler takes the place of a field's content. It is a protobuf message with
// one unknown field that spans the rest, so that it decodes whatever the field's
// type was: message, string or bytes. Its number is above every number in use;
// a low one was measured to clash.
const (
	filler0, filler1 = 0xFA, 0x7F // tag of field 2047, length-delimited, two bytes
	fillByte         = 'x'
)

// Fill overwrites b with a filler of the same length. Contents of one or two
// bytes hold no message with an unknown field; see fillTiny.
func Fill(b []byte) {
	if len(b) < 3 {
		fillTiny(b)
		return
	}
	b[0], b[1] = filler0, filler1
	rest := len(b) - 2
	// The length field takes as many bytes as it needs, one more where the
	// minimal form would not come out even.
	n := 1
	for rest-n >= 1<<(7*n) {
		n++
	}
	left := rest - n
	for i := range n {
		c := byte(left>>(7*i)) & 0x7f
		if i < n-1 {
			c |= 0x80
		}
		b[2+i] = c
	}
	for i := 2 + n; i < len(b); i++ {
		b[i] = fillByte
	}
}

// fillTiny overwrites one or two bytes. Two bytes that may be a message, one
// number, stay one: the tag is kept and the number becomes 1.
func fillTiny(b []byte) {
	if len(b) == 2 && b[0]&7 == 0 && b[0] >= 8 && b[0] < 0x80 && b[1] < 0x80 {
		b[1] = 1
		return
	}
	for i := range b {
		b[i] = fillByte
	}
}

// IsFiller reports whether a field's content was overwritten by Fill.
func IsFiller(b []byte) bool {
	if len(b) < 3 {
		return len(b) > 0 && b[0] == fillByte && b[len(b)-1] == fillByte
	}
	return b[0] == filler0 && b[1] == filler1
}

// FillText overwrites text with x, keeping its length.
func FillText(b []byte) {
	for i := range b {
		b[i] = fillByte
	}
}

// FillJSON overwrites b with an empty JSON object of the same length; a content
// too short for one becomes digits.
func FillJSON(b []byte) {
	if len(b) < 2 {
		for i := range b {
			b[i] = '1'
		}
		return
	}
	for i := range b {
		b[i] = ' '
	}
	b[0], b[len(b)-1] = '{', '}'
}
