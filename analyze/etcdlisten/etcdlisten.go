// Package etcdlisten holds where etcd members listen, by their manifests, and
// answers whether a client that dials a URL would reach a member's client port.
package etcdlisten

import (
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// etcd's defaults: server/embed/config.go.
const (
	defaultClient = "http://localhost:2379"
	defaultPeer   = "http://localhost:2380"
)

// A Member is one etcd member as its manifest starts it.
type Member struct {
	Node *bundle.Node
	Pod  *staticpod.Pod

	Client, Peer, Metrics    []endpoint.URL // what it listens on
	Advertised               []endpoint.URL // client URLs it tells others
	ClientFlag, PeerFlag     staticpod.Flag // zero Ref when defaulted
	AdvertisedFlag, NameFlag staticpod.Flag
	// Open says that something of it is not in the manifest (variables, a
	// configuration file), so that nothing may be concluded from what is missing.
	Open bool
}

// OfPod reads a member's manifest.
func OfPod(n *bundle.Node, pod *staticpod.Pod) *Member {
	m := &Member{Node: n, Pod: pod}
	read := func(name, def string) ([]endpoint.URL, staticpod.Flag) {
		f, ok := pod.Setting(name)
		if !ok {
			f = staticpod.Flag{Name: name, Value: def}
		}
		if f.Dynamic {
			m.Open = true
		}
		urls, bad := endpoint.List(f.Value)
		m.Open = m.Open || len(bad) > 0
		return urls, f
	}
	m.Client, m.ClientFlag = read("listen-client-urls", defaultClient)
	m.Peer, m.PeerFlag = read("listen-peer-urls", defaultPeer)
	m.Metrics, _ = read("listen-metrics-urls", "")
	m.Advertised, m.AdvertisedFlag = read("advertise-client-urls", defaultClient)
	m.NameFlag, _ = pod.Setting("name")
	if _, ok := pod.Setting("config-file"); ok {
		m.Open = true
	}
	if extra, ok := pod.Setting("listen-client-http-urls"); ok {
		urls, _ := endpoint.List(extra.Value)
		m.Client = append(m.Client, urls...)
	}
	return m
}

// Members are the members of all nodes that have an etcd manifest, in the
// order of the nodes. No manifest at all is no error.
var Members = &analyze.Fact[[]*Member]{
	Name:  "etcdlisten.members",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindManifests},
	Needs: []analyze.Need{staticpod.Manifests},
	Compute: func(c *analyze.Ctx) ([]*Member, error) {
		var out []*Member
		for _, n := range c.Set().Nodes {
			d, err := staticpod.Manifests.Of(c, n)
			if err != nil {
				continue
			}
			if pod := d.Component(staticpod.Etcd); pod != nil {
				out = append(out, OfPod(n, pod))
			}
		}
		return out, nil
	},
}

// A Reach says what a client meets at a URL.
type Reach int

// What a client may meet.
const (
	NotKnown     Reach = iota // no member in the evidence is at that host
	ClientPort                // a member's client port: right
	PeerPort                  // a member's peer port
	MetricsPort               // a member's metrics port
	OtherScheme               // the client port, but http for https or the reverse
	OtherAddress              // the client port, but the member does not listen on that address
	NothingThere              // the member listens on no such port
)

// Dial says what a client on node from meets at u, and at which member.
func Dial(members []*Member, from *bundle.Node, u endpoint.URL) (Reach, *Member) {
	if u.Unix() {
		return NotKnown, nil
	}
	for _, m := range members {
		if !m.at(from, u.Host) {
			continue
		}
		r := m.reach(u)
		if r != ClientPort && m.Open {
			r = NotKnown
		}
		return r, m
	}
	return NotKnown, nil
}

// at reports whether a host, dialled on node from, is the member's machine.
func (m *Member) at(from *bundle.Node, host string) bool {
	if endpoint.Loopback(host) && m.Node == from {
		return true
	}
	for _, u := range slices.Concat(m.Client, m.Peer, m.Advertised) {
		if u.Host == host && (!endpoint.Loopback(host) || m.Node == from) {
			return true
		}
	}
	return false
}

func (m *Member) reach(u endpoint.URL) Reach {
	for _, l := range m.Client {
		if l.Port == u.Port && l.Scheme == u.Scheme && endpoint.SameHost(l.Host, u.Host) {
			return ClientPort
		}
	}
	for _, a := range m.Advertised {
		// A name or a translated address that the member itself gives out.
		if a.String() == u.String() && !m.listens(m.Peer, u) {
			return ClientPort
		}
	}
	switch {
	case m.listens(m.Peer, u):
		return PeerPort
	case m.listens(m.Metrics, u):
		return MetricsPort
	}
	for _, l := range m.Client {
		switch {
		case l.Port != u.Port:
		case endpoint.SameHost(l.Host, u.Host):
			return OtherScheme
		default:
			return OtherAddress
		}
	}
	return NothingThere
}

// listens reports whether a port is among those of the URLs; the peer port is
// the wrong one on whatever address it is dialled.
func (m *Member) listens(urls []endpoint.URL, u endpoint.URL) bool {
	return slices.ContainsFunc(urls, func(l endpoint.URL) bool { return l.Port == u.Port && !m.client(l) })
}

func (m *Member) client(l endpoint.URL) bool {
	return slices.ContainsFunc(m.Client, func(c endpoint.URL) bool { return c.Port == l.Port })
}
