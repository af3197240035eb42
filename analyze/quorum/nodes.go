package quorum

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/bundle"
)

// NodeObjects are the Node objects of the newest database that could be read.
type NodeObjects struct {
	List []NodeObject
	Ref  bundle.Ref // of the database
}

// A NodeObject is what placement and membership need of a Node.
type NodeObject struct {
	Name         string
	ControlPlane bool   // labelled node-role.kubernetes.io/control-plane (or master)
	Zone         string // by its label
	CloudZone    string // by its provider id
	SystemUUID   string // of the firmware, in lower case
	Addresses    []string
	Ref          bundle.Ref
}

// Find returns the Node of a name, or nil.
func (n *NodeObjects) Find(name string) *NodeObject {
	for i := range n.List {
		if n.List[i].Name == name {
			return &n.List[i]
		}
	}
	return nil
}

// Of finds the Node a member runs on: by name, else by address; nil when there
// is none. n may be nil.
func (n *NodeObjects) Of(m *Member) *NodeObject {
	if n == nil {
		return nil
	}
	if o := n.Find(m.Name); o != nil {
		return o
	}
	for i := range n.List {
		for _, u := range m.PeerURLs {
			if slices.Contains(n.List[i].Addresses, Host(u)) {
				return &n.List[i]
			}
		}
	}
	return nil
}

// HasAddress reports whether some Node has the address.
func (n *NodeObjects) HasAddress(host string) bool {
	return slices.ContainsFunc(n.List, func(o NodeObject) bool { return slices.Contains(o.Addresses, host) })
}

// Names are the Nodes' names, at most twenty.
func (n *NodeObjects) Names() []string {
	var out []string
	for _, o := range n.List {
		if len(out) == 20 {
			return append(out, "…")
		}
		out = append(out, o.Name)
	}
	return out
}

// ControlPlanes are the Nodes labelled as control plane.
func (n *NodeObjects) ControlPlanes() []NodeObject {
	var out []NodeObject
	for _, o := range n.List {
		if o.ControlPlane {
			out = append(out, o)
		}
	}
	return out
}

// Nodes are the Node objects of the cluster's newest database. Encrypted and
// unreadable ones are left out.
var Nodes = &analyze.Fact[*NodeObjects]{
	Name:  "quorum.nodes",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindStore},
	Needs: []analyze.Need{objects.Cluster},
	Compute: func(c *analyze.Ctx) (*NodeObjects, error) {
		s, err := objects.Cluster.Get(c)
		if err != nil {
			return nil, err
		}
		out := &NodeObjects{Ref: s.DB.Ref()}
		for _, n := range s.Nodes().Items {
			out.List = append(out.List, nodeObject(n))
		}
		return out, nil
	},
}

func nodeObject(n objects.Object[corev1.Node]) NodeObject {
	v := n.Value
	o := NodeObject{Name: v.Name, SystemUUID: strings.ToLower(v.Status.NodeInfo.SystemUUID),
		Zone: first(v.Labels, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"), Ref: n.Ref}
	for _, l := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, ok := v.Labels[l]; ok {
			o.ControlPlane = true
		}
	}
	for _, a := range v.Status.Addresses {
		if len(o.Addresses) < 64 {
			o.Addresses = append(o.Addresses, strings.ToLower(a.Address))
		}
	}
	o.CloudZone = cloudZone(v.Spec.ProviderID)
	return o
}

// cloudZone reads the zone out of a provider id, where the provider writes it
// there: aws:///ZONE/INSTANCE and gce://PROJECT/ZONE/INSTANCE.
func cloudZone(id string) string {
	scheme, rest, _ := strings.Cut(id, "://")
	parts := strings.Split(rest, "/")
	if len(parts) != 3 || scheme != "aws" && scheme != "gce" {
		return ""
	}
	return parts[1]
}

func first(m map[string]string, keys ...string) string {
	for _, k := range keys {
		if v := m[k]; v != "" {
			return v
		}
	}
	return ""
}
