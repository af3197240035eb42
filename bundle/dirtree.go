package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// maxDirEntries bounds one directory listing.
const maxDirEntries = 100_000

// dirTree is a directory on disk, read lazily through an os.Root so that
// nothing outside it can be reached.
type dirTree struct{ root *os.Root }

func name(s string) string {
	if s == "" {
		return "."
	}
	return s
}

func (t dirTree) lstat(n string) (entry, error) {
	fi, err := t.root.Lstat(name(n))
	if err != nil {
		return entry{}, err
	}
	e := infoEntry(fi)
	if fi.Mode()&fs.ModeSymlink != 0 {
		e.link, _ = t.root.Readlink(name(n))
	}
	return e, nil
}

func (t dirTree) readdir(n string) ([]entry, error) {
	d, err := openNoBlock(t.root, name(n))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	fis, err := d.Readdir(maxDirEntries)
	if err != nil && len(fis) == 0 {
		if errors.Is(err, os.ErrInvalid) || strings.Contains(err.Error(), "not a directory") {
			return nil, errNotRegular
		}
		if err.Error() != "EOF" {
			return nil, err
		}
	}
	out := make([]entry, 0, len(fis))
	for _, fi := range fis {
		e := infoEntry(fi)
		if fi.Mode()&fs.ModeSymlink != 0 {
			e.link, _ = t.root.Readlink(path.Join(name(n), fi.Name()))
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

func (t dirTree) open(n string) (Content, error) {
	f, err := openNoBlock(t.root, name(n))
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", n, errNotRegular)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return diskFile{f, fi.Size()}, nil
}

type diskFile struct {
	*os.File
	size int64
}

func (d diskFile) Size() int64 { return d.size }

func infoEntry(fi fs.FileInfo) entry {
	uid, gid := owner(fi)
	return entry{name: fi.Name(), size: fi.Size(), mode: fi.Mode(), mtime: fi.ModTime(), uid: uid, gid: gid}
}
