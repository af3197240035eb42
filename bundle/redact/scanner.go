package redact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// ErrLeak is what a Scanner's error wraps when something must not leave the node.
var ErrLeak = errors.New("a secret was about to enter the bundle")

const (
	window     = 16 // bytes of a secret that are remembered
	maxSecrets = 1 << 20
	// overlap is how much of a chunk is looked at again with the next one, so that
	// nothing is cut in two.
	overlap = 4 << 10
)

// A Scanner looks at the finished stream for shapes of secrets and for the
// secrets that were overwritten. It holds digests of the latter, never the
// secrets, and its errors name the entry and the shape only.
type Scanner struct {
	mu      sync.Mutex
	known   map[uint64]struct{}
	filter  []uint64 // bitmap over the low bits of known
	path    string
	buf     []byte
	err     error
	dropped int
}

// NewScanner returns a scanner that knows no secrets yet.
func NewScanner() *Scanner {
	return &Scanner{known: map[uint64]struct{}{}, filter: make([]uint64, filterBits/64)}
}

const filterBits = 1 << 23

// Secret remembers a content that was overwritten, as it is and in base64. Public
// contents and contents too short or too even to be told apart are not
// remembered.
func (s *Scanner) Secret(b []byte) {
	b = bytes.TrimSpace(b)
	if len(b) < window || bytes.Contains(b, []byte("-----BEGIN CERTIFICATE")) && !bytes.Contains(b, []byte("PRIVATE KEY")) {
		return
	}
	b = b[:min(len(b), 64<<10)]
	s.add(b[len(b)-window:])
	if bytes.Contains(b, []byte("PRIVATE KEY")) {
		for line := range bytes.Lines(b) { // its lines may turn up one by one
			if line = bytes.TrimSpace(line); len(line) >= 48 && !bytes.HasPrefix(line, []byte("-----")) {
				s.add(line[:window])
			}
		}
	}
	e := base64.StdEncoding.EncodeToString(b[:len(b)/3*3])
	if len(e) >= window {
		s.add([]byte(e[len(e)-window:]))
	}
}

func (s *Scanner) add(b []byte) {
	var seen [256]bool
	n := 0
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	if n < 9 || common(b) {
		return
	}
	h := hashWindow(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxSecrets {
		s.dropped++
		return
	}
	s.known[h] = struct{}{}
	s.filter[h%filterBits/64] |= 1 << (h % 64)
}

// common are ends of secrets' values that also end what is kept: names, hosts,
// versions, words.
func common(b []byte) bool {
	for _, w := range []string{"kubernetes", ".svc", "cluster.local", "apiVersion", "-----END", "default", "kube-system"} {
		if bytes.Contains(b, []byte(w)) {
			return true
		}
	}
	return digits(b) == 0 && !bytes.ContainsAny(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZ+/=!@#$%^&*") // prose
}

const prime = 1099511628211

// hashWindow is a polynomial hash, so that it can roll.
func hashWindow(b []byte) (h uint64) {
	for _, c := range b {
		h = h*prime + uint64(c) + 1
	}
	return h
}

var primePow = func() uint64 {
	p := uint64(1)
	for range window - 1 {
		p *= prime
	}
	return p
}()

// Begin starts an entry.
func (s *Scanner) Begin(path string) {
	s.path, s.buf = path, s.buf[:0]
}

// Write looks at a piece of the entry.
func (s *Scanner) Write(p []byte) (int, error) {
	s.buf = append(s.buf, p...)
	if len(s.buf) >= 256<<10 {
		s.look()
		n := copy(s.buf, s.buf[len(s.buf)-overlap:])
		s.buf = s.buf[:n]
	}
	return len(p), nil
}

// End ends the entry and returns what was found in any entry so far.
func (s *Scanner) End() error {
	if len(s.buf) > 0 {
		s.look()
		s.buf = s.buf[:0]
	}
	return s.err
}

func (s *Scanner) hit(what string) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %s in %s", ErrLeak, what, s.path)
	}
}

func (s *Scanner) look() {
	if allZero(s.buf) {
		return
	}
	find(s.buf, true, func(start, end int, name string) {
		if b := s.buf[start:end]; !Masked(b) && digitsOrLetters(b) >= 6 && !strings.HasPrefix(string(b), Marker) {
			s.hit(name)
		}
	})
	s.roll()
}

func digitsOrLetters(b []byte) (n int) {
	for _, c := range b {
		if letter(c) || c >= '0' && c <= '9' {
			n++
		}
	}
	return n
}

func allZero(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(zeros))
		if !bytes.Equal(b[:n], zeros[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

func (s *Scanner) roll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) == 0 || len(s.buf) < window {
		return
	}
	h := hashWindow(s.buf[:window])
	for i := window; ; i++ {
		if s.filter[h%filterBits/64]&(1<<(h%64)) != 0 {
			if _, ok := s.known[h]; ok {
				s.hit("a value that was overwritten elsewhere")
				return
			}
		}
		if i == len(s.buf) {
			return
		}
		h = (h-(uint64(s.buf[i-window])+1)*primePow)*prime + uint64(s.buf[i]) + 1
	}
}
