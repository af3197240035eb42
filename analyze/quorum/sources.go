package quorum

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcdctl"
	"coldplane/analyze/etcdwal"
	"coldplane/bundle"
)

// lists turns saved member lists into sources.
func lists(n *bundle.Node, s *etcdctl.Saved) []*Source {
	var out []*Source
	for _, l := range s.Members {
		if len(l.Members) == 0 {
			continue
		}
		src := &Source{Kind: List, Node: n, Ref: l.Ref, Cluster: l.ClusterID, Self: l.MemberID, Term: l.RaftTerm}
		for _, m := range l.Members {
			src.Members = append(src.Members, Claim{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.Learner,
				Started: m.Started, Ref: m.Ref, Text: m.Text})
			if src.Self == 0 && l.Endpoint != "" && has(m.ClientURLs, l.Endpoint) {
				src.Self = m.ID
			}
		}
		out = append(out, src)
	}
	return out
}

func has(urls []string, endpoint string) bool {
	for _, u := range urls {
		if Address(u) == Address(endpoint) {
			return true
		}
	}
	return false
}

// v2 turns a data directory's own record of its members into a source.
func v2(n *bundle.Node, d *etcdwal.Dir) *Source {
	m, ok := d.Membership()
	if !ok || len(m.Members) == 0 {
		return nil
	}
	src := &Source{Kind: V2, Node: n, Ref: m.Base, Removed: m.Removed, Index: m.Index, Version: m.Version}
	identify(src, d)
	for _, x := range m.Members {
		c := Claim{ID: x.ID, Name: x.Name, PeerURLs: x.PeerURLs, ClientURLs: x.ClientURLs, Learner: x.IsLearner, Started: x.Name != "" && len(x.ClientURLs) > 0,
			Ref: m.Base, Text: fmt.Sprintf("%x name %q peerURLs %v isLearner %v", x.ID, x.Name, x.PeerURLs, x.IsLearner)}
		for _, a := range m.Applied {
			if a.NodeID == x.ID {
				c.Ref = d.Ref(a.Segment, a.Offset)
			}
		}
		src.Members = append(src.Members, c)
	}
	return src
}

// identify takes cluster and member id from the log beside a source.
func identify(s *Source, d *etcdwal.Dir) {
	if d.Log == nil {
		return
	}
	s.Term = d.Log.State.Term
	if d.Log.Identified {
		s.Cluster, s.Self = d.Log.Identity.Cluster, d.Log.Identity.Node
	}
}

// gathered is everything the view is made of.
type gathered struct {
	sources  []*Source
	statuses []status
	health   []healthRow
	failures []failure
	versions []Version
	walLives []walLife
}

type status struct {
	node *bundle.Node
	etcdctl.Status
}

type healthRow struct {
	node *bundle.Node
	etcdctl.Health
}

type failure struct {
	node *bundle.Node
	etcdctl.Failure
}

// walLife is a log's identity, for members that only a log knows.
type walLife struct {
	node          *bundle.Node
	cluster, self uint64
	ref           bundle.Ref
}

// gather reads all sources of a set.
func gather(c *analyze.Ctx) *gathered {
	g := &gathered{}
	for _, n := range c.Nodes() {
		if s, err := etcdctl.OnNode.Of(c, n); err == nil {
			g.sources = append(g.sources, lists(n, s)...)
			for _, x := range s.Status {
				g.statuses = append(g.statuses, status{n, x})
				if x.Version != "" {
					g.versions = append(g.versions, Version{Member: x.ID, Text: x.Version, Server: true, Ref: x.Ref})
				}
			}
			for _, x := range s.Health {
				g.health = append(g.health, healthRow{n, x})
			}
			for _, x := range s.Failures {
				g.failures = append(g.failures, failure{n, x})
			}
		}
		if ds, err := etcdwal.OnNode.Of(c, n); err == nil {
			if d := ds.Live(); d != nil {
				if src := v2(n, d); src != nil {
					g.sources = append(g.sources, src)
				}
				if d.Log != nil && d.Log.Identified {
					g.walLives = append(g.walLives, walLife{n, d.Log.Identity.Cluster, d.Log.Identity.Node, d.LogRef()})
				}
			}
		}
		g.sources = append(g.sources, stores(c, n)...)
		g.versions = append(g.versions, serverVersions(c, n)...)
	}
	return g
}
