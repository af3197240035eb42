//go:build linux

package collect

import (
	"bytes"
	"io"

	"coldplane/bundle/archive"
	"coldplane/bundle/redact"
)

// A textWriter masks a text piece by piece, at line ends, on its way into the
// spool.
type textWriter struct {
	s      *sink
	off    int64
	n      int64
	buf    []byte
	counts map[string]int
	err    error
}

const (
	textPiece = 256 << 10
	// keepBack is how much of a piece waits for the next one, so that a key of
	// several lines is seen whole.
	maxLine = 1 << 20
)

func (s *sink) textWriter() *textWriter {
	return &textWriter{s: s, off: s.spool.size, counts: map[string]int{}}
}

func (t *textWriter) Write(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	t.buf = append(t.buf, p...)
	for len(t.buf) >= textPiece {
		i := bytes.LastIndexByte(t.buf, '\n')
		if i < 0 {
			if len(t.buf) < maxLine {
				break
			}
			i = len(t.buf) - 1
		}
		t.emit(t.buf[:i+1])
		t.buf = t.buf[:copy(t.buf, t.buf[i+1:])]
	}
	return len(p), t.err
}

func (t *textWriter) emit(b []byte) {
	for k, n := range redact.Text(b) {
		t.counts[k] += n
	}
	if t.err != nil || len(b) == 0 {
		return
	}
	n, err := t.s.spool.Write(b)
	t.n += int64(n)
	t.err = err
}

// done stages what was written.
func (t *textWriter) done(e archive.Entry) error {
	t.emit(t.buf)
	t.buf = nil
	if t.err != nil {
		return t.err
	}
	if len(t.counts) > 0 {
		e.Counts = t.counts
	}
	t.s.stage(staged{entry: e, off: t.off, size: t.n})
	return nil
}

var _ io.Writer = (*textWriter)(nil)
