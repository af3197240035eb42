package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// A Node is one machine's evidence: a file tree laid out like its "/", made
// of one or more inputs. Paths are absolute paths on the node; symbolic links
// are resolved inside the node's root only.
type Node struct {
	Name string // "" for files that belong to the cluster as a whole

	// CollectedAt is when the evidence was taken, by the node's own clock, if
	// an input says so; the zero time otherwise.
	CollectedAt time.Time

	// Live is true for the running system's own root.
	Live bool

	// StoreOnly is true for a bare database or data directory: nothing else
	// of that machine was given.
	StoreOnly bool

	layers []*layer
}

// A layer is one input's contribution to a node.
type layer struct {
	input    *Input
	prefix   string // path of the node root inside the input; "" or "nodes/cp1"
	tree     tree
	complete bool            // a whole root file system: what is not there is absent
	absent   map[string]bool // origins that the collector looked for and did not find
	dirs     map[string]bool // origins of directories that the collector listed in full
}

// containers are directories that inputs never carry as a whole: something
// missing there was not collected.
var containers = map[string]bool{
	"": true, "etc": true, "var": true, "var/lib": true, "var/log": true, "root": true, "home": true,
	"usr": true, "opt": true, "srv": true, "data": true, "mnt": true, "run": true, "coldplane": true,
}

const maxLinks = 40

// resolve follows symbolic links of p inside the layer and returns the name
// in its tree. The final component is followed only when follow is set.
func (l *layer) resolve(p string, follow bool) (string, entry, error) {
	todo := strings.Split(strings.Trim(path.Clean("/"+p), "/"), "/")
	if len(todo) == 1 && todo[0] == "" {
		e, err := l.tree.lstat("")
		return "", e, err
	}
	cur, links := "", 0
	var e entry
	for len(todo) > 0 {
		c := todo[0]
		todo = todo[1:]
		switch c {
		case "", ".":
			continue
		case "..":
			cur = strings.TrimPrefix(path.Dir("/"+cur), "/")
			continue
		}
		next := path.Join(cur, c)
		var err error
		if e, err = l.tree.lstat(next); err != nil {
			return next, e, &lookupError{parent: cur, last: len(todo) == 0, err: err}
		}
		if e.refused != "" {
			return next, e, fmt.Errorf("%w: %s", errRefused, e.refused)
		}
		if e.mode&fs.ModeSymlink != 0 && (follow || len(todo) > 0) {
			if links++; links > maxLinks {
				return next, e, fmt.Errorf("too many levels of symbolic links at /%s", next)
			}
			if strings.HasPrefix(e.link, "/") {
				cur = ""
			}
			todo = append(strings.Split(e.link, "/"), todo...)
			continue
		}
		cur = next
	}
	if cur == "" {
		var err error
		e, err = l.tree.lstat("")
		return "", e, err
	}
	return cur, e, nil
}

// A lookupError says at which point of a path the tree ended.
type lookupError struct {
	parent string // deepest directory that exists
	last   bool   // only the final component is missing
	err    error
}

func (e *lookupError) Error() string { return e.err.Error() }
func (e *lookupError) Unwrap() error { return e.err }

// missing turns a failed look-up into the error callers see.
func (n *Node) missing(l *layer, p string, err error) *MissingError {
	m := &MissingError{Evidence: p, Node: n.Name, Reason: osReason(err)}
	if m.Reason != Absent {
		m.Detail = cleanOSError(err)
		if l != nil {
			m.Ref = Ref{Input: l.input.ID, Node: n.Name, Path: path.Join(l.prefix, strings.TrimPrefix(p, "/")), Origin: p}
		}
		return m
	}
	var le *lookupError
	ok := errors.As(err, &le)
	switch {
	case l == nil:
		m.Reason = NotCollected
	case l.complete, l.absent[p]:
	case l.input.claims && l.dirs[path.Dir(p)]:
	case l.input.claims:
		m.Reason = NotCollected
	case ok && le.last && !containers[le.parent]:
	default:
		m.Reason = NotCollected
	}
	return m
}

