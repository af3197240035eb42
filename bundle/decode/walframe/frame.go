package walframe

import (
	"hash/crc32"

	"google.golang.org/protobuf/encoding/protowire"
)

// recordType is walpb.Record's type field.
type recordType int64

const (
	typeMetadata recordType = 1
	typeEntry    recordType = 2
	typeState    recordType = 3
	typeCRC      recordType = 4
	typeSnapshot recordType = 5
)

func (t recordType) known() bool { return t >= typeMetadata && t <= typeSnapshot }

// maxBuffered is the largest record that is held in memory. The data of larger
// ones is checksummed in pieces and only its first bytes are looked at. etcd's
// default limit of a request is 1.5 MiB.
const maxBuffered = 4 << 20

// peekBytes is how much of an oversized record is looked at.
const peekBytes = 4 << 10

// A frame is one record where it lies in the file.
type frame struct {
	off     int64 // of the length field
	end     int64 // of the padding
	typ     recordType
	crc     uint32
	data    []byte // nil without data; the first bytes only when cut
	dataLen int64
	sum     uint32 // chain value after data, given the chain value before
	cut     bool   // data is longer than maxBuffered
	pad     padState
	zeroed  bool // a whole sector of the frame is zero: a torn write
}

type padState uint8

const (
	padGood    padState = iota
	padOdd              // not as etcd writes it, but read by etcd in the same way
	padMisread          // etcd would look for the next record in the wrong place
)

// frameFault is why no frame could be read at an offset.
type frameFault uint8

const (
	faultNone   frameFault = iota
	faultZero              // the length field is zero: end of the written part
	faultLength            // the length cannot be right
	faultCut               // a believable record runs past the end of the file
	faultRecord            // the bytes are not a record
	faultRead              // the file could not be read
)

// splitLength decodes the length field of a frame. pad is what the length
// demands, whatever the top byte says.
func splitLength(l uint64) (length, pad int64, state padState) {
	length = int64(l & (1<<56 - 1))
	pad = (8 - length%8) % 8
	top, want := byte(l>>56), byte(0)
	if pad != 0 {
		want = 0x80 | byte(pad)
	}
	read := int64(0) // what etcd takes the padding to be
	if top&0x80 != 0 {
		read = int64(top & 7)
	}
	switch {
	case read != pad:
		state = padMisread
	case top != want:
		state = padOdd
	}
	return length, pad, state
}

// readFrame reads the frame at off. chain is the checksum before it. buf is
// reused for the record's bytes and returned, perhaps grown.
func readFrame(w *window, off int64, chain uint32, buf []byte) (f frame, grown []byte, fault frameFault) {
	f.off = off
	h, err := w.at(off, frameHeader)
	if err != nil {
		return f, buf, faultRead
	}
	l := le64(h)
	if l == 0 {
		return f, buf, faultZero
	}
	length, pad, state := splitLength(l)
	f.pad = state
	if length == 0 {
		return f, buf, faultLength
	}
	body := off + frameHeader
	if length > w.size-body-pad { // no overflow: length is 56 bits, pad three
		if looksLikeRecord(w, body, length) {
			return f, buf, faultCut
		}
		return f, buf, faultLength
	}
	f.end = body + length + pad
	// A long record is worth reading only when it begins like one.
	if length > windowBytes && !looksLikeRecord(w, body, length) {
		head, err := w.at(body, windowBytes)
		if err != nil {
			return f, buf, faultRead
		}
		f.zeroed = hasZeroSector(head, body)
		return f, buf, faultRecord
	}
	if length > maxBuffered {
		fault = readLarge(w, &f, body, length, chain)
		return f, buf, fault
	}
	if int64(cap(buf)) < length+pad {
		buf = make([]byte, max(length+pad, 64<<10))
	}
	buf = buf[:length+pad]
	if err := fill(w, buf, body); err != nil {
		return f, buf, faultRead
	}
	f.zeroed = hasZeroSector(buf, body)
	if f.pad == padGood && nonZero(buf[length:]) >= 0 {
		f.pad = padOdd
	}
	if !parseRecord(buf[:length], length, &f) {
		return f, buf, faultRecord
	}
	f.sum = crc32.Update(chain, castagnoli, f.data)
	return f, buf, faultNone
}

