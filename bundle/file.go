package bundle

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"time"
)

// A File is one file, directory or link of a node.
type File struct {
	Node     *Node
	Input    *Input
	Path     string // path inside the input
	Origin   string // absolute path on the node as asked for
	Resolved string // absolute path on the node after following links
	Size     int64  // bytes
	Mode     fs.FileMode
	ModTime  time.Time
	UID, GID int    // -1 when not known
	Link     string // target text of a symbolic link
	Refused  string // why an archive entry was not accepted; "" when it was

	tree tree
	name string
}

// Name returns the last element of the file's path on the node.
func (f *File) Name() string { return path.Base(f.Origin) }

// Ref points at the file as a whole.
func (f *File) Ref() Ref {
	return Ref{Input: f.Input.ID, Node: f.Node.Name, Path: f.Path, Origin: f.Origin}
}

// Line points at a line (1-based) of the file.
func (f *File) Line(n int) Ref { return f.Ref().At(n, "") }

func (f *File) fail(err error) *MissingError {
	return &MissingError{Evidence: f.Origin, Node: f.Node.Name, Reason: osReason(err), Detail: cleanOSError(err), Ref: f.Ref()}
}

// Open opens a regular file for reading at any offset. The error is a
// *MissingError.
func (f *File) Open() (Content, error) {
	switch {
	case f.Refused != "":
		m := f.fail(errRefused)
		m.Detail = f.Refused
		return nil, m
	case f.Mode.IsDir():
		m := f.fail(errNotRegular)
		m.Detail = "a directory where a file is expected"
		return nil, m
	case f.Mode&fs.ModeSymlink != 0:
		g, err := f.Node.Stat(f.Origin)
		if err != nil {
			return nil, err
		}
		return g.Open()
	}
	c, err := f.tree.open(f.name)
	if err != nil {
		return nil, f.fail(err)
	}
	return c, nil
}

// Bytes reads the whole file if it is not larger than limit bytes. Errors are
// *MissingError; a larger file is TooLarge and not read.
func (f *File) Bytes(limit int64) ([]byte, error) {
	c, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if c.Size() > limit {
		return nil, &MissingError{Evidence: f.Origin, Node: f.Node.Name, Reason: TooLarge, Ref: f.Ref(),
			Detail: sizeDetail(c.Size(), limit)}
	}
	b := make([]byte, c.Size())
	n, err := c.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, f.fail(err)
	}
	return b[:n], nil
}

// Reader returns a sequential reader over an open file.
func Reader(c Content) io.Reader { return io.NewSectionReader(c, 0, c.Size()) }
