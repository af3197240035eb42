// Package etcddb finds the etcd databases of a node, in data directories and
// as saved snapshots, and reads each of them once for every rule. It only
// joins etcddir and etcdstore.
package etcddb

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"coldplane/analyze"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/etcdstore"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
)

// maxFiles bounds the databases read of one node.
const maxFiles = 16

// A DB is one database file.
type DB struct {
	File *bundle.File
	Dir  *etcddir.Dir // the data directory it belongs to; nil for a saved file
	// Store is what it holds; nil when Err is set. It stays readable as long as
	// the set is open.
	Store *etcdstore.Store
	Err   error // a *bundle.MissingError
}

// InUse reports whether the etcd manifest mounts the database's directory.
func (d *DB) InUse() bool { return d.Dir != nil && d.Dir.InUse }

// Saved reports whether the file is a snapshot or a loose copy.
func (d *DB) Saved() bool { return d.Dir == nil }

// Ref points at the file.
func (d *DB) Ref() bundle.Ref { return d.File.Ref() }

// AtKey points at a key of the file.
func (d *DB) AtKey(key string, rev int64) bundle.Ref { return d.File.Ref().AtKey(key, rev) }

// DBs are the databases of a node: the one in use first, then those of other
// data directories, then saved files by path.
type DBs []*DB

// Of returns the database of a data directory, or nil.
func (ds DBs) Of(d *etcddir.Dir) *DB {
	for _, x := range ds {
		if x.Dir != nil && x.Dir.Path == d.Path {
			return x
		}
	}
	return nil
}

// Live returns the database that stands for the node's member: the one in use,
// or the only one in a data directory, or the only file of a bare database.
// nil when that cannot be told or it could not be read.
func (ds DBs) Live() *DB {
	var only *DB
	for _, x := range ds {
		if x.InUse() {
			if x.Store == nil {
				return nil
			}
			return x
		}
		if x.Dir == nil || strings.Contains(x.Dir.Path, "/etc/kubernetes/tmp/") {
			continue
		}
		if only != nil {
			return nil
		}
		only = x
	}
	if only != nil && only.Store == nil {
		return nil
	}
	return only
}

// OnNode reads the databases of a node.
var OnNode = &analyze.Fact[DBs]{
	Name:  "etcddb.files",
	Kinds: []bundle.Kind{bundle.KindStore},
	Needs: []analyze.Need{etcddir.OnNode},
	Compute: func(c *analyze.Ctx) (DBs, error) {
		out := find(c)
		if len(out) == 0 {
			return nil, analyze.Missing(bundle.KindStore, c.Node().Name, bundle.NotCollected, "no etcd database in the input")
		}
		var g errgroup.Group
		g.SetLimit(1) // each pass has its own workers
		for _, d := range out {
			g.Go(func() error { return d.read(c) })
		}
		return out, g.Wait()
	},
}

// find lists the databases of a node, at most maxFiles.
func find(c *analyze.Ctx) DBs {
	n := c.Node()
	var out DBs
	if dirs, err := etcddir.OnNode.Get(c); err == nil {
		for _, d := range dirs {
			if d.DB != nil {
				out = append(out, &DB{File: d.DB, Dir: d})
			}
		}
	}
	saved := n.Glob("/etcd/*.db")
	out, saved = adopt(n, out, saved)
	if n.StoreOnly && len(out) == 0 {
		if fs, err := n.ReadDir("/"); err == nil {
			saved = append(saved, fs...)
		}
	}
	for _, f := range saved {
		if f.Mode.IsRegular() {
			out = append(out, &DB{File: f})
		}
	}
	slices.SortStableFunc(out, func(a, b *DB) int { return order(a) - order(b) })
	return out[:min(len(out), maxFiles)]
}

// adopt takes the snapshot in a bundle for the database of the data directory in
// use, whose own file stayed on the node: a running etcd gave it, page by page.
func adopt(n *bundle.Node, dbs DBs, saved []*bundle.File) (DBs, []*bundle.File) {
	i := slices.IndexFunc(dbs, (*DB).InUse)
	j := slices.IndexFunc(saved, func(f *bundle.File) bool { return f.Path == hostfacts.SnapshotPath })
	if i < 0 || j < 0 {
		return dbs, saved
	}
	if _, err := n.Stat(hostfacts.EtcdFactsPath); err != nil {
		return dbs, saved // not the collector's
	}
	if _, err := dbs[i].File.Open(); err == nil {
		return dbs, saved
	}
	dbs[i].File = saved[j]
	return dbs, slices.Delete(slices.Clone(saved), j, j+1)
}

func order(d *DB) int {
	switch {
	case d.InUse():
		return 0
	case d.Dir != nil:
		return 1
	}
	return 2
}

// read makes the pass. Only a cancelled context is an error of ours.
func (d *DB) read(c *analyze.Ctx) error {
	content, err := d.File.Open()
	if err != nil {
		d.Err = err
		return nil
	}
	if content.Size() == 0 {
		d.Err = d.missing(bundle.Damaged, "the file has 0 bytes")
		return nil
	}
	s, err := etcdstore.Read(c.Context(), content, content.Size(), etcdstore.Options{Workers: min(2, c.Jobs()), Trailer: d.Saved()})
	if err != nil {
		if c.Context().Err() != nil {
			return c.Context().Err()
		}
		d.Err = d.missing(bundle.Damaged, err.Error())
		return nil
	}
	d.Store = s
	return nil
}

func (d *DB) missing(r bundle.Reason, detail string) error {
	return &bundle.MissingError{Evidence: d.File.Origin, Node: d.File.Node.Name, Reason: r, Detail: detail, Ref: d.File.Ref()}
}

// Damaged tells a database that is there but cannot be read as one from one
// that is not to be had.
func (d *DB) Damaged() bool {
	var m *bundle.MissingError
	return errors.As(d.Err, &m) && m.Reason == bundle.Damaged
}
