// Package rst holds the rules about backups and restores (family RST).
package rst

import (
	"fmt"
	"net/url"
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

// Rules is the family.
var Rules analyze.Catalogue

// A member is the database that stands for a node's member.
type member struct {
	node *bundle.Node
	db   *etcddb.DB
	s    *etcdstore.Store
}

// members returns one database for each node that has any.
func members(p *analyze.Pass) []member {
	var out []member
	for _, n := range p.All() {
		dbs, err := etcddb.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		if db := objects.Choose(dbs); db != nil {
			out = append(out, member{n, db, db.Store})
		}
	}
	return out
}

// saved returns the saved database files of all nodes, read or not.
func saved(p *analyze.Pass) (out []member) {
	for _, n := range p.All() {
		dbs, err := etcddb.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, db := range dbs {
			if db.Saved() {
				out = append(out, member{n, db, db.Store})
			}
		}
	}
	return out
}

// fresh reports a database that a restore wrote and no etcd has started on: the
// applied index is the number of members, and nobody has published client URLs.
func fresh(s *etcdstore.Store) bool {
	if !s.Meta.HasConsistentIndex || len(s.Members) == 0 || s.Meta.ConsistentIndex != uint64(len(s.Members)) {
		return false
	}
	return !slices.ContainsFunc(s.Members, func(m etcdstore.Member) bool { return len(m.ClientURLs) > 0 })
}

// restored tells a database that came out of a restore, and by what: fewer
// entries were applied than revisions exist, or confState still names the voters
// of the cluster the snapshot was taken from.
func restored(s *etcdstore.Store) (why string, ok bool) {
	if s.Meta.HasConsistentIndex && int64(s.Meta.ConsistentIndex) < s.MaxRev && len(s.Bumps) == 0 && s.MaxRev > 1 {
		return fmt.Sprintf("consistent_index %d is below revision %d", s.Meta.ConsistentIndex, s.MaxRev), true
	}
	if len(s.Bumps) > 0 {
		return fmt.Sprintf("revision bump marker at %d", s.Bumps[len(s.Bumps)-1]), true
	}
	if c := s.Meta.ConfState; c != nil && len(s.Members) > 0 {
		for _, v := range c.Voters {
			if !slices.ContainsFunc(s.Members, func(m etcdstore.Member) bool { return m.ID == v }) && !slices.Contains(s.Removed, v) {
				return "confState names voter " + etcdstore.MemberID(v) + ", which is no member", true
			}
		}
	}
	return "", false
}

// loopback reports a URL whose host is this machine by its usual names: what a
// restore without options writes. Other addresses of 127/8 are chosen on purpose.
func loopback(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	h := u.Hostname()
	return h == "localhost" || h == "::1" || h == "127.0.0.1"
}

// restoreFix is the whole way of a restore.
func restoreFix() []report.Step {
	return []report.Step{
		{Text: "Decide on one snapshot file for all nodes (verify it, and look at RST104 and RST107 first)."},
		{Text: "On all control-plane nodes move kube-apiserver, then controller-manager and scheduler manifests out of the static-pod directory; wait until crictl ps shows none."},
		{Text: "Move etcd.yaml out on all nodes. Rename the old data directory; never delete it."},
		{Text: "Restore the same file on each node with that node's identity.",
			Command: "etcdutl snapshot restore FILE --name NODE --initial-cluster N1=https://IP1:2380,N2=https://IP2:2380,N3=https://IP3:2380 --initial-cluster-token NEW --initial-advertise-peer-urls https://IP:2380 --data-dir DIR --bump-revision 1000000000 --mark-compacted"},
		{Text: "Owner root, mode 0700; another path than before must also go into kubeadm-config."},
		{Text: "etcd.yaml back on all nodes; all members healthy; list alarms: with a CORRUPT row stop, otherwise disarm once the cause is gone.", Command: "etcdctl alarm list"},
		{Text: "API servers back and ready; then controller-manager and scheduler; restart all kubelets, kube-proxy, CNI agents and operators: their caches may be ahead of the store."},
	}
}
