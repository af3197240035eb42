package quorum

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/etcdctl"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/logs"
	"coldplane/analyze/objects"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// Joined is the view over all nodes.
var Joined = &analyze.Fact[*View]{
	Name:  "quorum.view",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindEtcdctl, bundle.KindStore, bundle.KindWAL},
	Needs: []analyze.Need{etcdctl.OnNode, etcddb.OnNode, etcdwal.OnNode, logs.OnNode, cri.OnNode, staticpod.Manifests, objects.OnNode},
	Compute: func(c *analyze.Ctx) (*View, error) {
		g := gather(c)
		v := g.clusters()
		if len(v.Clusters) == 0 {
			return nil, analyze.Missing(bundle.KindStore, "", bundle.NotCollected, "no database, no log and no member list names a member")
		}
		for _, cl := range v.Clusters {
			cl.settle(g)
		}
		observe(c, v, g)
		v.Refusing = g.refusing()
		for _, cl := range v.Clusters {
			cl.judge()
			sortMembers(cl.Members)
		}
		slices.SortStableFunc(v.Clusters, func(a, b *Cluster) int {
			return cmp.Or(cmp.Compare(len(b.Sources), len(a.Sources)), cmp.Compare(a.ID, b.ID))
		})
		return v, nil
	},
}

// refusing returns the health rows when none of several endpoints is healthy.
func (g *gathered) refusing() []etcdctl.Health {
	var out []etcdctl.Health
	for _, h := range g.health {
		if h.Healthy || h.LearnerOnly() || credentials(h.Error) || strings.Contains(h.Error, "NOSPACE") || strings.Contains(h.Error, "alarm") {
			return nil
		}
		if !slices.ContainsFunc(out, func(o etcdctl.Health) bool { return o.Endpoint == h.Endpoint }) {
			out = append(out, h.Health)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// clusters groups the sources: by cluster id, and those without one by the
// members they share with others.
func (g *gathered) clusters() *View {
	v := &View{}
	at := func(id uint64) *Cluster {
		for _, c := range v.Clusters {
			if id != 0 && c.ID == id {
				return c
			}
		}
		c := &Cluster{ID: id}
		v.Clusters = append(v.Clusters, c)
		return c
	}
	var loose []*Source
	for _, s := range g.sources {
		if s.Cluster == 0 {
			loose = append(loose, s)
			continue
		}
		c := at(s.Cluster)
		c.Sources = append(c.Sources, s)
	}
	for _, s := range loose {
		best, most := (*Cluster)(nil), 0
		for _, c := range v.Clusters {
			if n := shared(c, s); n > most {
				best, most = c, n
			}
		}
		if best == nil {
			best = at(0)
		}
		best.Sources = append(best.Sources, s)
	}
	// Status rows may be all there is of a cluster.
	for i := range g.statuses {
		s := &g.statuses[i]
		if v.of(s.ClusterID, s.ID) == nil && s.ID != 0 {
			c := at(s.ClusterID)
			if c.ID == 0 && len(v.Clusters) > 1 && len(c.Sources) == 0 {
				// Rows without a cluster id belong to the cluster that is there.
				v.Clusters = v.Clusters[:len(v.Clusters)-1]
				c = v.Clusters[0]
			}
			c.Members = append(c.Members, &Member{ID: s.ID, Learner: s.Learner, Started: true})
		}
	}
	return v
}

// of returns the cluster of a cluster id, or else the one that has a member.
func (v *View) of(cluster, member uint64) *Cluster {
	for _, c := range v.Clusters {
		if cluster != 0 && c.ID == cluster {
			if c.knows(member) || len(c.Sources) > 0 {
				return c
			}
		}
	}
	if cluster != 0 {
		return nil
	}
	for _, c := range v.Clusters {
		if c.knows(member) {
			return c
		}
	}
	return nil
}

func (c *Cluster) knows(id uint64) bool {
	return c.Member(id) != nil || slices.ContainsFunc(c.Sources, func(s *Source) bool { return s.Find(id) != nil })
}

func shared(c *Cluster, s *Source) int {
	n := 0
	for _, m := range s.Members {
		if c.knows(m.ID) {
			n++
		}
	}
	return n
}

// settle decides who the members are.
func (c *Cluster) settle(g *gathered) {
	for _, x := range g.versions {
		c.addVersion(x)
	}
	c.V2Decides = c.old()
	slices.SortStableFunc(c.Sources, func(a, b *Source) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Term, a.Term), cmp.Compare(b.Index, a.Index), cmp.Compare(a.Ref.Path, b.Ref.Path))
	})
	if len(c.Sources) == 0 {
		return
	}
	for _, cl := range c.Sources[0].Members {
		c.add(cl)
	}
	for _, s := range c.Sources {
		// A record only the database keeps is a ghost where the v2 store decides.
		if s.Kind == Store && !s.Snapshot && c.V2Decides && c.Sources[0].Kind != Store {
			for _, cl := range s.Members {
				if c.Member(cl.ID) == nil {
					m := c.add(cl)
					m.Ghost, m.Why = true, "only the database of "+nodeOr(s.Node)+" still lists it"
				}
			}
		}
	}
	for _, s := range c.Sources {
		for i := range s.Members {
			if m := c.Member(s.Members[i].ID); m != nil {
				m.Claims = append(m.Claims, Seen{s, &s.Members[i]})
				m.fill(&s.Members[i])
			}
		}
	}
	c.v2Wins()
	c.twins(g)
}

