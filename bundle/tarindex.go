package bundle

import (
	"archive/tar"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"coldplane/bundle/archive"
)

// A Refusal is an archive entry that was not accepted, and why.
type Refusal struct{ Name, Why string }

const (
	maxNameBytes = 4096
	maxRefusals  = 100 // kept by name; the rest is counted
)

// An indexer reads one tar stream into a memTree.
type indexer struct {
	ctx    context.Context
	limits Limits
	mem    *int64 // bytes kept in memory so far, all archives
	spool  *spool
	tree   *memTree
	at     io.ReaderAt // the archive itself when it is not compressed
	pos    func() int64

	refusals []Refusal
	dropped  int // refusals not kept
	entries  int

	check  *archive.Checker      // set for coldplane's own bundles
	verify *archive.Verification // its answer, after index
}

// errArchive is a fault of the archive as a whole; what was indexed before stays usable.
type errArchive struct{ err error }

func (e errArchive) Error() string { return e.err.Error() }
func (e errArchive) Unwrap() error { return e.err }

// index reads r to its end. A returned error says where reading stopped; the
// tree holds everything before.
func (x *indexer) index(r io.Reader) error {
	trailing, err := x.read(r)
	if x.check != nil {
		var cause error
		if ea := (errArchive{}); errors.As(err, &ea) {
			cause = ea.err
		}
		x.verify = x.check.Finish(cause, trailing)
	}
	return err
}

// read is index without the judgement; trailing counts bytes after the end that
// are not zero padding.
func (x *indexer) read(r io.Reader) (trailing int64, err error) {
	deadline := time.Now().Add(x.limits.OpenTime)
	lr := &countReader{r: r, limit: x.limits.TotalBytes, deadline: deadline, ctx: x.ctx}
	tr := tar.NewReader(lr)
	buf := make([]byte, spoolBlock)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return 0, errArchive{fmt.Errorf("after %d entries: %w", x.entries, err)}
		}
		if x.entries++; x.entries > x.limits.Entries {
			return 0, errArchive{fmt.Errorf("more than %d entries", x.limits.Entries)}
		}
		if x.entries == 1 && h.Name == archive.HeaderPath {
			x.check = archive.NewChecker()
		}
		if err := x.entry(tr, h, buf); err != nil {
			return 0, errArchive{fmt.Errorf("entry %d: %w", x.entries, err)}
		}
	}
	// Drain to the trailer of the outer container: truncation and bit flips
	// behind the last entry are noticed only there.
	before := lr.n
	trailing, err = archive.Trailing(lr, buf)
	if err != nil {
		return trailing, errArchive{fmt.Errorf("after the last entry: %w", err)}
	}
	if trail := lr.n - before; trail > 1<<20 {
		return trailing, errArchive{fmt.Errorf("%s of data after the end of the archive", FormatBytes(trail))}
	}
	return trailing, nil
}

func (x *indexer) entry(tr *tar.Reader, h *tar.Header, buf []byte) error {
	keep := x.check != nil && x.check.Entry(h) && h.Size <= archive.MaxManifest
	name, why := localName(h.Name)
	if why != "" {
		x.refuse(h.Name, why)
		return nil
	}
	if name == "" {
		return nil // the root itself
	}
	e := entry{size: h.Size, mode: fs.FileMode(h.Mode).Perm(), mtime: h.ModTime.UTC(), uid: h.Uid, gid: h.Gid}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
	case tar.TypeDir:
		e.mode |= fs.ModeDir
		x.place(name, e, nil)
		return nil
	case tar.TypeSymlink:
		e.mode |= fs.ModeSymlink
		e.link = h.Linkname
		x.place(name, e, nil)
		return nil
	default:
		e.refused = typeName(h.Typeflag)
		x.refuse(name, e.refused)
		x.tree.add(name, e, nil)
		return nil
	}
	if h.Size < 0 || h.Size > x.limits.EntryBytes {
		e.refused = fmt.Sprintf("%s, over the limit for one entry (%s)", FormatBytes(h.Size), FormatBytes(x.limits.EntryBytes))
		x.refuse(name, e.refused)
		x.tree.add(name, e, nil)
		return nil
	}
	if _, dup := x.tree.nodes[name]; dup {
		x.refuse(name, "second entry of that name; the first one counts")
		return nil
	}
	if x.check != nil {
		return x.checked(tr, h, name, e, buf, keep)
	}
	c, err := x.content(tr, tr, h, buf)
	x.place(name, e, c)
	return err
}

