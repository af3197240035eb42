package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
)

// A Scanner watches every byte of every entry before it is compressed. End
// returns an error when the entry must not leave the node.
type Scanner interface {
	Begin(path string)
	io.Writer
	End() error
}

// Options of a Writer.
type Options struct {
	Compression Compression
	Recipients  []age.Recipient // none: not encrypted
	Scanner     Scanner         // nil: nothing watches
}

// A Writer writes one bundle. Its methods must be called from one goroutine at a
// time. After an error nothing can be added any more and Close fails.
type Writer struct {
	tw      *tar.Writer
	closers []io.Closer // innermost first
	scan    Scanner
	m       Manifest
	results []Result
	seen    map[string]bool
	absent  map[string]bool
	dirs    map[string]bool
	read    int64
	err     error
}

// NewWriter begins a bundle on dst with its header. dst is not closed.
func NewWriter(dst io.Writer, h Header, o Options) (*Writer, error) {
	w := &Writer{scan: o.Scanner, seen: map[string]bool{}, absent: map[string]bool{}, dirs: map[string]bool{}}
	if len(o.Recipients) > 0 {
		enc, err := age.Encrypt(dst, o.Recipients...)
		if err != nil {
			return nil, err
		}
		w.closers = append(w.closers, enc)
		dst = enc
	}
	c, err := compressor(dst, o.Compression)
	if err != nil {
		return nil, err
	}
	w.tw = tar.NewWriter(c)
	w.closers = append(w.closers, c)
	w.m = Manifest{Format: FormatVersion, BundleID: h.BundleID, Absent: []string{}, Dirs: []string{}, Entries: []Entry{}}
	h.Format = FormatVersion
	b, err := json.MarshalIndent(h, "", " ")
	if err != nil {
		return nil, err
	}
	if err := w.Add(Entry{Path: HeaderPath, Treatment: Derived}, int64(len(b)), bytes.NewReader(b)); err != nil {
		return nil, err
	}
	w.m.HeaderSHA256 = w.m.Entries[0].SHA256
	return w, nil
}

// Has reports whether a path was added or recorded already.
func (w *Writer) Has(path string) bool { return w.seen[path] }

// Add stores size bytes of r under e.Path. Fewer bytes than announced end the
// bundle: the stream cannot take back its announcement.
func (w *Writer) Add(e Entry, size int64, r io.Reader) error {
	if w.err != nil {
		return w.err
	}
	if err := w.claim(e.Path); err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: e.Path, Size: size, Mode: 0o600, ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatPAX}
	if w.err = w.tw.WriteHeader(h); w.err != nil {
		return w.err
	}
	sum := sha256.New()
	dst := []io.Writer{w.tw, sum}
	if w.scan != nil {
		w.scan.Begin(e.Path)
		dst = append(dst, w.scan)
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(dst...)}, io.LimitReader(r, size), make([]byte, 64<<10))
	switch {
	case err != nil:
		w.err = fmt.Errorf("%s: %w", e.Path, err)
	case n < size:
		w.err = fmt.Errorf("%s: %d bytes announced, only %d came", e.Path, size, n)
	}
	if w.scan != nil {
		if err := w.scan.End(); err != nil && w.err == nil {
			w.err = err
		}
	}
	if w.err != nil {
		return w.err
	}
	e.Stored, e.Size, e.SHA256 = true, size, hexSum(sum)
	w.m.Entries = append(w.m.Entries, e)
	w.m.Totals.Entries++
	w.m.Totals.Bytes += size
	return nil
}

// AddBytes is Add of a small content.
func (w *Writer) AddBytes(e Entry, b []byte) error {
	return w.Add(e, int64(len(b)), bytes.NewReader(b))
}

// Record notes an entry that has no content in the bundle.
func (w *Writer) Record(e Entry) error {
	if w.err != nil {
		return w.err
	}
	if err := w.claim(e.Path); err != nil {
		return err
	}
	e.Stored, e.Size, e.SHA256 = false, 0, ""
	w.m.Entries = append(w.m.Entries, e)
	return nil
}

// ErrDuplicate says that a path is in the bundle already.
var ErrDuplicate = errors.New("already in the bundle")

