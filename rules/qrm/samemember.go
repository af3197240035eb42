package qrm

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/quorum"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

// sameMember reports two servers that run as one member: a data directory was
// copied from node to node. Each would vote and write under the other's id.
func sameMember(p *analyze.Pass) {
	type identity struct{ cluster, member uint64 }
	type server struct {
		node *bundle.Node
		name string // etcd's --name
		dir  *etcdwal.Dir
	}
	first := map[identity]server{}
	for _, n := range p.All() {
		m, err := staticpod.Manifests.Try(p, n)
		if err != nil || m.Component(staticpod.Etcd) == nil {
			continue
		}
		ds, err := etcdwal.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		d := ds.InUse()
		if d == nil || d.Log == nil || !d.Log.Identified || d.Log.Identity.Node == 0 {
			continue
		}
		name, _ := m.Component(staticpod.Etcd).Setting("name")
		id := identity{d.Log.Identity.Cluster, d.Log.Identity.Node}
		a, seen := first[id]
		if !seen {
			first[id] = server{n, name.Value, d}
			continue
		}
		if a.name == name.Value {
			continue // one machine seen twice
		}
		owner, copied := a, server{n, name.Value, d}
		if m, ok := d.Membership(); ok && m.Member(id.member) != nil && m.Member(id.member).Name == name.Value {
			owner, copied = copied, owner
		}
		who := quorum.ID(id.member)
		p.Report(analyze.Finding{
			Subject: "etcd member " + who, Severity: report.Critical,
			Message: fmt.Sprintf("%s and %s both hold the data of member %s (cluster %s): the data directory of %s was copied to %s, and two servers of one id break the agreement of the cluster",
				nodeName(a.node), nodeName(n), who, quorum.ID(id.cluster), nodeName(owner.node), nodeName(copied.node)),
			Evidence: []analyze.Evidence{analyze.See(copied.dir.LogRef(), "member id "+who+" under --name="+copied.name), analyze.Context(owner.dir.LogRef(), "member id "+who+" under --name="+owner.name)},
			Fix: []report.Step{
				{Text: "Stop etcd on " + nodeName(copied.node) + " (move its manifest out of the static-pod directory) and archive its data directory."},
				{Text: "See that the other members have quorum and that the member list names the stopped node once; remove its entry if it is there."},
				{Text: "Empty its data directory and join it anew; the leader sends it the data. A data directory must never be copied from one member to another."},
			},
		})
	}
}
