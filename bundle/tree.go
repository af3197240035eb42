package bundle

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"time"
)

// A tree is one hierarchy of files, wherever it is stored. Names are slash
// paths without a leading slash, "" is the root; no method follows a
// symbolic link.
type tree interface {
	lstat(name string) (entry, error)
	readdir(name string) ([]entry, error) // sorted by name
	open(name string) (Content, error)    // regular files only
}

// An entry is what a tree knows of a file without reading it.
type entry struct {
	name     string // base name
	size     int64
	mode     fs.FileMode // type and permission bits
	mtime    time.Time
	uid, gid int // -1 when not known
	link     string
	refused  string // why the entry of an archive was not accepted; "" when it was
}

// Content is an open file. It may be read at any offset by several goroutines.
type Content interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// errNotExist is what trees return for a name they do not have.
var errNotExist = fs.ErrNotExist

// section is Content over part of something larger that stays open.
type section struct{ *io.SectionReader }

func (section) Close() error { return nil }

// reasonOf maps an operating-system error to a reason code.
func osReason(err error) Reason {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return Absent
	case errors.Is(err, errRefused):
		return Refused
	case errors.Is(err, errNotRegular):
		return NotRegular
	case errors.Is(err, errSpoolFull):
		return SpoolFull
	case errors.Is(err, errRedacted):
		return Redacted
	}
	return Unreadable
}

var (
	errRefused    = errors.New("entry refused")
	errNotRegular = errors.New("not a regular file")
	errSpoolFull  = errors.New("the spool is full")
	errRedacted   = errors.New("left out of the bundle on purpose")
)
