package logline

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strconv"
)

// MaxField is how much of one journal field is kept; the rest is counted.
const MaxField = 8 << 10

// A Record is one entry of journald's export format. Its slices are valid until
// the next call of Next.
type Record struct {
	Stamp     Stamp
	Monotonic int64 // microseconds since boot, 0 if not given
	Boot      string
	Ident     []byte
	Message   []byte // at most MaxField bytes
	Cut       int64  // bytes of the message left out
	Line      int    // 1-based line at which the entry starts
	Offset    int64  // byte offset at which the entry starts
}

// An ExportReader reads journald's export format ("journalctl -o export",
// /run/log/journal streams): KEY=value lines, or KEY, a length of eight bytes
// and that many bytes; entries end with an empty line.
type ExportReader struct {
	r      *bufio.Reader
	line   int
	offset int64
	ident  []byte
	msg    []byte
}

// NewExportReader returns a reader of r.
func NewExportReader(r io.Reader) *ExportReader {
	return &ExportReader{r: bufio.NewReaderSize(r, 64<<10)}
}

// Next returns the next entry, or io.EOF. A stream that ends inside an entry
// gives what there is of it first. Entries without any field do not occur.
func (e *ExportReader) Next() (Record, error) {
	rec := Record{}
	e.msg, e.ident = e.msg[:0], e.ident[:0]
	fields, kernel := 0, false
	done := func(err error) (Record, error) {
		if fields == 0 {
			return Record{}, err
		}
		if kernel && len(e.ident) == 0 {
			e.ident = append(e.ident, "kernel"...)
		}
		rec.Ident, rec.Message = e.ident, e.msg
		return rec, nil
	}
	for {
		startLine, startOffset := e.line+1, e.offset
		head, whole, err := e.readLine()
		if err != nil && len(head) == 0 {
			return done(err)
		}
		if len(head) == 0 && whole {
			if fields > 0 {
				return done(nil)
			}
			continue
		}
		if fields == 0 {
			rec.Line, rec.Offset = startLine, startOffset
		}
		fields++
		eq := bytes.IndexByte(head, '=')
		key, val := head, []byte(nil)
		var cut int64
		if eq >= 0 {
			key, val = head[:eq], head[eq+1:]
		} else {
			key = append([]byte(nil), head...)
			val, cut, err = e.binary()
			if err != nil && len(val) == 0 {
				return done(err)
			}
		}
		switch string(key) {
		case "__REALTIME_TIMESTAMP":
			if us, perr := strconv.ParseInt(string(val), 10, 64); perr == nil {
				rec.Stamp = micros(us)
			}
		case "__MONOTONIC_TIMESTAMP":
			rec.Monotonic, _ = strconv.ParseInt(string(val), 10, 64)
		case "_BOOT_ID":
			rec.Boot = string(val[:min(len(val), 64)])
		case "SYSLOG_IDENTIFIER":
			e.ident = append(e.ident[:0], val[:min(len(val), 256)]...)
		case "_TRANSPORT":
			kernel = string(val) == "kernel"
		case "_SYSTEMD_UNIT", "UNIT":
			if len(e.ident) == 0 {
				e.ident = append(e.ident, val[:min(len(val), 256)]...)
			}
		case "MESSAGE":
			e.msg = append(e.msg[:0], val...)
			rec.Cut = cut
		}
	}
}

// readLine returns the next line without its end, at most MaxField+64 bytes of
// it. whole is false if the stream ended before the line did.
func (e *ExportReader) readLine() (head []byte, whole bool, err error) {
	for {
		part, err := e.r.ReadSlice('\n')
		e.offset += int64(len(part))
		if err == nil {
			e.line++
			part = part[:len(part)-1]
		}
		if room := MaxField + 64 - len(head); room > 0 {
			head = append(head, part[:min(room, len(part))]...)
		}
		switch {
		case err == nil:
			return head, true, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		return head, false, err
	}
}

// binary reads a length, that many bytes, and a line end. It keeps MaxField
// bytes and returns how many it left out.
func (e *ExportReader) binary() ([]byte, int64, error) {
	var size [8]byte
	n, err := io.ReadFull(e.r, size[:])
	e.offset += int64(n)
	if err != nil {
		return nil, 0, io.EOF
	}
	length := binary.LittleEndian.Uint64(size[:])
	if length > 1<<40 {
		return nil, 0, io.EOF // not a length: the rest cannot be read
	}
	keep := make([]byte, min(length, MaxField))
	n, err = io.ReadFull(e.r, keep)
	e.offset += int64(n)
	e.line += bytes.Count(keep[:n], []byte("\n"))
	if err != nil {
		return keep[:n], 0, io.EOF
	}
	cut, err := io.CopyN(io.Discard, e.r, int64(length)-int64(len(keep)))
	e.offset += cut
	if err != nil {
		return keep, cut, io.EOF
	}
	if b, err := e.r.ReadByte(); err == nil {
		e.offset++
		if b == '\n' {
			e.line++
		}
	}
	return keep, cut, nil
}
