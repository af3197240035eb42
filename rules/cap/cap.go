// Package cap holds the rules about etcd's capacity: alarms, quota, what fills
// the database and how fast (family CAP).
package cap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

// Rules is the family.
var Rules analyze.Catalogue

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// A member is one database that is judged, with the quota it lives under.
type member struct {
	node  *bundle.Node
	db    *etcddb.DB
	s     *etcdstore.Store
	quota *etcddb.Quota
}

// members returns one database for each node that has any: the live one, else
// the newest saved. Saved files that lie beside the nodes count only when no
// node has a live one, for they are copies of those.
func members(p *analyze.Pass) []member {
	var out []member
	live := false
	for _, n := range p.All() {
		dbs, err := etcddb.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		db := objects.Choose(dbs)
		if db == nil {
			for _, d := range dbs {
				if d.Err != nil {
					p.UnknownErr(bundle.KindStore, n, d.Err)
				}
			}
			continue
		}
		m := member{node: n, db: db, s: db.Store}
		live = live || !db.Saved()
		m.quota = quotaFor(p, n)
		out = append(out, m)
	}
	if live {
		out = slices.DeleteFunc(out, func(m member) bool { return m.db.Saved() && m.node.Name == "" })
	}
	return out
}

// whole leaves out databases of which a part cannot be read: their page counts
// mean nothing.
func whole(p *analyze.Pass, ms []member) []member {
	return slices.DeleteFunc(ms, func(m member) bool {
		if !m.s.PagesCounted() {
			p.Unknown(bundle.KindStore, m.node, bundle.Damaged, "a part of "+m.db.File.Path+" cannot be read, so its pages cannot be counted")
			return true
		}
		return false
	})
}

// quotaFor is a node's quota; a saved file beside the nodes takes that of the
// first node that says one.
func quotaFor(p *analyze.Pass, n *bundle.Node) *etcddb.Quota {
	q, err := etcddb.QuotaOf.Try(p, n)
	if err == nil && (!q.Assumed || n.Name != "") {
		return q
	}
	for _, o := range p.Nodes() {
		if oq, err := etcddb.QuotaOf.Try(p, o); err == nil && !oq.Assumed {
			return oq
		}
	}
	if err != nil {
		return &etcddb.Quota{Bytes: etcddb.DefaultQuota, Assumed: true, Source: "etcd's default, assumed"}
	}
	return q
}

// name says whose database it is, in messages and subjects.
func (m member) name() string {
	if m.node.Name != "" {
		return "member on " + m.node.Name
	}
	return "saved snapshot"
}

// fill is the size of the database as a share of its quota; 0 without a quota.
func (m member) fill() float64 {
	if m.quota.Off || m.quota.Bytes <= 0 {
		return 0
	}
	return float64(m.s.Pages.DBSize) / float64(m.quota.Bytes)
}

// sizes says the three sizes everybody asks for.
func (m member) sizes() string {
	return fmt.Sprintf("%d bytes, %d in use (%.0f %%), %d live, %d history", m.s.Pages.DBSize, m.s.Pages.InUse, 100*ratio(m.s.Pages.InUse, m.s.Pages.DBSize),
		m.s.LiveRec, m.s.RecBytes-m.s.LiveRec)
}

// evidence is the file with its sizes, and where the quota is said.
func (m member) evidence() []analyze.Evidence {
	// the size is the high water mark, a field of the meta page in use
	r := m.db.Ref()
	r.Offset = int64(max(m.s.Chosen, 0))*m.s.Pages.PageSize + 56
	out := []analyze.Evidence{analyze.See(r, m.sizes())}
	if !m.quota.Ref.IsZero() {
		out = append(out, analyze.Expect(m.quota.Ref, m.quota.Text))
	}
	return out
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// content is the one database whose objects are judged.
func content(p *analyze.Pass) (*objects.Set, *etcddb.Quota, bool) {
	s, ok := objects.Cluster.In(p)
	if !ok {
		return nil, nil, false
	}
	return s, quotaFor(p, s.DB.File.Node), true
}

// floor is the size below which a share of the database does not matter: a tenth
// of the quota, or 100 MB.
func floor(q *etcddb.Quota) int64 {
	if q.Off || q.Bytes <= 0 {
		return 100e6
	}
	return min(100e6, q.Bytes/10)
}

// keyRef points at a key of a set.
func keyRef(s *objects.Set, k etcdstore.KeyStats) bundle.Ref { return s.DB.AtKey(k.Key, k.Rev.Main) }

// isCustom reports whether a type belongs to an API group of its own, not to
// Kubernetes itself.
func isCustom(typ string) bool {
	group, _, ok := strings.Cut(typ, "/")
	return ok && strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

// byBytes orders types by what they hold in all revisions.
func byBytes(types []etcdstore.TypeStats) []etcdstore.TypeStats {
	out := slices.Clone(types)
	slices.SortStableFunc(out, func(a, b etcdstore.TypeStats) int { return cmp.Compare(b.RecBytes, a.RecBytes) })
	return out
}

// nospaceFix is the order in which a full store is repaired; another order fails
// or loses the alarm's protection.
func nospaceFix(filler string) []report.Step {
	stop := "Stop what writes: scale down or suspend the controller behind the largest type (CAP105, CAP106, CAP113)."
	if filler != "" {
		stop = "Stop what writes: scale down or suspend the controller behind " + filler + "."
	}
	return []report.Step{
		{Text: "Save a snapshot first, into a mounted path, and copy it off the node.", Command: "etcdctl snapshot save /var/lib/etcd/before-repair.db"},
		{Text: stop},
		{Text: "Delete what is not needed and needs no update first: events, finished objects, custom resources without finalizers. Namespaces will not go while the alarm is set."},
		{Text: "Compact once, to the revision that endpoint status shows.", Command: "etcdctl compact REVISION"},
		{Text: "Defragment member by member, the leader last, and wait for endpoint status after each, also after a client timeout.", Command: "etcdctl --command-timeout=10m defrag"},
		{Text: "List the alarms; if any row says CORRUPT, stop: disarm clears every alarm. Disarm only when all rows say NOSPACE.", Command: "etcdctl alarm list && etcdctl alarm disarm"},
		{Text: "Check that the alarm list is empty and that a write works; then delete namespaces and the rest, and compact and defragment again if needed."},
		{Text: "Only then consider a larger --quota-backend-bytes (at most 8 GiB), the same in kubeadm-config and in every etcd manifest."},
	}
}

// size writes bytes for people.
func size(n int64) string { return bundle.FormatBytes(n) }
