package quorum

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/etcdwal"
	"coldplane/bundle"
)

// stores turns a node's databases into sources: the one of its member, and
// saved snapshots.
func stores(c *analyze.Ctx, n *bundle.Node) []*Source {
	dbs, err := etcddb.OnNode.Of(c, n)
	if err != nil {
		return nil
	}
	var out []*Source
	live := dbs.Live()
	for _, d := range dbs {
		if d.Store == nil || len(d.Store.Members) == 0 || d != live && !d.Saved() {
			continue
		}
		out = append(out, storeSource(c, n, d))
	}
	return out
}

func storeSource(c *analyze.Ctx, n *bundle.Node, d *etcddb.DB) *Source {
	s := d.Store
	src := &Source{Kind: Store, Node: n, Ref: d.Ref(), Removed: s.Removed, Index: s.Meta.ConsistentIndex, Term: s.Meta.Term,
		Version: s.Meta.ClusterVersion, Snapshot: d.Saved(), Restored: Restored(s)}
	if d.Dir != nil {
		if ds, err := etcdwal.OnNode.Of(c, n); err == nil {
			for _, w := range ds {
				if w.Path == d.Dir.Path {
					term := src.Term
					identify(src, w)
					src.Term = max(src.Term, term)
				}
			}
		}
	}
	for _, m := range s.Members {
		src.Members = append(src.Members, Claim{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.Learner,
			Started: m.Name != "" && len(m.ClientURLs) > 0, Ref: d.AtKey("members/"+ID(m.ID), 0),
			Text: fmt.Sprintf("%x name %q peerURLs %v clientURLs %v isLearner %v", m.ID, m.Name, m.PeerURLs, m.ClientURLs, m.Learner)})
	}
	return src
}

// Restored reports whether a database is as `snapshot restore` leaves it, not
// yet or hardly used: a restore resets the consistent index to the number of
// members, and they publish their client URLs only when they start.
func Restored(s *etcdstore.Store) bool {
	return s.Meta.HasConsistentIndex && s.Meta.ConsistentIndex <= uint64(len(s.Members))
}
