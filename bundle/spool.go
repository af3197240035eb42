package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// A spool is one unlinked temporary file, mode 0600, that holds the archive
// entries too large for memory. Holes stay holes.
type spool struct {
	mu    sync.Mutex
	dir   string
	limit int64
	f     *os.File
	end   int64 // next free offset
	used  int64 // bytes really written
}

func (s *spool) file() (*os.File, error) {
	if s.f != nil {
		return s.f, nil
	}
	f, err := os.CreateTemp(s.dir, "coldplane-spool-*")
	if err != nil {
		return nil, err
	}
	// Unlinked at once where the system allows it, so that no kill leaves it
	// behind; elsewhere close removes it.
	_ = os.Remove(f.Name())
	s.f = f
	return f, nil
}

const spoolBlock = 64 << 10

// write copies size bytes of r into the spool and returns where they are.
// Blocks of zeros are not written.
func (s *spool) write(r io.Reader, size int64, buf []byte) (contentSource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.file()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSpoolFull, err)
	}
	start, pos := s.end, s.end
	for left := size; left > 0; {
		n, err := io.ReadFull(r, buf[:min(int64(len(buf)), left)])
		if n > 0 {
			if !allZero(buf[:n]) {
				if s.used+int64(n) > s.limit {
					return nil, errSpoolFull
				}
				if _, werr := f.WriteAt(buf[:n], pos); werr != nil {
					if errors.Is(werr, syscall.ENOSPC) || errors.Is(werr, syscall.EDQUOT) || errors.Is(werr, syscall.EFBIG) {
						return nil, fmt.Errorf("%w: %w", errSpoolFull, werr)
					}
					return nil, werr
				}
				s.used += int64(n)
			}
			pos += int64(n)
			left -= int64(n)
		}
		if err != nil {
			if pos > start {
				s.extend(f, pos)
			}
			return regionContent{f, start, pos - start}, err
		}
	}
	if err := s.extend(f, pos); err != nil {
		return nil, err
	}
	return regionContent{f, start, size}, nil
}

func (s *spool) extend(f *os.File, end int64) error {
	if err := f.Truncate(end); err != nil {
		return err
	}
	s.end = (end + spoolBlock - 1) / spoolBlock * spoolBlock
	return nil
}

func (s *spool) close() error {
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	_ = os.Remove(s.f.Name())
	return err
}

func allZero(b []byte) bool {
	for len(b) >= 8 {
		if b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7] != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// drain copies r, whose length is not known, into the spool up to limit bytes.
// On an error it returns what was read before.
func (s *spool) drain(r io.Reader, limit int64) (contentSource, int64, error) {
	s.mu.Lock()
	start := s.end
	s.mu.Unlock()
	var total int64
	buf := make([]byte, 16*spoolBlock)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if total+int64(n) > limit {
				return nil, 0, fmt.Errorf("more than %s", FormatBytes(limit))
			}
			if _, werr := s.write(bytes.NewReader(buf[:n]), int64(n), buf[:n:n]); werr != nil {
				return nil, 0, werr
			}
			total += int64(n)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && n < len(buf) {
			err = nil
		} else if err == nil {
			continue
		}
		if total == 0 {
			return nil, 0, err
		}
		return regionContent{s.f, start, total}, total, err
	}
}
