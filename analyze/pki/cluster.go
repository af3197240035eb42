package pki

import (
	"net/url"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// A Check is one question of trust: does the CA file a verifier was told to
// use accept this certificate?
type Check struct {
	Cred    *Credential
	CA      *CA
	Chain   *Chain
	Assumed bool // no flag says that this CA is used for it; kubeadm's layout does
}

// Cluster is the credentials of all nodes, and who must accept which.
type Cluster struct {
	Nodes   []*Node // those with credentials, in the set's order
	Checks  []*Check
	Without []*Credential // nobody in the evidence verifies them
	Members int           // etcd members the manifests know of, 0 when none
}

// Node returns the credentials of a node, or nil.
func (c *Cluster) Node(n *bundle.Node) *Node {
	for _, x := range c.Nodes {
		if x.Node == n {
			return x
		}
	}
	return nil
}

// Joined is the credentials of the cluster.
var Joined = &analyze.Fact[*Cluster]{
	Name:  "pki.cluster",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindPKI},
	Needs: []analyze.Need{Files, staticpod.Manifests},
	Compute: func(c *analyze.Ctx) (*Cluster, error) {
		out := &Cluster{}
		var first error
		for _, n := range c.Set().Nodes {
			f, err := Files.Of(c, n)
			if err != nil {
				if first == nil {
					first = err
				}
				continue
			}
			out.Nodes = append(out.Nodes, f)
		}
		if len(out.Nodes) == 0 {
			if first == nil {
				first = analyze.Missing(bundle.KindPKI, "", bundle.NotCollected, "")
			}
			return nil, first
		}
		out.Members = members(c)
		for _, n := range out.Nodes {
			for _, cr := range n.Credentials {
				out.check(n, cr)
			}
		}
		return out, nil
	},
}

// members counts etcd members: the nodes with an etcd manifest, or the names
// of the longest --initial-cluster.
func members(c *analyze.Ctx) int {
	pods, longest := 0, 0
	for _, n := range c.Set().Nodes {
		d, err := staticpod.Manifests.Of(c, n)
		if err != nil {
			continue
		}
		p := d.Component(staticpod.Etcd)
		if p == nil {
			continue
		}
		pods++
		if f, ok := p.Setting("initial-cluster"); ok {
			longest = max(longest, len(f.List()))
		}
	}
	return max(pods, longest)
}

// check asks every verifier of a credential that the evidence shows. A
// verifier on another node counts only where none on its own node is known: a
// difference between nodes is a question of its own.
func (c *Cluster) check(n *Node, cr *Credential) {
	if cr.Cert() == nil {
		return
	}
	var cas []*CA
	assumed := false
	add := func(a *CA) {
		if a != nil && a.Source.Err == nil {
			cas = append(cas, a)
		}
	}
	switch cr.Role {
	case APIServer:
		for _, a := range n.CAs {
			// A kubeconfig that trusts other CAs than the cluster's is at fault itself.
			if (a.Role == ConfigCA && kubeadmConfig(a) || a.Role == RootCA) && c.sameCluster(n, a) {
				add(a)
			}
		}
		if cas == nil {
			add(otherAnchor(n, cr))
		}
		if cas == nil {
			add(n.CA(ClusterCA))
			assumed = true
		}
	case APIServerEtcd:
		add(n.CA(EtcdCA))
		if cas == nil {
			for _, m := range c.Nodes {
				add(m.CA(EtcdCA))
			}
		}
	case EtcdServer:
		add(n.CA(EtcdServerCA))
		if cas == nil {
			for _, m := range c.Nodes {
				add(m.CA(EtcdServerCA))
			}
		}
		if cas == nil {
			add(n.CA(EtcdCA))
			assumed = true
		}
	case EtcdPeer:
		add(n.CA(EtcdPeerCA))
	case EtcdHealthcheck:
		add(n.CA(EtcdCA))
	case APIServerKubelet:
		add(n.CA(KubeletsCA))
		if cas == nil {
			add(n.CA(ClusterCA))
			assumed = true
		}
	case FrontProxy:
		add(n.CA(FrontProxyCA))
	case KubeconfigClient, KubeletClient:
		if foreign(n, cr) {
			return
		}
		add(n.CA(ClusterCA))
		if cas == nil {
			for _, m := range c.Nodes {
				add(m.CA(ClusterCA))
			}
		}
	case KubeletServing:
		if n.CA(KubeletCA) == nil {
			return // not verified by anybody unless the flag says so
		}
		add(n.CA(KubeletCA))
	default:
		return
	}
	if len(cas) == 0 {
		c.Without = append(c.Without, cr)
		return
	}
	done := map[string]*Chain{}
	for _, a := range cas {
		key := a.Source.Path + "\x00" + a.Source.Node.Name
		ch := done[key]
		if ch == nil {
			ch = Verify(cr.Cert(), Certs(cr.Rest), a.Certs())
			done[key] = ch
		}
		c.Checks = append(c.Checks, &Check{Cred: cr, CA: a, Chain: ch, Assumed: assumed || a.Use.Ref.IsZero()})
	}
}

// kubeadmConfig reports whether a CA stands in a kubeconfig the control plane
// itself or its administrators use, not in a copy or in somebody's own file.
func kubeadmConfig(a *CA) bool {
	return a.Config != nil && a.Config.Role != "copy" && a.Config.Role != "other" && !a.Config.SkipVerify
}

// sameCluster reports whether a CA file has a CA in common with the cluster
// CA of the node, or of any node where this one has none.
func (c *Cluster) sameCluster(n *Node, a *CA) bool {
	if own := n.CA(ClusterCA); own != nil {
		return own.Shares(a)
	}
	return true
}

// otherAnchor returns a kubeconfig's CA that accepts the API server's
// certificate although it is not the cluster's: a serving certificate from
// somewhere else.
func otherAnchor(n *Node, cr *Credential) *CA {
	for _, a := range n.CAs {
		if a.Role == ConfigCA && a.Source.Err == nil && Verify(cr.Cert(), Certs(cr.Rest), a.Certs()).OK {
			return a
		}
	}
	return nil
}

// foreign reports whether a kubeconfig belongs to another cluster: a copy or
// somebody's own file whose CA is not among the node's.
func foreign(n *Node, cr *Credential) bool {
	if cr.Config == nil || cr.Config.Role != "copy" && cr.Config.Role != "other" {
		return false
	}
	own := n.CA(ClusterCA)
	for _, a := range n.CAs {
		if a.Role == ConfigCA && a.Config == cr.Config {
			return own == nil || !own.Shares(a)
		}
	}
	return own == nil
}

// Hosts returns the host of each URL of a comma-separated list, without port
// and brackets.
func Hosts(list []string) []string {
	var out []string
	for _, s := range list {
		if _, u, ok := strings.Cut(s, "=http"); ok { // NAME=URL
			s = "http" + u
		}
		if u, err := url.Parse(s); err == nil && u.Hostname() != "" {
			out = append(out, u.Hostname())
		}
	}
	return out
}
