package quorum

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/host"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
)

// weakness of a proof: a missing answer says little when nothing answered.
type proof struct {
	Proof
	weak bool
	at   time.Time // of a complaint in a log; zero for what was asked at collection
}

// observe collects what was seen of the members' life.
func observe(c *analyze.Ctx, v *View, g *gathered) {
	seen := map[*Member][]proof{}
	note := func(m *Member, p proof) {
		if len(seen[m]) < 64 {
			seen[m] = append(seen[m], p)
		}
	}
	for _, cl := range v.Clusters {
		cl.status(g, note)
	}
	v.health(g, note)
	for _, f := range g.failures {
		v.failed(f, note)
	}
	for _, n := range c.Nodes() {
		if ps, err := host.Processes.Of(c, n); err == nil && len(ps.Items) > 0 {
			processes(v, n, ps, note)
		} else if view, err := cri.OnNode.Of(c, n); err == nil {
			containers(c, v, n, view, note)
		}
		if l, err := logs.OnNode.Of(c, n); err == nil {
			peers(v, l, note)
			joins(v, n, l, note)
		}
	}
	asOf := c.AsOf()
	own := traces(c, v)
	for _, cl := range v.Clusters {
		for _, m := range cl.Members {
			t, ok := own[m]
			if !ok || m.Ghost {
				continue
			}
			seen[m] = slices.DeleteFunc(seen[m], func(p proof) bool { return !p.at.IsZero() && p.at.Before(t.at) })
			// Whoever was asked at collection and did not answer is not alive,
			// however fresh its traces are.
			asked := slices.ContainsFunc(seen[m], func(p proof) bool { return p.Life == Silent && p.at.IsZero() })
			if !asked && asOf.Source != "inferred" && asOf.Time.Sub(t.at).Abs() <= recent {
				note(m, proof{Proof: Proof{Life: Alive, Ref: t.ref, Text: t.text, At: t.at}})
			}
		}
		answered := slices.ContainsFunc(cl.Members, func(m *Member) bool {
			return slices.ContainsFunc(seen[m], func(p proof) bool { return p.Life == Alive })
		})
		for _, m := range cl.Members {
			for _, p := range seen[m] {
				if !p.weak || answered {
					if p.At.IsZero() {
						p.At = p.at
					}
					m.Proofs = append(m.Proofs, p.Proof)
				}
			}
			if m.NeverStarted() && len(m.Claims) > 0 {
				m.Proofs = append(m.Proofs, Proof{Life: Silent, Ref: m.Claims[0].Ref, Text: "never started: " + m.Claims[0].Text})
			}
		}
	}
}

// status takes endpoint status rows: whoever is in one has answered.
func (c *Cluster) status(g *gathered, note func(*Member, proof)) {
	for _, s := range g.statuses {
		m := c.Member(s.ID)
		if m == nil || s.ClusterID != 0 && c.ID != 0 && s.ClusterID != c.ID {
			continue
		}
		note(m, proof{Proof: Proof{Life: Alive, Ref: s.Ref, Text: s.Text}})
		switch {
		case s.IsLeader:
			c.Leader, c.LeaderRef = s.ID, s.Ref
		case s.Leader != 0:
			c.Leader, c.LeaderRef = s.Leader, s.Ref
		}
	}
}

// health takes endpoint health rows.
func (v *View) health(g *gathered, note func(*Member, proof)) {
	for _, h := range g.health {
		for _, m := range v.endpoint(h.Endpoint) {
			switch {
			case h.Answered() || h.LearnerOnly():
				note(m, proof{Proof: Proof{Life: Alive, Ref: h.Ref, Text: h.Text}})
			case !credentials(h.Error):
				note(m, proof{Proof: Proof{Life: Silent, Ref: h.Ref, Text: h.Text}, weak: !refused(h.Error)})
			}
		}
	}
}

// failed takes an error etcdctl printed about an endpoint.
func (v *View) failed(f failure, note func(*Member, proof)) {
	ep := f.Endpoint
	if d := dialed(f.Error); d != "" {
		ep = d
	}
	if credentials(f.Error) || strings.Contains(f.Error, "etcdserver:") {
		return
	}
	for _, m := range v.endpoint(ep) {
		note(m, proof{Proof: Proof{Life: Silent, Ref: f.Ref, Text: ep + ": " + f.Error}, weak: !refused(f.Error)})
	}
}

