package walframe

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
)

const (
	windowBytes = 256 << 10
	frameHeader = 8
	sectorBytes = 512 // etcd's smallest unit of a torn write
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errShort says that the file gave fewer bytes than its size promised.
var errShort = errors.New("file is shorter than its recorded size")

// window gives bounded random access to one segment with one buffer.
type window struct {
	r    io.ReaderAt
	size int64
	buf  []byte
	off  int64 // offset of buf[0] in the file
	n    int   // valid bytes in buf
	read int64 // bytes read so far, over all files
}

func (w *window) reset(r io.ReaderAt, size int64) {
	if w.buf == nil {
		w.buf = make([]byte, windowBytes)
	}
	w.r, w.size, w.off, w.n = r, size, 0, 0
}

// at returns n bytes at off. The slice is valid until the next call; n must
// not exceed windowBytes and off+n must not exceed the size.
func (w *window) at(off int64, n int) ([]byte, error) {
	if off >= w.off && off+int64(n) <= w.off+int64(w.n) {
		i := off - w.off
		return w.buf[i : i+int64(n)], nil
	}
	want := min(int64(len(w.buf)), w.size-off)
	if want < int64(n) {
		return nil, errShort
	}
	got, err := readAt(w.r, w.buf[:want], off)
	w.read += int64(got)
	w.off, w.n = off, got
	if got < n {
		return nil, err
	}
	return w.buf[:n], nil
}

// readAt is io.ReaderAt.ReadAt with an error whenever p was not filled, and
// proof against readers that report more than they were asked for.
func readAt(r io.ReaderAt, p []byte, off int64) (int, error) {
	n, err := r.ReadAt(p, off)
	if n < 0 || n > len(p) {
		return 0, errShort
	}
	if n == len(p) {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errShort
	}
	return n, err
}

// each calls f with consecutive pieces of [off, end) until f returns false.
func (w *window) each(off, end int64, f func(at int64, p []byte) bool) error {
	for off < end {
		p, err := w.at(off, int(min(windowBytes, end-off)))
		if err != nil {
			return err
		}
		if !f(off, p) {
			return nil
		}
		off += int64(len(p))
	}
	return nil
}

// firstNonZero returns the offset of the first byte in [off, end) that is not
// zero, or -1.
func (w *window) firstNonZero(off, end int64) (int64, error) {
	found := int64(-1)
	err := w.each(off, end, func(at int64, p []byte) bool {
		if i := nonZero(p); i >= 0 {
			found = at + int64(i)
			return false
		}
		return true
	})
	return found, err
}

// nonZero returns the place of the first byte of p that is not zero, or -1.
func nonZero(p []byte) int {
	// A slice equal to itself moved by one holds one value only; the compare
	// is the fastest scan there is for the tens of megabytes etcd preallocates.
	if len(p) == 0 || p[0] == 0 && bytes.Equal(p[1:], p[:len(p)-1]) {
		return -1
	}
	for i, c := range p {
		if c != 0 {
			return i
		}
	}
	return -1
}

func le64(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