func (w *Writer) claim(p string) error {
	if why := BadPath(p); why != "" {
		return fmt.Errorf("%.200q: %s", p, why)
	}
	if w.seen[p] {
		return fmt.Errorf("%s: %w", p, ErrDuplicate)
	}
	w.seen[p] = true
	return nil
}

// Absent notes an absolute path that was looked for and is not on the node.
func (w *Writer) Absent(p string) { w.absent[p] = true }

// Dir notes an absolute path of a directory whose every entry is in the bundle.
func (w *Writer) Dir(p string) { w.dirs[p] = true }

// Result notes what came of one source.
func (w *Writer) Result(r Result) {
	w.results = append(w.results, r)
	w.read += r.Read
}

// Status returns the status that the results so far amount to.
func (w *Writer) Status() Status {
	for _, r := range w.results {
		switch r.Outcome {
		case Partial, Failure, TimedOut:
			return Degraded
		}
	}
	return Complete
}

// Close writes COLLECT.jsonl and MANIFEST and ends the stream. It returns the
// bundle's fingerprint: the SHA-256 of MANIFEST as stored.
func (w *Writer) Close(s Status, end Clock) (fingerprint string, err error) {
	if w.err != nil {
		w.Abort()
		return "", w.err
	}
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	w.m.Sources = map[string]int{}
	for _, r := range w.results {
		if err := enc.Encode(r); err != nil {
			return "", err
		}
		w.m.Sources[string(r.Outcome)]++
	}
	if err := w.AddBytes(Entry{Path: CollectPath, Treatment: Derived}, lines.Bytes()); err != nil {
		return "", err
	}
	w.m.Status, w.m.Clock = s, end
	w.m.Totals.Read = w.read
	w.m.Absent = append(w.m.Absent, slices.Sorted(maps.Keys(w.absent))...)
	w.m.Dirs = append(w.m.Dirs, slices.Sorted(maps.Keys(w.dirs))...)
	b, err := json.MarshalIndent(w.m, "", " ")
	if err != nil {
		return "", err
	}
	if err := w.AddBytes(Entry{Path: ManifestPath, Treatment: Derived}, b); err != nil {
		return "", err
	}
	fingerprint = w.m.Entries[len(w.m.Entries)-1].SHA256
	w.err = errors.New("the bundle is closed")
	errs := []error{w.tw.Close()}
	for _, c := range slices.Backward(w.closers) {
		errs = append(errs, c.Close())
	}
	return fingerprint, errors.Join(errs...)
}

// Abort gives up: the stream stays without a manifest.
func (w *Writer) Abort() {
	if w.err == nil {
		w.err = errors.New("the bundle was given up")
	}
	for _, c := range slices.Backward(w.closers) {
		_ = c.Close() // releases memory; the result is thrown away
	}
	w.closers = nil
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// MaxPath is the longest path of an entry, in bytes.
const MaxPath = 4096

// BadPath says why p cannot be an entry's path, or "".
func BadPath(p string) string {
	switch {
	case p == "":
		return "an empty path"
	case len(p) > MaxPath:
		return "a path longer than 4096 bytes"
	case strings.ContainsAny(p, "\x00\\") || strings.ToValidUTF8(p, "") != p:
		return "a path with a NUL, a backslash or invalid UTF-8"
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." {
			return "a path that is not local or not in its shortest form"
		}
	}
	return ""
}

// SafePath turns any absolute path of a node into an entry's path. Bytes that an
// entry cannot carry become %XX; so does '%' before two hex digits, which keeps
// the mapping one to one.
func SafePath(abs string) string {
	p := strings.TrimPrefix(abs, "/")
	if BadPath(p) == "" && !strings.Contains(p, "%") && strings.IndexFunc(p, func(r rune) bool { return r < 0x20 || r == 0x7f }) < 0 {
		return p
	}
	var b strings.Builder
	for i := 0; i < len(p); {
		r, n := decodeRune(p[i:])
		if r < 0 || r < 0x20 || r == '\\' || r == '%' || r == 0x7f {
			for j := range n {
				fmt.Fprintf(&b, "%%%02X", p[i+j])
			}
		} else {
			b.WriteString(p[i : i+n])
		}
		i += n
	}
	return b.String()
}