// checked is the way of an entry of a coldplane bundle: its digest is taken while
// it is stored.
func (x *indexer) checked(tr *tar.Reader, h *tar.Header, name string, e entry, buf []byte, keep bool) error {
	sum := archive.NewSum()
	c, err := x.content(tr, io.TeeReader(tr, sum), h, buf)
	if err == nil {
		// What was not read, because it stays in the archive or the spool is
		// full, still counts for the digest.
		_, err = io.CopyBuffer(struct{ io.Writer }{sum}, tr, buf)
	}
	x.place(name, e, c)
	if err != nil {
		return err
	}
	var content []byte
	if keep {
		content, err = readAll(c, h.Size)
		if err != nil {
			return err
		}
	}
	x.check.Sum(h.Name, hex.EncodeToString(sum.Sum(nil)), h.Size, content)
	return nil
}

func readAll(c contentSource, size int64) ([]byte, error) {
	o, err := c.open()
	if err != nil {
		return nil, err
	}
	defer o.Close()
	b := make([]byte, size)
	if _, err := o.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}

// content stores one entry's bytes. The error ends the archive.
// r is tr or something that watches it.
func (x *indexer) content(tr *tar.Reader, r io.Reader, h *tar.Header, buf []byte) (contentSource, error) {
	sparse := h.Typeflag == tar.TypeGNUSparse || h.PAXRecords["GNU.sparse.major"] != "" || h.PAXRecords["GNU.sparse.size"] != ""
	switch {
	case h.Size <= x.limits.MemoryEntry && *x.mem+h.Size <= x.limits.MemoryTotal:
		b := make([]byte, h.Size)
		n, err := io.ReadFull(r, b)
		*x.mem += int64(n)
		if err != nil {
			return failedContent{fmt.Errorf("cut off after %d of %d bytes: %w", n, h.Size, err)}, err
		}
		return memoryContent(b), nil
	case x.at != nil && !sparse:
		return regionContent{x.at, x.pos(), h.Size}, nil
	}
	c, err := x.spool.write(r, h.Size, buf)
	if errors.Is(err, errSpoolFull) {
		return failedContent{err}, nil
	}
	if c == nil {
		c = failedContent{err}
	}
	return c, err
}

func (x *indexer) place(name string, e entry, c contentSource) {
	if !x.tree.add(name, e, c) {
		x.refuse(name, "second entry of that name, or below something that is no directory; the first one counts")
	}
}

func (x *indexer) refuse(name, why string) {
	if len(x.refusals) < maxRefusals {
		x.refusals = append(x.refusals, Refusal{name, why})
		return
	}
	x.dropped++
}

// localName checks an archive's name and returns it as a clean slash path, or
// says why it is refused. Names are never rewritten into something else.
func localName(n string) (name, why string) {
	switch {
	case len(n) > maxNameBytes:
		return "", "name longer than 4096 bytes"
	case !utf8.ValidString(n):
		return "", "name is not UTF-8"
	case strings.ContainsAny(n, "\x00\\"):
		return "", "name holds a NUL or a backslash"
	}
	c := strings.TrimSuffix(strings.TrimPrefix(n, "./"), "/")
	if c == "" || c == "." {
		return "", ""
	}
	if !filepath.IsLocal(c) {
		return "", "name leads outside the archive"
	}
	for part := range strings.SplitSeq(c, "/") {
		if part == "" || part == "." || part == ".." {
			return "", "name is not in its shortest form"
		}
	}
	return c, ""
}

func typeName(t byte) string {
	switch t {
	case tar.TypeLink:
		return "a hard link"
	case tar.TypeChar, tar.TypeBlock:
		return "a device"
	case tar.TypeFifo:
		return "a FIFO"
	}
	return fmt.Sprintf("an entry of type %q", t)
}

// countReader ends a stream at a byte limit, a deadline or a cancelled context.
type countReader struct {
	ctx      context.Context
	r        io.Reader
	n, limit int64
	deadline time.Time
}

func (c *countReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if c.n > c.limit {
		return 0, fmt.Errorf("more than %s decompressed", FormatBytes(c.limit))
	}
	if time.Now().After(c.deadline) {
		return 0, errors.New("reading the archive took longer than its time limit")
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
