package objects

import (
	"cmp"
	"slices"
	"sync"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/bundle"
)

// A Set gives the objects of one database. Its methods decode when first asked
// and are safe for concurrent use.
type Set struct {
	DB    *etcddb.DB
	Store *etcdstore.Store

	mu    sync.Mutex
	cache map[string]*cached
}

type cached struct {
	once sync.Once
	val  any
}

// once computes a value of the set one time.
func once[T any](s *Set, name string, f func() T) T {
	s.mu.Lock()
	c := s.cache[name]
	if c == nil {
		c = &cached{}
		s.cache[name] = c
	}
	s.mu.Unlock()
	c.once.Do(func() { c.val = f() })
	return c.val.(T)
}

// New makes the set of a database that was read.
func New(db *etcddb.DB) *Set { return &Set{DB: db, Store: db.Store, cache: map[string]*cached{}} }

// OnNode are the objects as a node's own database has them: the live one, else
// the newest saved file.
var OnNode = &analyze.Fact[*Set]{
	Name:  "objects.node",
	Kinds: []bundle.Kind{bundle.KindStore},
	Needs: []analyze.Need{etcddb.OnNode},
	Compute: func(c *analyze.Ctx) (*Set, error) {
		dbs, err := etcddb.OnNode.Get(c)
		if err != nil {
			return nil, err
		}
		if db := Choose(dbs); db != nil {
			return New(db), nil
		}
		for _, d := range dbs {
			if d.Err != nil {
				return nil, d.Err
			}
		}
		return nil, analyze.Missing(bundle.KindStore, c.Node().Name, bundle.Damaged, "no key bucket could be read")
	},
}

// Choose prefers the live database; a damaged one gives way to a whole one.
func Choose(dbs etcddb.DBs) *etcddb.DB {
	var best *etcddb.DB
	rank := func(d *etcddb.DB) int {
		r := 0
		if !d.Store.Lossy {
			r += 2
		}
		if d == dbs.Live() {
			r++
		}
		return r
	}
	for _, d := range dbs {
		if d.Store == nil || d.Store.Records == 0 || d.Dir != nil && !d.InUse() && dbs.Live() != d && slices.ContainsFunc(dbs, (*etcddb.DB).InUse) {
			continue
		}
		if best == nil {
			best = d
			continue
		}
		if c := cmp.Or(cmp.Compare(rank(d), rank(best)), cmp.Compare(d.Store.MaxRev, best.Store.MaxRev)); c > 0 {
			best = d
		}
	}
	return best
}

// Cluster are the objects of the cluster: those of the node whose database has
// the highest revision. With several files of one cluster that is the one that
// saw most.
var Cluster = &analyze.Fact[*Set]{
	Name:  "objects.cluster",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindStore},
	Needs: []analyze.Need{OnNode},
	Compute: func(c *analyze.Ctx) (*Set, error) {
		var best *Set
		var miss error
		for _, n := range c.Nodes() {
			s, err := OnNode.Of(c, n)
			if err != nil {
				if miss == nil || bundle.IsAbsent(miss) {
					miss = err
				}
				continue
			}
			if best == nil || better(s, best) {
				best = s
			}
		}
		if best == nil {
			if miss == nil {
				miss = analyze.Missing(bundle.KindStore, "", bundle.NotCollected, "no etcd database in the input")
			}
			return nil, miss
		}
		return best, nil
	},
}

func better(a, b *Set) bool {
	if a.Store.Lossy != b.Store.Lossy {
		return b.Store.Lossy
	}
	return a.Store.MaxRev > b.Store.MaxRev
}

// Ref points at a key of the set's database.
func (s *Set) Ref(v etcdstore.Version) bundle.Ref {
	r := s.DB.AtKey(v.Key, v.Rev.Main)
	r.Offset = v.Off
	return r
}