func cleanOSError(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// Stat returns the file at an absolute path of the node, following symbolic
// links. The error is a *MissingError: Absent only when the directory that
// should hold the file was collected.
func (n *Node) Stat(p string) (*File, error) { return n.stat(p, true) }

// Lstat is Stat without following a symbolic link in the last component.
func (n *Node) Lstat(p string) (*File, error) { return n.stat(p, false) }

func (n *Node) stat(p string, follow bool) (*File, error) {
	p = path.Clean("/" + p)
	var worst *MissingError
	for _, l := range n.layers {
		name, e, err := l.resolve(p, follow)
		if err == nil {
			return n.file(l, p, name, e), nil
		}
		m := n.missing(l, p, err)
		if worst == nil || rank(m.Reason) > rank(worst.Reason) {
			worst = m
		}
	}
	if worst == nil {
		worst = n.missing(nil, p, errNotExist)
	}
	return nil, worst
}

// rank orders reasons by how much they say about the file itself.
func rank(r Reason) int {
	switch r {
	case NotCollected:
		return 0
	case Absent:
		return 1
	}
	return 2
}

// ReadDir lists a directory of the node, sorted by name, links not followed.
// A directory that is not there is NotCollected unless the whole root is.
func (n *Node) ReadDir(p string) ([]*File, error) {
	p = path.Clean("/" + p)
	var out []*File
	seen := map[string]bool{}
	var worst *MissingError
	found := false
	for _, l := range n.layers {
		name, e, err := l.resolve(p, true)
		if err == nil && !e.mode.IsDir() {
			err = errNotRegular
		}
		var es []entry
		if err == nil {
			es, err = l.tree.readdir(name)
		}
		if err != nil {
			m := n.missing(l, p, err)
			if m.Reason == Absent && !l.complete && !l.absent[p] {
				m.Reason = NotCollected
			}
			if m.Reason == NotRegular {
				m.Detail = "a directory is expected here"
			}
			if worst == nil || rank(m.Reason) > rank(worst.Reason) {
				worst = m
			}
			continue
		}
		found = true
		for _, e := range es {
			if !seen[e.name] {
				seen[e.name] = true
				out = append(out, n.file(l, path.Join(p, e.name), path.Join(name, e.name), e))
			}
		}
	}
	if !found {
		if worst == nil {
			worst = n.missing(nil, p, errNotExist)
		}
		return nil, worst
	}
	slices.SortFunc(out, func(a, b *File) int { return strings.Compare(a.Origin, b.Origin) })
	return out, nil
}

// Glob returns the files whose absolute path on the node matches pattern
// (path.Match syntax, one component at a time), sorted by path. Directories
// that cannot be listed match nothing.
func (n *Node) Glob(pattern string) []*File {
	parts := strings.Split(strings.Trim(path.Clean("/"+pattern), "/"), "/")
	dirs := []string{"/"}
	for i, part := range parts {
		last := i == len(parts)-1
		if !strings.ContainsAny(part, `*?[\`) {
			for j := range dirs {
				dirs[j] = path.Join(dirs[j], part)
			}
			if !last {
				continue
			}
			var out []*File
			for _, d := range dirs {
				if f, err := n.Lstat(d); err == nil {
					out = append(out, f)
				}
			}
			return out
		}
		var next []string
		var out []*File
		for _, d := range dirs {
			fs, err := n.ReadDir(d)
			if err != nil {
				continue
			}
			for _, f := range fs {
				if ok, err := path.Match(part, f.Name()); err == nil && ok {
					next = append(next, f.Origin)
					out = append(out, f)
				}
			}
		}
		if last {
			return out
		}
		dirs = next
	}
	return nil
}

// Machine is the name of the machine the evidence is from. A second
// observation of one machine is a node of its own, "cp1~2".
func (n *Node) Machine() string {
	name, _, _ := strings.Cut(n.Name, "~")
	return name
}

// HasDir reports whether a directory of the node is in the input.
func (n *Node) HasDir(p string) bool {
	f, err := n.Stat(p)
	return err == nil && f.Mode.IsDir()
}

// Complete reports whether the node's whole root file system is given, so
// that whatever is not found is absent.
func (n *Node) Complete() bool {
	for _, l := range n.layers {
		if l.complete {
			return true
		}
	}
	return false
}

// Inputs returns the inputs that contributed to the node.
func (n *Node) Inputs() []*Input {
	var out []*Input
	for _, l := range n.layers {
		if !slices.Contains(out, l.input) {
			out = append(out, l.input)
		}
	}
	return out
}

// Ref points at a path of the node whether or not it exists, in the first
// input of the node.
func (n *Node) Ref(p string) Ref {
	p = path.Clean("/" + p)
	if len(n.layers) == 0 {
		return Ref{Node: n.Name, Path: p, Origin: p}
	}
	l := n.layers[0]
	return Ref{Input: l.input.ID, Node: n.Name, Path: path.Join(l.prefix, strings.TrimPrefix(p, "/")), Origin: p}
}

func (n *Node) file(l *layer, origin, name string, e entry) *File {
	return &File{
		Node: n, Input: l.input, Origin: origin, Path: path.Join(l.prefix, strings.TrimPrefix(origin, "/")),
		Resolved: "/" + name, Size: e.size, Mode: e.mode, ModTime: e.mtime, UID: e.uid, GID: e.gid, Link: e.link,
		Refused: e.refused, tree: l.tree, name: name,
	}
}
