package objects

import (
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/bundle"
)

// LastWrites are the newest dated writes of the databases in a node's data
// directories, by the directory's path. A directory whose objects carry no
// time is not in it.
var LastWrites = &analyze.Fact[map[string]time.Time]{
	Name:  "objects.last-writes",
	Kinds: []bundle.Kind{bundle.KindStore},
	Needs: []analyze.Need{etcddb.OnNode},
	Compute: func(c *analyze.Ctx) (map[string]time.Time, error) {
		dbs, err := etcddb.OnNode.Get(c)
		if err != nil {
			return nil, err
		}
		out := map[string]time.Time{}
		for _, d := range dbs {
			if d.Dir == nil || d.Store == nil || d.Store.Records == 0 {
				continue
			}
			if p, ok := New(d).LastWrite(); ok {
				out[d.Dir.Path] = p.Time
			}
		}
		return out, nil
	},
}