// endpoint finds the members behind a client endpoint: those that publish it as
// their client URL, or else, in each cluster, the only one on that host.
func (v *View) endpoint(ep string) []*Member {
	var exact, host []*Member
	if ep == "" {
		return nil
	}
	h := Host(ep)
	beside := h == "localhost" || h == "127.0.0.1" || h == "::1" // whoever the command ran beside
	for _, c := range v.Clusters {
		if m := c.only(func(m *Member) bool { return has(m.ClientURLs, ep) }); m != nil {
			exact = append(exact, m)
		}
		if beside && len(c.Voters()) > 1 {
			continue
		}
		if m := c.only(func(m *Member) bool {
			return m.Name == h || slices.ContainsFunc(slices.Concat(m.PeerURLs, m.ClientURLs), func(u string) bool { return Host(u) == h })
		}); m != nil {
			host = append(host, m)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return host
}

// only returns the one member, ghosts left out, for which is holds; nil when
// there are several or none.
func (c *Cluster) only(is func(*Member) bool) *Member {
	var found *Member
	for _, m := range c.Members {
		if m.Ghost || !is(m) {
			continue
		}
		if found != nil {
			return nil
		}
		found = m
	}
	return found
}

var dialRE = regexp.MustCompile(`dial tcp (\[[0-9a-fA-F:]+\]:\d+|[^\s:]+:\d+): (?:connect: )?(connection refused|no route to host|i/o timeout|host is down|network is unreachable)`)

// dialed is the address an error says could not be reached.
func dialed(s string) string {
	if m := dialRE.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

func refused(s string) bool {
	return strings.Contains(s, "connection refused") || strings.Contains(s, "no route to host") || strings.Contains(s, "host is down")
}

// credentials tells an error of the client's own making.
func credentials(s string) bool {
	for _, t := range []string{"x509", "tls:", "certificate", "handshake", "permission denied", "Unauthenticated"} {
		if strings.Contains(s, t) {
			return true
		}
	}
	return false
}

// hosted returns the members a node runs: by the log that lies on it, else by
// its name.
func (v *View) hosted(n *bundle.Node) []*Member {
	var out []*Member
	for _, c := range v.Clusters {
		for _, s := range c.Sources {
			if s.Node == n && s.Kind != List && !s.Snapshot && s.Self != 0 {
				if m := c.Member(s.Self); m != nil && !slices.Contains(out, m) {
					out = append(out, m)
				}
			}
		}
	}
	if len(out) > 0 || n.Name == "" {
		return out
	}
	for _, c := range v.Clusters {
		for _, m := range c.Members {
			if m.Name == n.Name && !m.Ghost {
				out = append(out, m)
			}
		}
	}
	return out
}

// processes takes the node's process table. It outweighs the runtime, which may
// be down or slow to notice.
func processes(v *View, n *bundle.Node, ps *host.List[hostfacts.Process], note func(*Member, proof)) {
	p := Proof{Life: Silent, Ref: ps.Refs[0], Text: "no process etcd on " + n.Name}
	for i, x := range ps.Items {
		if x.Comm == staticpod.Etcd && x.State != "Z" {
			p = Proof{Life: Alive, Ref: ps.Refs[i], Text: "process etcd runs on " + n.Name}
		}
	}
	for _, m := range v.hosted(n) {
		note(m, proof{Proof: p})
	}
}

// containers takes the runtime's list of containers.
func containers(c *analyze.Ctx, v *View, n *bundle.Node, view *cri.View, note func(*Member, proof)) {
	etcd := view.Newest(staticpod.Etcd)
	if !view.Listed || etcd == nil {
		return
	}
	for _, m := range v.hosted(n) {
		if r := view.Running(staticpod.Etcd); r != nil {
			note(m, proof{Proof: Proof{Life: Alive, Ref: r.Where(), Text: "container etcd is running"}})
			continue
		}
		note(m, proof{Proof: Proof{Life: Silent, Ref: etcd.Where(), Text: "container etcd is " + etcd.State}})
	}
}

// etcd probes each peer every 30 s, over two connections, and says so each time
// it fails. Failures count when they span two rounds and go on up to the end.
const (
	complaining = 90 * time.Second
	oneRound    = 20 * time.Second
)

// peers takes what etcd's logs say last about each peer: gone inactive and not
// active since, or probes failing up to the end.
func peers(v *View, l *logs.Node, note func(*Member, proof)) {
	type state struct {
		last  logs.At // inactive, or the newest failed probe
		gone  bool
		since time.Time // of the first failed probe
	}
	seen := map[uint64]*state{}
	for _, h := range l.Hits(signature.Etcd, "E10", "E13", "E51") {
		id := h.Value("peer-id")
		if id == "" {
			id = h.Value("remote-peer-id")
		}
		n, err := strconv.ParseUint(id, 16, 64)
		if err != nil || h.Time.IsZero() || credentials(h.Value("error")) {
			continue
		}
		s := seen[n]
		if s == nil {
			s = &state{}
			seen[n] = s
		}
		switch h.Stat.Sig.ID {
		case "E51":
			*s = state{}
		case "E13":
			s.last, s.gone = h, true
		case "E10":
			s.last = h
			if s.since.IsZero() {
				s.since = h.Time
			}
		}
	}
	for _, c := range v.Clusters {
		for _, m := range c.Members {
			s := seen[m.ID]
			if s == nil || m.Ghost || s.last.Stream == nil {
				continue
			}
			if s.gone || s.last.Time.Sub(s.since) >= oneRound && s.last.Stream.Result.Last.Sub(s.last.Time) <= complaining {
				if !stopping(l, s.last.Time) {
					note(m, proof{Proof: Proof{Life: Silent, Ref: s.last.Ref(), Text: s.last.Excerpt()}, at: s.last.Time})
				}
			}
		}
	}
}

// joins takes failed dials out of kubeadm's output.
func joins(v *View, n *bundle.Node, l *logs.Node, note func(*Member, proof)) {
	for _, h := range l.Hits(signature.Kubeadm, "Q03", "G02", "G10") {
		ep := dialed(h.Excerpt())
		if ep == "" {
			continue
		}
		for _, m := range v.endpoint(ep) {
			note(m, proof{Proof: Proof{Life: Silent, Ref: h.Ref(), Text: h.Excerpt()}})
		}
	}
}

// judge settles each member's life: an answer outweighs a peer's complaint.
func (c *Cluster) judge() {
	for _, m := range c.Members {
		for _, p := range m.Proofs {
			if p.Life == Alive {
				m.Life = Alive
				break
			}
			m.Life = Silent
		}
		slices.SortStableFunc(m.Proofs, func(a, b Proof) int {
			rank := func(p Proof) int {
				if p.Life == m.Life {
					return 0
				}
				return 1
			}
			return rank(a) - rank(b)
		})
	}
}
