// Package ext holds the rules about an etcd outside the cluster (family EXT).
package ext

import (
	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/etcdlisten"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// Rules is the family.
var Rules analyze.Catalogue

// A client is one API server with the etcd it was given.
type client struct {
	node *bundle.Node
	dir  *staticpod.Dir
	pod  *staticpod.Pod
	flag staticpod.Flag
	urls []endpoint.URL
	bad  []string
	own  string // its advertise address
}

// set is the client's URLs in canonical form.
func (c *client) set() []string { return endpoint.Set(c.urls) }

// A topology is what is known of an external etcd.
type topology struct {
	cfg       *kubeadm.Config // nil when there is none
	endpoints []endpoint.URL  // of kubeadm-config
	clients   []*client
	members   []*etcdlisten.Member
	broken    []*staticpod.Entry // API server manifests that cannot be read
}

// needs are the facts that know reads.
var needs = []analyze.Need{staticpod.Manifests, running.Config, etcdlisten.Members}

// know gathers the API servers and what kubeadm remembers.
func know(p *analyze.Pass) *topology {
	t := &topology{}
	if cfg, err := running.Config.Try(p, nil); err == nil {
		t.cfg = cfg
		if cfg.External() {
			for _, e := range cfg.Etcd.External.Endpoints {
				us, _ := endpoint.List(e)
				t.endpoints = append(t.endpoints, us...)
			}
		}
	}
	t.members, _ = etcdlisten.Members.Try(p, nil)
	for _, n := range p.Nodes() {
		d, err := staticpod.Manifests.Try(p, n)
		if err != nil {
			continue
		}
		pod := d.Component(staticpod.APIServer)
		if pod == nil {
			if e := d.Broken(staticpod.APIServer); e != nil {
				t.broken = append(t.broken, e)
			}
			continue
		}
		c := &client{node: n, dir: d, pod: pod}
		c.flag, _ = pod.Flag("etcd-servers")
		c.urls, c.bad = endpoint.List(c.flag.Value)
		if a, ok := pod.Flag("advertise-address"); ok {
			c.own = endpoint.Host(a.Value)
		}
		t.clients = append(t.clients, c)
	}
	return t
}

// external reports whether etcd runs outside the control-plane nodes. known is
// false when neither kubeadm nor the API servers say so.
func (t *topology) external() (external, known bool) {
	if t.cfg != nil {
		return t.cfg.External(), true
	}
	for _, c := range t.clients {
		if c.dir.Component(staticpod.Etcd) != nil || c.dir.Broken(staticpod.Etcd) != nil {
			return false, true
		}
	}
	for _, c := range t.clients {
		for _, u := range c.urls {
			if !u.Unix() && !u.Loopback() && u.Host != c.own {
				return true, true
			}
		}
	}
	return false, false
}

// applies ends a rule that has nothing to ask here.
func (t *topology) applies(p *analyze.Pass) (stop bool, err error) {
	external, known := t.external()
	switch {
	case known && !external:
		return true, p.NotApplicable("etcd runs on the control-plane nodes")
	case !known:
		p.Unknown(bundle.KindKubeadmConfig, nil, bundle.NotCollected, "nothing says whether etcd is external")
		return true, nil
	}
	for _, e := range t.broken {
		p.UnknownErr(bundle.KindManifests, e.File.Node, e.Err)
	}
	return false, nil
}

// where points at the endpoints kubeadm remembers, or at a flag.
func (t *topology) where() (analyze.Evidence, bool) {
	if t.cfg != nil && t.cfg.External() {
		return analyze.Evidence{Ref: t.cfg.Ref("/etcd/external/endpoints"), Excerpt: "endpoints: " + join(t.cfg.Etcd.External.Endpoints)}, true
	}
	for _, c := range t.clients {
		if !c.flag.Ref.IsZero() {
			return analyze.Evidence{Ref: c.flag.Ref, Excerpt: c.flag.Text()}, true
		}
	}
	return analyze.Evidence{}, false
}

func join(s []string) string {
	out := ""
	for i, x := range s {
		if i > 0 {
			out += ", "
		}
		out += x
	}
	return out
}
