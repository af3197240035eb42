package quorum

import (
	"bytes"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/bundle"
)

const (
	maxNodes     = 6000    // Kubernetes supports 5000
	maxNodeBytes = 1 << 20 // etcd's own request limit is 1.5 MiB
)

// NodeObjects are the Node objects of the newest database that could be read.
type NodeObjects struct {
	List []NodeObject
	Ref  bundle.Ref // of the database
	db   *etcddb.DB
}

// A NodeObject is what placement and membership need of a Node.
type NodeObject struct {
	Name         string
	ControlPlane bool // labelled node-role.kubernetes.io/control-plane (or master)
	Zone, Region string
	ProviderID   string
	SystemUUID   string
	Addresses    []string
	Created      time.Time
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

// Nodes are the Node objects of the newest database: of a member's data
// directory before saved snapshots, and of these the highest revision.
var Nodes = &analyze.Fact[*NodeObjects]{
	Name:  "quorum.nodes",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindStore},
	Needs: []analyze.Need{etcddb.OnNode},
	Compute: func(c *analyze.Ctx) (*NodeObjects, error) {
		db := newest(c)
		if db == nil {
			return nil, analyze.Missing(bundle.KindStore, "", bundle.NotCollected, "no readable etcd database in the input")
		}
		out := &NodeObjects{Ref: db.Ref(), db: db}
		prefix := []byte(db.Store.Prefix + "/minions/")
		keys, _ := db.Store.Select(maxNodes, func(k []byte) bool { return bytes.HasPrefix(k, prefix) })
		for _, k := range keys {
			if o, ok := nodeObject(db, k); ok {
				out.List = append(out.List, o)
			}
		}
		return out, nil
	},
}

func newest(c *analyze.Ctx) *etcddb.DB {
	var best *etcddb.DB
	for _, n := range c.Nodes() {
		dbs, err := etcddb.OnNode.Of(c, n)
		if err != nil {
			continue
		}
		live := dbs.Live()
		for _, d := range dbs {
			if d.Store == nil || d != live && !d.Saved() {
				continue
			}
			switch {
			case best == nil, best.Saved() && !d.Saved():
				best = d
			case best.Saved() == d.Saved() && d.Store.Current() > best.Store.Current():
				best = d
			}
		}
	}
	return best
}

// nodeObject decodes one Node. Encrypted and unreadable ones are left out.
func nodeObject(db *etcddb.DB, v etcdstore.Version) (NodeObject, bool) {
	rec, err := db.Store.Load(v, maxNodeBytes)
	if err != nil {
		return NodeObject{}, false
	}
	raw, ok := bytes.CutPrefix(rec.Value, []byte("k8s\x00"))
	if !ok {
		return NodeObject{}, false
	}
	var u runtime.Unknown
	var n corev1.Node
	if u.Unmarshal(raw) != nil || u.Kind != "Node" || n.Unmarshal(u.Raw) != nil {
		return NodeObject{}, false
	}
	o := NodeObject{Name: n.Name, ProviderID: n.Spec.ProviderID, SystemUUID: n.Status.NodeInfo.SystemUUID, Created: n.CreationTimestamp.UTC(),
		Zone: first(n.Labels, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"), Region: n.Labels["topology.kubernetes.io/region"],
		Ref: db.AtKey(v.Key, v.Rev.Main)}
	for _, l := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, ok := n.Labels[l]; ok {
			o.ControlPlane = true
		}
	}
	for _, a := range n.Status.Addresses {
		if len(o.Addresses) < 64 {
			o.Addresses = append(o.Addresses, strings.ToLower(a.Address))
		}
	}
	return o, true
}

func first(m map[string]string, keys ...string) string {
	for _, k := range keys {
		if v := m[k]; v != "" {
			return v
		}
	}
	return ""
}