func nodeOr(n *bundle.Node) string {
	if n == nil || n.Name == "" {
		return "the cluster"
	}
	return n.Name
}

func (c *Cluster) add(cl Claim) *Member {
	m := &Member{ID: cl.ID, Name: cl.Name, PeerURLs: cl.PeerURLs, ClientURLs: cl.ClientURLs, Learner: cl.Learner, Started: cl.Started}
	c.Members = append(c.Members, m)
	return m
}

// fill takes what the deciding source left open from another.
func (m *Member) fill(cl *Claim) {
	if m.Name == "" {
		m.Name = cl.Name
	}
	if len(m.ClientURLs) == 0 {
		m.ClientURLs = cl.ClientURLs
	}
	if len(m.PeerURLs) == 0 {
		m.PeerURLs = cl.PeerURLs
	}
	m.Started = m.Started || cl.Started
}

// rank orders sources by how well they show the present.
func rank(s *Source) int {
	switch {
	case s.Kind == List:
		return 0
	case s.Kind == Store && !s.Snapshot && !s.Restored:
		return 1
	case s.Kind == Store && !s.Snapshot:
		return 2
	case s.Kind == V2:
		return 3
	}
	return 4
}

// addVersion keeps a version that belongs to the cluster.
func (c *Cluster) addVersion(v Version) {
	if v.Member != 0 {
		if c.knows(v.Member) {
			c.Versions = append(c.Versions, v)
		}
		return
	}
	for _, s := range c.Sources {
		if s.Node != nil && s.Node.Name == v.Node {
			if v.Server {
				v.Member = s.Self
			}
			c.Versions = append(c.Versions, v)
			return
		}
	}
}

// old reports whether the v2 store decides: up to etcd 3.5.
func (c *Cluster) old() bool {
	known := false
	for _, v := range c.Versions {
		if v.Server {
			known = true
			if Before(v.Text, 3, 6, 0) {
				return true
			}
		}
	}
	if known {
		return false
	}
	for _, s := range c.Sources {
		if s.Version != "" {
			return Before(s.Version, 3, 6, 0)
		}
	}
	return false
}

// v2Wins corrects existence and learner flags by the v2 store of the node
// whose database says otherwise, where the v2 store decides.
func (c *Cluster) v2Wins() {
	if !c.V2Decides {
		return
	}
	for _, s := range c.Sources {
		if s.Kind != V2 {
			continue
		}
		for _, m := range c.Members {
			cl := s.Find(m.ID)
			switch {
			case cl != nil:
				m.Learner = cl.Learner
			case slices.ContainsFunc(m.Claims, func(x Seen) bool { return x.Source.Kind == Store && x.Source.Node == s.Node && !x.Source.Snapshot }):
				m.Ghost, m.Why = true, "the v2 store of "+nodeOr(s.Node)+" does not know it"
			}
		}
		return // the one with the newest term and index
	}
}

// twins finds members at one peer address: etcd refuses to add a second one,
// so all but one are records of members that are gone.
func (c *Cluster) twins(g *gathered) {
	byAddr := map[string][]*Member{}
	var order []string
	for _, m := range c.Members {
		for _, u := range m.PeerURLs {
			a := Address(u)
			if !slices.Contains(byAddr[a], m) {
				if byAddr[a] == nil {
					order = append(order, a)
				}
				byAddr[a] = append(byAddr[a], m)
			}
		}
	}
	for _, a := range order {
		group := byAddr[a]
		if len(group) < 2 {
			continue
		}
		live, how := c.living(group, g)
		for _, m := range group {
			if m == live {
				continue
			}
			m.Twin = live.ID
			if !m.Ghost {
				m.Ghost, m.Why = true, fmt.Sprintf("%s has the same peer address, %s", ID(live.ID), how)
			}
		}
	}
}

// living picks the member of an address that really runs there.
func (c *Cluster) living(group []*Member, g *gathered) (m *Member, how string) {
	pick := func(is func(*Member) bool) *Member {
		var found *Member
		for _, m := range group {
			if is(m) {
				if found != nil {
					return nil
				}
				found = m
			}
		}
		return found
	}
	if m := pick(func(m *Member) bool {
		return slices.ContainsFunc(g.statuses, func(s status) bool { return s.ID == m.ID })
	}); m != nil {
		return m, "and answered"
	}
	if m := pick(func(m *Member) bool { return m.Claim(V2) != nil }); m != nil && c.V2Decides {
		return m, "and the v2 store names that one"
	}
	if m := pick(func(m *Member) bool {
		return slices.ContainsFunc(g.walLives, func(w walLife) bool { return w.self == m.ID }) ||
			slices.ContainsFunc(c.Sources, func(s *Source) bool { return s.Self == m.ID })
	}); m != nil {
		return m, "and the log there belongs to that one"
	}
	if m := pick(func(m *Member) bool { return !m.Ghost }); m != nil {
		return m, "and no source calls that one gone"
	}
	if m := pick(func(m *Member) bool { return m.Started }); m != nil {
		return m, "and that one was started"
	}
	return group[0], "and it is not known which of them lives"
}
