package qrm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcdctl"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/analyze/quorum"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM111", Name: "etcd-member-lags-or-differs-in-size", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "An etcd member is behind the others, or its database is much larger or fuller",
		Why: "A follower further behind than the leader keeps entries must be sent the whole database. Members hold the same data, so at one revision the pages in use must be nearly the same; " +
			"a file twice as large only means that this member was not defragmented when the others were.",
		Fix:   "Look at the lagging member's disk and network first. If it never catches up, remove it, empty its directory and let it join anew. Defragment the member with the large file, alone and the leader last.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/maintenance/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "lag", Default: 10000, Unit: "entries", Source: "--snapshot-count of etcd 3.6 and kubeadm: beyond it a follower needs a full snapshot"},
		{Name: "minutes", Default: 2, Unit: "minutes", Source: "a database is written ten times a second; files are taken one after another"},
		{Name: "ratio", Default: 2, Unit: "ratio", Source: "file size against the smallest member's"},
		{Name: "inuse", Default: 0.1, Unit: "ratio", Source: "in-use bytes at one revision may differ by free pages only"},
		{Name: "floor", Default: 64 << 20, Unit: "bytes", Source: "below this differences of size mean nothing"},
	},
	Wants: []analyze.Need{etcdctl.OnNode, etcddb.OnNode, etcdwal.OnNode, staticpod.Manifests, objects.OnNode, logs.OnNode},
	Run:   lagging,
})

func lagging(p *analyze.Pass) error {
	asked := false
	for _, n := range p.All() {
		s, err := etcdctl.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, rows := range batches(s.Status) {
			asked = true
			lagOf(p, rows)
		}
	}
	if !asked && !lagOfStores(p) {
		p.Unknown(bundle.KindEtcdctl, nil, bundle.NotCollected, "no endpoint status, and no databases, of two members taken at one time")
	}
	return nil
}

// A stored is a member's database, with its cluster.
type stored struct {
	cluster uint64
	set     *objects.Set
}

// lagOfStores compares the databases of one cluster's members.
func lagOfStores(p *analyze.Pass) (asked bool) {
	var all []stored
	for _, n := range p.Nodes() {
		x, ok := walParty(p, n)
		s, err := objects.OnNode.Try(p, n)
		if !ok || err != nil || s.DB.Saved() || !s.Store.PagesCounted() || quorum.Restored(s.Store) {
			continue
		}
		all = append(all, stored{x.cluster, s})
	}
	for _, a := range all {
		first := a
		for _, b := range all {
			if b.cluster == a.cluster && b.set.Store.Meta.ConsistentIndex > first.set.Store.Meta.ConsistentIndex {
				first = b
			}
		}
		if first == a {
			continue
		}
		asked = true
		behind(p, a, first)
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.cluster == b.cluster {
				asked = true
				sizeOf(p, a, b)
			}
		}
	}
	return asked
}

// behind reports a database that was far behind when it was taken: by the clock
// of the newest one, its last revision was written long before.
func behind(p *analyze.Pass, a, first stored) {
	n := a.set.DB.File.Node
	mine, newest := a.set.Store, first.set.Store
	lag := newest.Meta.ConsistentIndex - mine.Meta.ConsistentIndex
	if float64(lag) <= p.Param("lag") {
		return
	}
	written, ok := first.set.Clock().At(mine.MaxRev)
	taken, dated := p.AsOf(n)
	if !ok || !dated || p.AsOfSource(n) == "inferred" {
		p.Unknown(bundle.KindStore, n, bundle.Undecided, "when the databases were taken is not known, so an older copy cannot be told from a member that lags")
		return
	}
	late := taken.Sub(written)
	if late.Minutes() < p.Param("minutes") || startedWithin(p, n, taken, p.Param("minutes")) {
		return
	}
	p.Report(analyze.Finding{Node: n, Subject: "etcd member on " + n.Name + " progress", Severity: report.Medium, Confidence: report.Probable,
		Message: fmt.Sprintf("the member on %s is %d entries behind: its database ends at revision %d, written %s before it was taken; %s has applied %d", n.Name, lag, mine.MaxRev,
			late.Round(time.Second), first.set.DB.File.Node.Name, newest.Meta.ConsistentIndex),
		Evidence: []analyze.Evidence{analyze.See(a.set.DB.AtKey("meta/consistent_index", 0), fmt.Sprintf("consistent_index %d, revision %d", mine.Meta.ConsistentIndex, mine.MaxRev)),
			analyze.Expect(first.set.DB.AtKey("meta/consistent_index", 0), fmt.Sprintf("consistent_index %d, revision %d", newest.Meta.ConsistentIndex, newest.MaxRev))}})
}

