// Package etcdwal holds facts out of etcd's write-ahead log and raft snapshot
// files, one per data directory found on a node, and names what lies beside
// them. It opens files only for reading and knows no rule.
package etcdwal

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddir"
	"coldplane/bundle"
	"coldplane/bundle/decode/walframe"
)

// Bounds of one node's logs. etcd keeps five segments of 64 MB and five
// snapshot files by default.
const (
	maxSegments = 256
	maxLogBytes = 16 << 30
	maxSnaps    = 64
)

// A Dir is what one data directory says.
type Dir struct {
	*etcddir.Dir
	Log   *walframe.Log // nil when LogErr is set
	Snaps []Snap        // newest first
	// Leftovers are files that do not belong to a running member.
	Leftovers []Leftover

	LogErr error // why there is no log; a *bundle.MissingError

	segments map[string]*bundle.File
}

// A Snap is one raft snapshot file.
type Snap struct {
	File *bundle.File
	walframe.SnapFile
	Err error // why it could not be read, or only in part
}

// Dirs are the data directories of one node, the one in use first.
type Dirs []*Dir

// InUse returns the directory the manifest mounts, or nil.
func (ds Dirs) InUse() *Dir {
	for _, d := range ds {
		if d.Dir.InUse {
			return d
		}
	}
	return nil
}

// Live returns the directory that stands for the node's member: the one in
// use, or the only one there is. nil when that cannot be told.
func (ds Dirs) Live() *Dir {
	if d := ds.InUse(); d != nil {
		return d
	}
	var only *Dir
	for _, d := range ds {
		if d.DB == nil && d.Segments() == 0 || Backup(d.Path) {
			continue
		}
		if only != nil {
			return nil
		}
		only = d
	}
	return only
}

// Backup tells the copies kubeadm makes during an upgrade.
func Backup(p string) bool { return strings.Contains(p, "/etc/kubernetes/tmp/") }

// OnNode reads the logs of a node's data directories.
var OnNode = &analyze.Fact[Dirs]{
	Name:  "etcdwal.dirs",
	Kinds: []bundle.Kind{bundle.KindWAL},
	Needs: []analyze.Need{etcddir.OnNode},
	Compute: func(c *analyze.Ctx) (Dirs, error) {
		dirs, err := etcddir.OnNode.Get(c)
		if err != nil {
			return nil, err
		}
		var out Dirs
		for _, d := range dirs {
			if err := c.Context().Err(); err != nil {
				return nil, err
			}
			out = append(out, read(c.Node(), d))
		}
		return out, nil
	},
}

func read(n *bundle.Node, d *etcddir.Dir) *Dir {
	out := &Dir{Dir: d, segments: map[string]*bundle.File{}}
	out.Leftovers = leftovers(n, d)
	out.readLog(n)
	out.readSnaps()
	return out
}

// readLog walks the segments of the log.
func (d *Dir) readLog(n *bundle.Node) {
	if d.WALErr != nil {
		d.LogErr = d.WALErr
		return
	}
	var segs []walframe.Segment
	var open []bundle.Content
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	total := int64(0)
	for _, f := range d.WAL {
		if !strings.HasSuffix(f.Name(), ".wal") || f.Mode.IsDir() {
			continue
		}
		c, err := f.Open()
		if err != nil {
			if bundle.ReasonOf(err) != bundle.Redacted || !d.readIndex(n) {
				d.LogErr = err
			}
			return
		}
		open = append(open, c)
		if total += c.Size(); len(segs) >= maxSegments || total > maxLogBytes {
			d.LogErr = &bundle.MissingError{Evidence: d.WALDir, Node: n.Name, Reason: bundle.LimitReached, Detail: "more write-ahead log than is read", Ref: f.Ref()}
			return
		}
		d.segments[f.Name()] = f
		segs = append(segs, walframe.Segment{Name: f.Name(), Size: c.Size(), R: c})
	}
	if len(segs) == 0 {
		d.LogErr = &bundle.MissingError{Evidence: d.WALDir, Node: n.Name, Reason: bundle.Absent, Detail: "no write-ahead log segment in " + d.WALDir}
		return
	}
	d.Log = walframe.Walk(segs)
}

// readSnaps reads the raft snapshot files.
func (d *Dir) readSnaps() {
	for _, f := range d.Snap {
		term, index, ok := walframe.ParseSnapName(f.Name())
		if !ok || f.Mode.IsDir() || len(d.Snaps) >= maxSnaps {
			continue
		}
		s := Snap{File: f, SnapFile: walframe.SnapFile{Name: f.Name(), Term: term, Index: index, Size: f.Size}}
		c, err := f.Open()
		if err != nil {
			s.Err = err
		} else {
			got, err := walframe.ReadSnap(f.Name(), c, c.Size())
			c.Close()
			if err == nil {
				s.SnapFile = got
			}
			s.Err = err
		}
		d.Snaps = append(d.Snaps, s)
	}
	slices.SortStableFunc(d.Snaps, func(a, b Snap) int {
		return cmp.Or(cmp.Compare(b.Term, a.Term), cmp.Compare(b.Index, a.Index))
	})
}

// Segment returns the file of a segment's name, or nil.
func (d *Dir) Segment(name string) *bundle.File { return d.segments[name] }

// Ref points at a place of the log; at the WAL directory when the segment is
// not there.
func (d *Dir) Ref(segment string, offset int64) bundle.Ref {
	if f := d.segments[segment]; f != nil {
		r := f.Ref()
		r.Offset = offset
		return r
	}
	for _, f := range d.WAL {
		return f.Ref()
	}
	return bundle.Ref{}
}

// LogRef points at the newest segment.
func (d *Dir) LogRef() bundle.Ref {
	if d.Log == nil {
		return bundle.Ref{}
	}
	return d.Ref(d.Log.Tail, 0)
}

// NewestSnap returns the newest snapshot file that could be read, or nil.
func (d *Dir) NewestSnap() *Snap {
	for i := range d.Snaps {
		if d.Snaps[i].Err == nil {
			return &d.Snaps[i]
		}
	}
	return nil
}

// SnapGone tells an error about a damaged snapshot from one about a file that
// is not to be had.
func SnapGone(err error) bool {
	var m *bundle.MissingError
	return errors.As(err, &m)
}
