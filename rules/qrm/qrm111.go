package qrm

import (
	"cmp"
	"fmt"
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/etcdctl"
	"coldplane/analyze/quorum"
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
		{Name: "ratio", Default: 2, Unit: "ratio", Source: "file size against the smallest member's"},
		{Name: "inuse", Default: 0.1, Unit: "ratio", Source: "in-use bytes at one revision may differ by free pages only"},
		{Name: "floor", Default: 64 << 20, Unit: "bytes", Source: "below this differences of size mean nothing"},
	},
	Wants: []analyze.Need{etcdctl.OnNode},
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
	if !asked {
		p.Unknown(bundle.KindEtcdctl, nil, bundle.NotCollected, "no endpoint status of two members taken at one time")
	}
	return nil
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
