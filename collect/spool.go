//go:build linux

package collect

import (
	"errors"
	"io"
	"os"
	"sync"
)

// A spoolFile is an unlinked temporary file that grows while it is written and is
// read at any place. The room on its file system is asked for before it grows.
type spoolFile struct {
	mu   sync.Mutex
	dir  string
	room func(string) int64
	f    *os.File
	size int64
	shut bool
}

// errNoRoom says that the reserve on a file system would be touched.
var errNoRoom = errors.New("not enough free space: the reserve would be touched")

const roomStep = 16 << 20

func (s *spoolFile) open() error {
	if s.shut {
		return os.ErrClosed
	}
	if s.f != nil {
		return nil
	}
	f, err := os.CreateTemp(s.dir, ".coldplane-spool-*")
	if err != nil {
		return err
	}
	if err := os.Remove(f.Name()); err != nil {
		return errors.Join(err, f.Close())
	}
	s.f = f
	return nil
}

func (s *spoolFile) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return 0, err
	}
	if s.size/roomStep != (s.size+int64(len(p)))/roomStep || s.size == 0 {
		if s.room(s.dir) < roomStep {
			return 0, errNoRoom
		}
	}
	n, err := s.f.WriteAt(p, s.size)
	s.size += int64(n)
	return n, err
}

// file returns the open file, for those that write in place.
func (s *spoolFile) file() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.f, s.open()
}

func (s *spoolFile) section(off, n int64) io.Reader { return io.NewSectionReader(s.f, off, n) }

func (s *spoolFile) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	if s.f != nil {
		s.f.Close()
	}
}
