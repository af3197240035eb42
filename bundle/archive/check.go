package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
)

// A State is what checking a bundle found.
type State string

// States, from good to bad.
const (
	Intact     State = "intact"     // every entry is what the manifest says
	Incomplete State = "incomplete" // cut off, or the collection was interrupted
	Ambiguous  State = "ambiguous"  // a name twice, or bytes after the end: two readers may see two bundles
	Altered    State = "altered"    // something differs from what was written
)

var gravity = map[State]int{Intact: 0, Incomplete: 1, Ambiguous: 2, Altered: 3}

// A Verification is the result of checking a bundle.
type Verification struct {
	State       State
	Problems    []string // the first of them, in order of the stream
	Dropped     int      // further ones
	Header      *Header  // nil when the first entry is not one
	Manifest    *Manifest
	Fingerprint string // SHA-256 of the manifest; "" when there is none
}

// Detail is one line about the state.
func (v *Verification) Detail() string {
	if len(v.Problems) == 0 {
		return ""
	}
	s := v.Problems[0]
	if n := len(v.Problems) - 1 + v.Dropped; n > 0 {
		s = fmt.Sprintf("%s (and %d more)", s, n)
	}
	return s
}

const maxProblems = 50

// MaxManifest bounds HEADER and MANIFEST in memory.
const MaxManifest = 256 << 20

// A Checker compares a tar stream with its own manifest while it is read. Call
// Entry for every header, Sum when its content is read, and Finish at the end.
type Checker struct {
	v        Verification
	n        int
	sums     map[string]string
	sizes    map[string]int64
	manifest []byte
}

// NewChecker returns a checker for one stream.
func NewChecker() *Checker {
	return &Checker{v: Verification{State: Intact}, sums: map[string]string{}, sizes: map[string]int64{}}
}

func (c *Checker) problem(s State, format string, args ...any) {
	if gravity[s] > gravity[c.v.State] {
		c.v.State = s
	}
	if len(c.v.Problems) < maxProblems {
		c.v.Problems = append(c.v.Problems, fmt.Sprintf(format, args...))
		return
	}
	c.v.Dropped++
}

// Entry judges one header. It reports whether the content is to be kept whole
// and given to Sum: true for HEADER and MANIFEST.
func (c *Checker) Entry(h *tar.Header) (keep bool) {
	c.n++
	if c.n == 1 && h.Name != HeaderPath {
		c.problem(Altered, "the first entry is %.100q, not %s", h.Name, HeaderPath)
	}
	if c.manifest != nil {
		c.problem(Ambiguous, "an entry %.100q after %s", h.Name, ManifestPath)
	}
	if _, dup := c.sums[h.Name]; dup {
		c.problem(Ambiguous, "a second entry named %.100q; the first one counts", h.Name)
	}
	if why := foreignHeader(h); why != "" {
		c.problem(Altered, "%.100q: %s", h.Name, why)
	}
	return h.Name == HeaderPath || h.Name == ManifestPath
}

// foreignHeader says what in h coldplane never writes.
func foreignHeader(h *tar.Header) string {
	switch {
	case h.Typeflag != tar.TypeReg:
		return fmt.Sprintf("an entry of type %q, which no bundle holds", h.Typeflag)
	case h.Mode != 0o600 || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Linkname != "" || h.ModTime.Unix() != 0 || h.ModTime.Nanosecond() != 0:
		return "metadata that no bundle carries"
	case BadPath(h.Name) != "":
		return BadPath(h.Name)
	}
	for k := range h.PAXRecords {
		if k != "path" && k != "size" {
			return "an extended header that no bundle carries"
		}
	}
	return ""
}

// Sum takes an entry's digest (hex SHA-256) and size, and for those that Entry
// asked to keep the content. A second entry of one name is ignored.
func (c *Checker) Sum(name, sum string, size int64, content []byte) {
	if _, dup := c.sums[name]; dup {
		return
	}
	c.sums[name], c.sizes[name] = sum, size
	switch name {
	case HeaderPath:
		var h Header
		if err := json.Unmarshal(content, &h); err != nil {
			c.problem(Altered, "%s cannot be read: %v", HeaderPath, err)
			return
		}
		c.v.Header = &h
	case ManifestPath:
		c.manifest = slices.Clip(content)
		if c.manifest == nil {
			c.manifest = []byte{}
		}
		c.v.Fingerprint = sum
	}
}

