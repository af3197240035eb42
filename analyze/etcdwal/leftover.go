package etcdwal

import (
	"path"
	"slices"
	"strings"

	"coldplane/analyze/etcddir"
	"coldplane/bundle"
	"coldplane/bundle/decode/walframe"
)

// LeftoverKind is what a file beside the member's own is.
type LeftoverKind string

// The kinds of leftovers (etcd server/storage and etcdserver/api/snap).
const (
	Broken   LeftoverKind = "broken"   // *.broken: etcd found a bad snapshot, or cut a log, and kept the original
	SnapDB   LeftoverKind = "snap-db"  // <index>.snap.db: a database received from the leader and not swapped in
	Defrag   LeftoverKind = "defrag"   // db.tmp.*: an interrupted defragmentation; etcd deletes it at the next start
	Temp     LeftoverKind = "temp"     // tmp*: an interrupted transfer of a database
	Pipeline LeftoverKind = "pipeline" // wal/*.tmp: the next segment, made ahead; normal while etcd runs
	BadName  LeftoverKind = "bad-name" // not a name etcd gives to its files here
)

// A Leftover is one such file.
type Leftover struct {
	Kind LeftoverKind
	Name string
	Size int64
	Ref  bundle.Ref
}

// Classify says what a file of member/snap (dir "snap") or member/wal ("wal")
// is by its name; "" for a file that belongs there.
func Classify(dir, name string) LeftoverKind {
	switch {
	case strings.HasSuffix(name, ".broken"), strings.Contains(name, ".broken."):
		return Broken
	case dir == "wal":
		if strings.HasSuffix(name, ".tmp") {
			return Pipeline
		}
		if _, _, ok := walframe.ParseSegmentName(name); ok {
			return ""
		}
		return BadName
	case name == "db":
		return ""
	case strings.HasSuffix(name, ".snap.db"):
		return SnapDB
	case strings.HasPrefix(name, "db.tmp"):
		return Defrag
	case strings.HasPrefix(name, "tmp"):
		return Temp
	}
	if _, _, ok := walframe.ParseSnapName(name); ok {
		return ""
	}
	return BadName
}

func leftovers(n *bundle.Node, d *etcddir.Dir) []Leftover {
	var out []Leftover
	add := func(dir string, fs []*bundle.File) {
		for _, f := range fs {
			if k := Classify(dir, f.Name()); k != "" && len(out) < 4096 {
				out = append(out, Leftover{k, f.Name(), f.Size, f.Ref()})
			}
		}
	}
	add("snap", d.Snap)
	add("wal", d.WAL)
	// etcd renames a whole log directory it cannot set up (wal.broken.<time>).
	beside, err := n.ReadDir(path.Dir(d.WALDir))
	if err == nil {
		for _, f := range beside {
			if strings.HasPrefix(f.Name(), "wal.broken") && len(out) < 4096 {
				out = append(out, Leftover{Broken, f.Name(), f.Size, f.Ref()})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Leftover) int { return strings.Compare(a.Ref.Path, b.Ref.Path) })
	return out
}
