//go:build linux

package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"

	"coldplane/bundle/archive"
	"coldplane/bundle/redact"
)

// A sink takes what one source finds. It is closed when the source's time is up;
// whatever a source that hangs adds later is thrown away.
type sink struct {
	run   *run
	src   *source
	spool *spoolFile

	mu      sync.Mutex
	closed  bool
	staged  []staged
	mem     int64
	res     archive.Result
	absent  map[string]bool
	dirs    map[string]bool
	failed  int
	keys    []keyRecord
	capsHit map[string]bool
}

type staged struct {
	entry  archive.Entry
	record bool
	mem    []byte
	off    int64 // in the spool when mem is nil
	size   int64
	file   *spoolFile // its own, for a database
}

const (
	memEntry = 256 << 10
	memTotal = 8 << 20
)

func (s *sink) stage(st staged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.staged = append(s.staged, st)
}

// add stores a content.
func (s *sink) add(e archive.Entry, b []byte) {
	s.mu.Lock()
	keep := len(b) <= memEntry && s.mem+int64(len(b)) <= memTotal && !s.closed
	if keep {
		s.mem += int64(len(b))
		s.staged = append(s.staged, staged{entry: e, mem: bytes.Clone(b), size: int64(len(b))})
	}
	s.mu.Unlock()
	if keep {
		return
	}
	off := s.spool.size
	if _, err := s.spool.Write(b); err != nil {
		s.fail(e.Path, err)
		return
	}
	s.stage(staged{entry: e, off: off, size: int64(len(b))})
}

// record notes something without content.
func (s *sink) record(e archive.Entry) { s.stage(staged{entry: e, record: true}) }

func (s *sink) setAbsent(p string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.absent[p] = true
	}
}

func (s *sink) setDir(p string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.dirs[p] = true
	}
}

// note adds a line to the source's result.
func (s *sink) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && len(s.res.Notes) < 50 {
		s.res.Notes = append(s.res.Notes, clean(fmt.Sprintf(format, args...)))
	}
}

// cap notes that a limit was reached.
func (s *sink) cap(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && !s.capsHit[name] {
		s.capsHit[name] = true
		s.res.Caps = append(s.res.Caps, name)
	}
}

// fail notes that a part of the source failed; others go on.
func (s *sink) fail(what string, err error) {
	s.note("%s: %s", what, reason(err))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed++
}

func (s *sink) didRead(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.res.Read += n
	}
}

func (s *sink) key(k keyRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.keys = append(s.keys, k)
	}
}

// reason is an error's last part: paths are named by the caller already.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// clean makes a line that may enter the bundle: one line, no secret shapes.
func clean(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 1000 {
		s = s[:1000] + "…"
	}
	return redact.String(s)
}

// flush moves what a source has found into the archive. Only the coordinator
// calls it, after the source ended or was left behind.
func (s *sink) flush(w *archive.Writer) error {
	s.mu.Lock()
	s.closed = true
	list := s.staged
	s.mu.Unlock()
	defer s.spool.close()
	for _, st := range list {
		if w.Has(st.entry.Path) {
			continue // two sources may meet at one file; the first one counts
		}
		var err error
		switch {
		case st.record:
			err = w.Record(st.entry)
		case st.mem != nil || st.size == 0:
			err = w.AddBytes(st.entry, st.mem)
		default:
			f := st.file
			if f == nil {
				f = s.spool
			}
			err = w.Add(st.entry, st.size, f.section(st.off, st.size))
		}
		if st.file != nil {
			st.file.close()
		}
		if err != nil {
			return err
		}
		if !st.record {
			s.res.Entries++
			s.res.Stored += st.size
		}
	}
	for p := range s.absent {
		w.Absent(p)
	}
	for p := range s.dirs {
		w.Dir(p)
	}
	return nil
}

// under is an absolute path of the node as an entry's path.
func entryPath(abs string) string { return archive.SafePath(path.Clean(abs)) }

// jsonEntry stores a value as indented JSON.
func (s *sink) json(p string, v any) {
	b, err := marshal(v)
	if err != nil {
		s.fail(p, err)
		return
	}
	redact.Check(b)
	s.add(archive.Entry{Path: entryPath(p), Treatment: archive.Derived}, b)
}

// limited reads at most n bytes and reports whether there was more.
func limited(ctx context.Context, r io.Reader, n int64) ([]byte, bool, error) {
	b, err := io.ReadAll(io.LimitReader(ctxReader{ctx, r}, n+1))
	if int64(len(b)) > n {
		return b[:n], true, err
	}
	return b, false, err
}

type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
