package bundle

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// memTree is the index of an archive: names in memory, contents in memory,
// in the archive itself or in the spool.
type memTree struct {
	nodes map[string]*memEntry
}

type memEntry struct {
	entry
	children []string // names of a directory's members, unsorted until sealed
	content  contentSource
	explicit bool // the archive has an entry of its own for it
}

// A contentSource says where the bytes of an archive's entry lie.
type contentSource interface {
	open() (Content, error)
}

type memoryContent []byte

func (m memoryContent) open() (Content, error) {
	return section{io.NewSectionReader(bytes.NewReader(m), 0, int64(len(m)))}, nil
}

// regionContent is a range of a file that stays open as long as the Set.
type regionContent struct {
	r         io.ReaderAt
	off, size int64
}

func (c regionContent) open() (Content, error) {
	return section{io.NewSectionReader(c.r, c.off, c.size)}, nil
}

type failedContent struct{ err error }

func (c failedContent) open() (Content, error) { return nil, c.err }

func newMemTree() *memTree {
	return &memTree{nodes: map[string]*memEntry{"": {entry: entry{mode: fs.ModeDir | 0o755, uid: -1, gid: -1}}}}
}

// add puts an entry at a local slash path, making parents as needed. It
// reports false when the name is taken by an explicit entry already.
func (t *memTree) add(name string, e entry, c contentSource) bool {
	if old, ok := t.nodes[name]; ok {
		if e.mode.IsDir() && old.mode.IsDir() {
			if !old.explicit {
				e.name = old.name
				old.entry, old.explicit = e, true
			}
			return true
		}
		return false
	}
	parent := t.mkdir(parentOf(name))
	if !parent.mode.IsDir() {
		return false
	}
	e.name = path.Base(name)
	t.nodes[name] = &memEntry{entry: e, content: c, explicit: true}
	parent.children = append(parent.children, e.name)
	return true
}

func parentOf(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return ""
}

func (t *memTree) mkdir(name string) *memEntry {
	if n, ok := t.nodes[name]; ok {
		return n
	}
	parent := t.mkdir(parentOf(name))
	n := &memEntry{entry: entry{name: path.Base(name), mode: fs.ModeDir | 0o755, uid: -1, gid: -1}}
	t.nodes[name] = n
	parent.children = append(parent.children, n.name)
	return n
}

func (t *memTree) seal() {
	for _, n := range t.nodes {
		slices.Sort(n.children)
	}
}

func (t *memTree) lstat(name string) (entry, error) {
	if n, ok := t.nodes[name]; ok {
		return n.entry, nil
	}
	return entry{}, errNotExist
}

func (t *memTree) readdir(name string) ([]entry, error) {
	n, ok := t.nodes[name]
	if !ok {
		return nil, errNotExist
	}
	if !n.mode.IsDir() {
		return nil, errNotRegular
	}
	out := make([]entry, len(n.children))
	for i, c := range n.children {
		out[i] = t.nodes[path.Join(name, c)].entry
	}
	return out, nil
}

func (t *memTree) open(name string) (Content, error) {
	n, ok := t.nodes[name]
	switch {
	case !ok:
		return nil, errNotExist
	case n.refused != "":
		return nil, fmt.Errorf("%w: %s", errRefused, n.refused)
	case n.content == nil:
		return nil, errNotRegular
	}
	return n.content.open()
}

// subTree is a tree seen from one of its directories.
type subTree struct {
	tree
	prefix string
}

func sub(t tree, prefix string) tree {
	if prefix == "" {
		return t
	}
	return subTree{t, prefix}
}

func (s subTree) at(name string) string             { return path.Join(s.prefix, name) }
func (s subTree) lstat(n string) (entry, error)     { return s.tree.lstat(s.at(n)) }
func (s subTree) readdir(n string) ([]entry, error) { return s.tree.readdir(s.at(n)) }
func (s subTree) open(n string) (Content, error)    { return s.tree.open(s.at(n)) }
