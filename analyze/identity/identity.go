// Package identity tells which inputs are of one cluster.
//
// The unique id of the namespace kube-system says it: it survives restores and
// renewals. Where two nodes cannot be compared by it, they are of different
// clusters only when both etcd's cluster id and the key of the cluster's CA
// differ; one of them alone is a fault inside one cluster (a split after a
// restore, a foreign CA) and must not be hidden by refusing to look.
package identity

import (
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/analyze/pki"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
)

// A Node is what a node's evidence says of the cluster it belongs to. Empty
// fields are not known.
type Node struct {
	Node *bundle.Node
	UID  string // of the namespace kube-system
	Etcd string // cluster id, hexadecimal
	CA   string // SHA-256 of the cluster CA's public key

	UIDRef, EtcdRef, CARef bundle.Ref
}

// Clusters are the clusters of the input, each with its nodes. Nodes nothing is
// known of belong to the first.
type Clusters [][]Node

// Several reports whether the inputs are of more than one cluster.
func (c Clusters) Several() bool { return len(c) > 1 }

// OfSet sorts the nodes of the input into clusters.
var OfSet = &analyze.Fact[Clusters]{
	Name:  "identity.clusters",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindStore, bundle.KindPKI},
	Needs: []analyze.Need{objects.OnNode, pki.Files, quorum.Joined},
	Compute: func(c *analyze.Ctx) (Clusters, error) {
		var out Clusters
		for _, n := range c.Nodes() {
			x := of(c, n)
			i := slices.IndexFunc(out, func(g []Node) bool {
				return !slices.ContainsFunc(g, func(y Node) bool { return Differ(x, y) })
			})
			if i < 0 {
				i = len(out)
				out = append(out, nil)
			}
			out[i] = append(out[i], x)
		}
		return out, nil
	},
}

// Differ reports whether two nodes are known to be of different clusters.
func Differ(a, b Node) bool {
	if a.UID != "" && b.UID != "" {
		return a.UID != b.UID
	}
	return known(a.Etcd, b.Etcd) && known(a.CA, b.CA)
}

// known reports whether two values are there and differ.
func known(a, b string) bool { return a != "" && b != "" && a != b }

func of(c *analyze.Ctx, n *bundle.Node) Node {
	x := Node{Node: n}
	if s, err := objects.OnNode.Of(c, n); err == nil {
		if ns, err := s.Namespace("kube-system"); err == nil {
			x.UID, x.UIDRef = string(ns.Value.UID), ns.Ref
		}
	}
	if v, err := quorum.Joined.Get(c); err == nil {
		for _, cl := range v.Clusters {
			for _, s := range cl.Sources {
				if s.Node == n && s.Kind != quorum.List && !s.Snapshot && s.Cluster != 0 {
					x.Etcd, x.EtcdRef = quorum.ID(s.Cluster), s.Ref
				}
			}
		}
	}
	if f, err := pki.Files.Of(c, n); err == nil {
		if ca := f.CA(pki.ClusterCA); ca != nil {
			if certs := ca.Certs(); len(certs) > 0 {
				if fp, err := spki.Of(certs[0].PublicKey); err == nil {
					x.CA, x.CARef = fp.String(), ca.Source.Ref
				}
			}
		}
	}
	return x
}
