package qrm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcdctl"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM109", Name: "etcd-members-hold-different-data", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical},
	Doc: analyze.Doc{
		Title: "Members of one etcd cluster hold different data",
		Why: "Members that applied the same log must hold the same keys at the same revision. When they do not, each API server answers by the member it asks, objects come and go between reads, and no automatic repair exists. " +
			"etcd 3.5.0 to 3.5.2 could do this in a crash; damaged disks and mixed-up data directories do it too.",
		Fix:   "Save a snapshot of every member separately before anything else. Find the odd one: the majority at a common revision is right. Remove that member, empty its directory and let it join anew; without a majority choose the copy with the newest consistent data and restore it everywhere. Leave affected versions afterwards.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/data_corruption/", "https://github.com/etcd-io/etcd/issues/13766"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "revisions", Default: 2, Unit: "revisions", Source: "an answer taken while a write is applied may differ by one"}},
	Wants:  []analyze.Need{etcdctl.OnNode, quorum.Compared},
	Run:    divergence,
})

func divergence(p *analyze.Pass) error {
	asked := byStatus(p)
	asked = byHash(p) || asked
	cs, err := quorum.Compared.Try(p, nil)
	if err == nil {
		for _, c := range cs {
			asked = true
			byStore(p, c)
		}
	}
	if !asked {
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "fewer than two members' data, and no exact endpoint status of two members at one applied index")
	}
	return nil
}

// byStatus compares members at one applied index: their revisions must agree.
func byStatus(p *analyze.Pass) (asked bool) {
	type group struct {
		node    *bundle.Node
		batch   int
		cluster uint64
		applied uint64
	}
	rows := map[group][]etcdctl.Status{}
	var order []group
	for _, n := range p.All() {
		s, err := etcdctl.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, x := range s.Status {
			if !x.Exact || x.Applied == 0 || x.Revision == 0 {
				continue
			}
			g := group{n, x.Batch, x.ClusterID, x.Applied}
			if rows[g] == nil {
				order = append(order, g)
			}
			rows[g] = append(rows[g], x)
		}
	}
	for _, g := range order {
		list := rows[g]
		if len(list) < 2 {
			continue
		}
		asked = true
		counts := map[int64]int{}
		for _, x := range list {
			counts[x.Revision]++
		}
		slices.SortStableFunc(list, func(a, b etcdctl.Status) int {
			return cmp.Or(cmp.Compare(counts[a.Revision], counts[b.Revision]), cmp.Compare(a.Revision, b.Revision))
		})
		odd, main := list[0], list[len(list)-1]
		if diff := odd.Revision - main.Revision; float64(max(diff, -diff)) < p.Param("revisions") {
			continue
		}
		f := analyze.Finding{Subject: "data of member " + quorum.ID(odd.ID), Severity: report.Critical,
			Message: fmt.Sprintf("member %s (%s) stands at revision %d, the others at %d, at the same applied index %d: it is not behind, it has applied something else",
				quorum.ID(odd.ID), odd.Endpoint, odd.Revision, main.Revision, g.applied)}
		if counts[odd.Revision] == counts[main.Revision] {
			f.Message = fmt.Sprintf("members %s and %s stand at revisions %d and %d at the same applied index %d; which is right cannot be told from two",
				quorum.ID(odd.ID), quorum.ID(main.ID), odd.Revision, main.Revision, g.applied)
		}
		for _, x := range list {
			f.Evidence = append(f.Evidence, analyze.Context(x.Ref, x.Text))
		}
		f.Evidence[0].Role = report.RoleSubject
		p.Report(f)
	}
	return asked
}

// byHash compares saved endpoint hashkv rows of one revision and compaction.
func byHash(p *analyze.Pass) (asked bool) {
	for _, n := range p.All() {
		s, err := etcdctl.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for i, a := range s.Hashes {
			for _, b := range s.Hashes[i+1:] {
				if a.Batch != b.Batch || a.HashRevision == 0 || a.HashRevision != b.HashRevision || a.CompactRevision == 0 || a.CompactRevision != b.CompactRevision {
					continue
				}
				asked = true
				if a.Hash == b.Hash {
					continue
				}
				p.Report(analyze.Finding{Subject: "hash of " + a.Endpoint + " and " + b.Endpoint, Severity: report.Critical,
					Message:  fmt.Sprintf("%s and %s have different hashes, %d and %d, at revision %d compacted at %d", a.Endpoint, b.Endpoint, a.Hash, b.Hash, a.HashRevision, a.CompactRevision),
					Evidence: []analyze.Evidence{analyze.See(a.Ref, a.Text), analyze.Expect(b.Ref, b.Text)}})
			}
		}
	}
	return asked
}

// byStore reports databases whose hashes differ at a common revision.
func byStore(p *analyze.Pass, c quorum.Comparison) {
	odd := c.Odd()
	if odd == nil {
		return
	}
	f := analyze.Finding{Subject: "data of " + odd.Node, Severity: report.Critical,
		Message: fmt.Sprintf("the database of %s differs from the others at revision %d (compacted at %d): hash %d, the others %d", odd.Node, c.Rev, c.Compact, odd.Hash, c.Majority())}
	if len(c.Keys) > 0 {
		f.Message += fmt.Sprintf("; %d keys differ, first %s", c.Differing, strings.Join(c.Keys[:min(5, len(c.Keys))], ", "))
	}
	for _, m := range c.Members {
		f.Evidence = append(f.Evidence, analyze.Context(m.Ref, fmt.Sprintf("hash %d at revision %d", m.Hash, c.Rev)))
		if m.Node == odd.Node {
			last := len(f.Evidence) - 1
			f.Evidence[0], f.Evidence[last] = f.Evidence[last], f.Evidence[0]
		}
	}
	f.Evidence[0].Role = report.RoleSubject
	p.Report(f)
}
