// Package etcddir holds facts about etcd data directories by their listing:
// which there are on a node, which one etcd uses, and what lies in them. It
// does not read the files.
package etcddir

import (
	"path"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// A Dir is one etcd data directory on a node's host.
type Dir struct {
	Path     string // host path, as configured or found
	Resolved string // after following links; Path when it does not exist
	InUse    bool   // the etcd manifest's data directory
	Known    bool   // the directory kubeadm remembers
	Err      error  // why it cannot be listed; nil when it can
	WALDir   string // where the WAL should be: member/wal, or --wal-dir on the host

	Top  []*bundle.File // the directory's own entries
	Snap []*bundle.File // entries of member/snap
	WAL  []*bundle.File // entries of the WAL directory
	DB   *bundle.File   // member/snap/db; nil when it is not there

	SnapErr, WALErr error // why member/snap or the WAL cannot be listed
}

// Member reports whether the directory holds member data: a backend file and
// at least one WAL segment.
func (d *Dir) Member() bool { return d.DB != nil && d.Segments() > 0 }

// Segments counts WAL segments.
func (d *Dir) Segments() int {
	n := 0
	for _, f := range d.WAL {
		if strings.HasSuffix(f.Name(), ".wal") {
			n++
		}
	}
	return n
}

// Bytes is the size of the files listed.
func (d *Dir) Bytes() int64 {
	var n int64
	for _, f := range slices.Concat(d.Snap, d.WAL) {
		if f.Mode.IsRegular() {
			n += f.Size
		}
	}
	return n
}

// Newest is the newest modification time of member files.
func (d *Dir) Newest() time.Time {
	var t time.Time
	for _, f := range slices.Concat(d.Snap, d.WAL) {
		if f.ModTime.After(t) {
			t = f.ModTime
		}
	}
	return t
}

// Dirs are the data directories of one node, the one in use first.
type Dirs []*Dir

// InUse returns the directory the etcd manifest mounts, or nil.
func (ds Dirs) InUse() *Dir {
	for _, d := range ds {
		if d.InUse {
			return d
		}
	}
	return nil
}

// At returns the directory of a host path, or nil.
func (ds Dirs) At(p string) *Dir {
	p = path.Clean(p)
	for _, d := range ds {
		if d.Path == p || d.Resolved == p {
			return d
		}
	}
	return nil
}

// parents are directories whose children may be etcd data directories.
var parents = []string{"/var/lib", "/data", "/opt", "/backup", "/srv", "/mnt", "/var/backups", "/root", "/etc/kubernetes/tmp", "/"}

const maxFound = 32

// OnNode finds the data directories of a node: the manifest's, kubeadm's, and
// every directory with member/ in the usual places.
var OnNode = &analyze.Fact[Dirs]{
	Name:  "etcddir.dirs",
	Kinds: []bundle.Kind{bundle.KindDataDir},
	Needs: []analyze.Need{staticpod.Manifests, kubeadm.Cluster},
	Compute: func(c *analyze.Ctx) (Dirs, error) {
		n := c.Node()
		var out Dirs
		add := func(p string) *Dir {
			p = path.Clean("/" + p)
			if d := out.At(p); d != nil {
				return d
			}
			d := list(n, p)
			if old := out.At(d.Resolved); old != nil && d.Err == nil {
				return old
			}
			out = append(out, d)
			return d
		}
		if m, err := staticpod.Manifests.Get(c); err == nil {
			if pod := m.Component(staticpod.Etcd); pod != nil {
				if hp, wal := HostPaths(pod); hp != "" {
					d := add(hp)
					d.InUse = true
					if wal != "" {
						d.WALDir = wal
						d.WAL, d.WALErr = n.ReadDir(wal)
					}
				}
			}
		}
		if cfg, err := kubeadm.Cluster.Get(c); err == nil && !cfg.External() && len(out) > 0 {
			add(cfg.DataDir()).Known = true
		}
		if n.StoreOnly {
			add("/")
		}
		for _, parent := range parents {
			fs, err := n.ReadDir(parent)
			if err != nil {
				continue
			}
			for _, f := range fs {
				if len(out) >= maxFound {
					break
				}
				if f.Mode.IsDir() && (n.HasDir(f.Origin+"/member/snap") || n.HasDir(f.Origin+"/member/wal")) {
					add(f.Origin)
				} else if f.Mode.IsDir() && parent != "/" {
					for _, m := range n.Glob(f.Origin + "/*/member/snap") {
						add(path.Dir(path.Dir(m.Origin)))
					}
				}
			}
		}
		out = slices.DeleteFunc(out, func(d *Dir) bool { return d.Err != nil && !d.InUse && !d.Known })
		if len(out) == 0 {
			return nil, analyze.Missing(bundle.KindDataDir, n.Name, bundle.NotCollected, "no etcd data directory in the input")
		}
		return out, nil
	},
}

// HostPaths returns where an etcd pod's data directory and, when it is set
// apart, its WAL directory lie on the host; "" when they are not on a hostPath.
func HostPaths(pod *staticpod.Pod) (data, wal string) {
	dd, ok := pod.Setting("data-dir")
	if !ok {
		return "", ""
	}
	if m := pod.Resolve(pod.Main(), dd.Value); m.Kind == staticpod.Host {
		data = m.HostPath
	}
	if w, ok := pod.Setting("wal-dir"); ok && w.Value != "" {
		if m := pod.Resolve(pod.Main(), w.Value); m.Kind == staticpod.Host {
			wal = m.HostPath
		}
	}
	return data, wal
}

func list(n *bundle.Node, p string) *Dir {
	d := &Dir{Path: p, Resolved: p, WALDir: path.Join(p, "member/wal")}
	if f, err := n.Stat(p); err == nil {
		d.Resolved = f.Resolved
	}
	if d.Top, d.Err = n.ReadDir(p); d.Err != nil {
		return d
	}
	base := path.Join(p, "member")
	if !n.HasDir(base) && n.HasDir(path.Join(p, "snap")) && n.HasDir(path.Join(p, "wal")) {
		base = p // the member directory itself was given
		d.WALDir = path.Join(p, "wal")
	}
	d.Snap, d.SnapErr = n.ReadDir(path.Join(base, "snap"))
	d.WAL, d.WALErr = n.ReadDir(d.WALDir)
	for _, f := range d.Snap {
		if f.Name() == "db" && f.Mode.IsRegular() {
			d.DB = f
		}
	}
	return d
}