// startedWithin reports whether etcd started in the last minutes before a time:
// it may still be catching up.
func startedWithin(p *analyze.Pass, n *bundle.Node, at time.Time, minutes float64) bool {
	l, err := logs.OnNode.Try(p, n)
	if err != nil {
		return false
	}
	h, ok := l.Last(signature.Etcd, "E52")
	return ok && at.Sub(h.Time).Minutes() < minutes
}

func sizeOf(p *analyze.Pass, a, b stored) {
	if a.set.Store.Pages.DBSize < b.set.Store.Pages.DBSize {
		a, b = b, a
	}
	big, small := a.set.Store.Pages.DBSize, b.set.Store.Pages.DBSize
	if float64(big) <= p.Param("floor") || float64(big) <= p.Param("ratio")*float64(small) {
		return
	}
	name := func(x stored) string { return x.set.DB.File.Node.Name }
	p.Report(analyze.Finding{Node: a.set.DB.File.Node, Subject: "etcd member on " + name(a) + " size", Severity: report.Low,
		Message:  fmt.Sprintf("the database of %s has %s, that of %s only %s: it was not defragmented when the other was", name(a), bundle.FormatBytes(big), name(b), bundle.FormatBytes(small)),
		Evidence: []analyze.Evidence{analyze.See(a.set.DB.Ref(), a.set.Store.Room().String()), analyze.Expect(b.set.DB.Ref(), b.set.Store.Room().String())}})
}

// batches groups rows of one answer, of two members and more.
func batches(all []etcdctl.Status) [][]etcdctl.Status {
	var out [][]etcdctl.Status
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].Batch == all[i].Batch {
			j++
		}
		if j-i > 1 {
			out = append(out, all[i:j])
		}
		i = j
	}
	return out
}

func lagOf(p *analyze.Pass, rows []etcdctl.Status) {
	at := func(s etcdctl.Status) uint64 { return cmp.Or(s.Applied, s.Index) }
	first := slices.MaxFunc(rows, func(a, b etcdctl.Status) int { return cmp.Compare(at(a), at(b)) })
	small := slices.MinFunc(rows, func(a, b etcdctl.Status) int { return cmp.Compare(a.Size, b.Size) })
	for _, s := range rows {
		if lag := at(first) - at(s); at(s) > 0 && float64(lag) > p.Param("lag") {
			p.Report(analyze.Finding{Subject: "etcd member " + quorum.ID(s.ID) + " progress", Severity: report.Medium,
				Message:  fmt.Sprintf("member %s (%s) is %d entries behind: applied %d, the newest is %d", quorum.ID(s.ID), s.Endpoint, lag, at(s), at(first)),
				Evidence: []analyze.Evidence{analyze.See(s.Ref, s.Text), analyze.Expect(first.Ref, first.Text)}})
			continue
		}
		if s.Size > 0 && small.Size > 0 && float64(s.Size) > p.Param("floor") && float64(s.Size) > p.Param("ratio")*float64(small.Size) {
			p.Report(analyze.Finding{Subject: "etcd member " + quorum.ID(s.ID) + " size", Severity: report.Low,
				Message: fmt.Sprintf("the database of member %s (%s) has %s, that of %s only %s: it was not defragmented when the other was", quorum.ID(s.ID), s.Endpoint,
					bundle.FormatBytes(s.Size), quorum.ID(small.ID), bundle.FormatBytes(small.Size)),
				Evidence: []analyze.Evidence{analyze.See(s.Ref, s.Text), analyze.Expect(small.Ref, small.Text)}})
		}
	}
	for i, a := range rows {
		for _, b := range rows[i+1:] {
			hi, lo := max(a.InUse, b.InUse), min(a.InUse, b.InUse)
			if !a.Exact || !b.Exact || a.Revision != b.Revision || a.Revision == 0 || lo <= 0 || float64(hi) < p.Param("floor") || float64(hi-lo) <= p.Param("inuse")*float64(hi) {
				continue
			}
			p.Report(analyze.Finding{Subject: "pages in use of " + quorum.ID(a.ID) + " and " + quorum.ID(b.ID), Severity: report.High, Confidence: report.Probable,
				Message: fmt.Sprintf("at revision %d members %s and %s use %s and %s: the same data takes the same room unless one compacted and the other did not", a.Revision,
					quorum.ID(a.ID), quorum.ID(b.ID), bundle.FormatBytes(a.InUse), bundle.FormatBytes(b.InUse)),
				Evidence: []analyze.Evidence{analyze.See(a.Ref, a.Text), analyze.Expect(b.Ref, b.Text)}})
		}
	}
}