// Finish compares what was read with the manifest. readErr is what ended the
// stream, nil at its proper end; trailing is the number of bytes after the end
// that are not zero padding.
func (c *Checker) Finish(readErr error, trailing int64) *Verification {
	switch {
	case readErr == nil:
	case errors.Is(readErr, io.ErrUnexpectedEOF):
		c.problem(Incomplete, "the archive ends early: %v", readErr)
	default:
		c.problem(Altered, "the archive cannot be read to its end: %v", readErr)
	}
	if trailing > 0 {
		c.problem(Ambiguous, "%d bytes after the end of the archive", trailing)
	}
	if c.manifest == nil {
		if readErr == nil {
			c.problem(Incomplete, "there is no %s: the collection did not end, or its end was cut off", ManifestPath)
		}
		return &c.v
	}
	var m Manifest
	if err := json.Unmarshal(c.manifest, &m); err != nil {
		c.problem(Altered, "%s cannot be read: %v", ManifestPath, err)
		return &c.v
	}
	c.v.Manifest = &m
	c.compare(&m)
	if m.Status == Interrupted {
		c.problem(Incomplete, "the collection was interrupted")
	}
	return &c.v
}

func (c *Checker) compare(m *Manifest) {
	named := map[string]bool{ManifestPath: true}
	for _, e := range m.Entries {
		if !e.Stored {
			continue
		}
		if named[e.Path] {
			c.problem(Ambiguous, "the manifest names %.100q twice", e.Path)
			continue
		}
		named[e.Path] = true
		sum, ok := c.sums[e.Path]
		switch {
		case !ok:
			c.problem(Altered, "%.100q is in the manifest and not in the archive", e.Path)
		case sum != e.SHA256 || c.sizes[e.Path] != e.Size:
			c.problem(Altered, "%.100q is not what the manifest says", e.Path)
		}
	}
	if m.HeaderSHA256 != c.sums[HeaderPath] {
		c.problem(Altered, "%s is not what the manifest says", HeaderPath)
	}
	if h := c.v.Header; h != nil && h.BundleID != m.BundleID {
		c.problem(Altered, "header and manifest belong to two bundles")
	}
	var extra []string
	for name := range c.sums {
		if !named[name] {
			extra = append(extra, name)
		}
	}
	slices.Sort(extra)
	for _, name := range extra {
		c.problem(Altered, "%.100q is in the archive and not in the manifest", name)
	}
}

// Limits of Verify.
type Limits struct {
	Entries int   // default 200,000
	Bytes   int64 // decompressed, default 20 GiB
}

// Verify checks a tar stream, as Unwrap returns it, from its first to its last
// byte. It keeps nothing but the entries' names and digests.
func Verify(r io.Reader, l Limits) *Verification {
	if l.Entries == 0 {
		l.Entries = 200_000
	}
	if l.Bytes == 0 {
		l.Bytes = 20 << 30
	}
	c := NewChecker()
	lr := &io.LimitedReader{R: r, N: l.Bytes}
	tr := tar.NewReader(lr)
	buf := make([]byte, 64<<10)
	err := func() error {
		for n := 0; ; n++ {
			h, err := tr.Next()
			if err == io.EOF {
				return nil
			}
			if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
				return err
			}
			if n >= l.Entries {
				return fmt.Errorf("more than %d entries", l.Entries)
			}
			var kept *strings.Builder
			sum := sha256.New()
			var dst io.Writer = sum
			if c.Entry(h) && h.Size <= MaxManifest {
				kept = &strings.Builder{}
				dst = io.MultiWriter(sum, kept)
			}
			got, err := io.CopyBuffer(struct{ io.Writer }{dst}, tr, buf)
			if err != nil {
				return err
			}
			var content []byte
			if kept != nil {
				content = []byte(kept.String())
			}
			c.Sum(h.Name, hex.EncodeToString(sum.Sum(nil)), got, content)
		}
	}()
	var trailing int64
	if err == nil {
		trailing, err = Trailing(lr, buf)
	}
	if lr.N <= 0 && err == nil {
		err = fmt.Errorf("more than %d bytes decompressed", l.Bytes)
	}
	return c.Finish(err, trailing)
}

// Trailing reads r to its end and counts the bytes that are not zero padding:
// everything from the first non-zero byte on.
func Trailing(r io.Reader, buf []byte) (int64, error) {
	var n int64
	for {
		k, err := r.Read(buf)
		if n > 0 {
			n += int64(k)
		} else if i := slices.IndexFunc(buf[:k], func(b byte) bool { return b != 0 }); i >= 0 {
			n = int64(k - i)
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// NewSum returns the digest used for entries.
func NewSum() hash.Hash { return sha256.New() }