// fill reads len(p) bytes at off through the window when they are small and
// directly when they are not.
func fill(w *window, p []byte, off int64) error {
	if len(p) <= windowBytes {
		b, err := w.at(off, len(p))
		if err != nil {
			return err
		}
		copy(p, b)
		return nil
	}
	n, err := readAt(w.r, p, off)
	w.read += int64(n)
	return err
}

// readLarge checksums a record that is not held in memory and keeps its head.
func readLarge(w *window, f *frame, body, length int64, chain uint32) frameFault {
	head, err := w.at(body, peekBytes)
	if err != nil {
		return faultRead
	}
	if !parseRecord(head, length, f) {
		return faultRecord
	}
	f.cut = true
	f.data = append([]byte(nil), f.data...)
	sum := chain
	err = w.each(body+length-f.dataLen, body+length, func(at int64, p []byte) bool {
		sum = crc32.Update(sum, castagnoli, p)
		f.zeroed = f.zeroed || hasZeroSector(p, at)
		return true
	})
	if err != nil {
		return faultRead
	}
	f.sum = sum
	return faultNone
}

// looksLikeRecord tells whether a record of the given length could begin at
// body: type, checksum, and data that fills the rest.
func looksLikeRecord(w *window, body, length int64) bool {
	n := min(w.size-body, 32)
	if n < 4 {
		return false
	}
	head, err := w.at(body, int(n))
	if err != nil {
		return false
	}
	var f frame
	return parseRecord(head, length, &f) && f.typ.known()
}

// parseRecord reads a walpb.Record of the given length of which b is the
// whole or the beginning. Field order and the absence of other fields are
// required: every etcd version writes them so, and it is the only check there
// is on the parts that the checksum does not cover.
func parseRecord(b []byte, length int64, f *frame) bool {
	rest := b
	typ, n := varintField(rest, 1)
	if n == 0 {
		return false
	}
	rest = rest[n:]
	crc, n := varintField(rest, 2)
	if n == 0 || crc > 1<<32-1 {
		return false
	}
	rest = rest[n:]
	f.typ, f.crc = recordType(typ), uint32(crc)
	f.data, f.dataLen = nil, 0
	used := int64(len(b) - len(rest))
	if used == length {
		return true
	}
	num, wt, n := protowire.ConsumeTag(rest)
	if n < 0 || num != 3 || wt != protowire.BytesType {
		return false
	}
	rest = rest[n:]
	dl, n := protowire.ConsumeVarint(rest)
	if n < 0 {
		return false
	}
	rest = rest[n:]
	used = int64(len(b) - len(rest))
	if dl > 1<<56 || used+int64(dl) != length {
		return false
	}
	f.dataLen = int64(dl)
	f.data = rest[:min(int64(len(rest)), f.dataLen)]
	return true
}

// varintField reads a varint field of the given number; n is 0 when b does not
// start with one.
func varintField(b []byte, want protowire.Number) (v uint64, n int) {
	num, wt, t := protowire.ConsumeTag(b)
	if t < 0 || num != want || wt != protowire.VarintType {
		return 0, 0
	}
	v, m := protowire.ConsumeVarint(b[t:])
	if m < 0 {
		return 0, 0
	}
	return v, t + m
}

// hasZeroSector tells whether some sector's share of p, which lies at off in
// the file, is all zero: etcd's own test of a torn write.
func hasZeroSector(p []byte, off int64) bool {
	for len(p) > 0 {
		n := min(int64(len(p)), sectorBytes-off%sectorBytes)
		if nonZero(p[:n]) < 0 {
			return true
		}
		p, off = p[n:], off+n
	}
	return false
}
