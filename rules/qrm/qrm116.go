package qrm

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
	"coldplane/bundle/decode/walframe"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM116", Name: "etcd-raft-log-behind-acknowledged", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical},
	Doc: analyze.Doc{
		Title: "A member's raft log is shorter than what it had acknowledged",
		Why: "The leader counts what a member has acknowledged. When the member comes back with an older copy of its directory under the same id, the leader refers to entries it no longer has, and raft stops the process. " +
			"No file is damaged, but the member will never catch up: it lacks entries that the others count as stored on it, and if a majority lacks them, committed data is lost.",
		Fix:   "Remove this member from the cluster, archive and empty its data directory, and join it anew. Never put back a file copy of one member while the others ran on, never edit or cut the log, and do not restore the whole cluster for one member.",
		Links: []string{"https://github.com/etcd-io/etcd/issues/13509", "https://github.com/etcd-io/etcd/issues/15699"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{etcdwal.OnNode, logs.OnNode},
	Run:   logBehind,
})

func logBehind(p *analyze.Pass) error {
	looked := false
	var f *analyze.Finding
	if l, err := logs.OnNode.Try(p, p.Node()); err == nil && l.Has(signature.Etcd) {
		looked = true
		if h, ok := l.Last(signature.Etcd, "R08"); ok {
			f = &analyze.Finding{Subject: "etcd member", Severity: report.Critical, ObservedAt: h.Time, Evidence: []analyze.Evidence{h.See()},
				Message: fmt.Sprintf("the leader says entry %s is committed, the log of this member ends at %s: its data directory is older than what it had acknowledged", h.Value("commit"), h.Value("last"))}
		}
	}
	if ds, err := etcdwal.OnNode.Try(p, p.Node()); err == nil {
		if d := ds.Live(); d != nil && d.Log != nil {
			looked = true
			for _, x := range d.Log.Damage {
				if x.Kind != walframe.CommitBeyond || len(d.Log.Damage) > 1 {
					continue
				}
				e := analyze.Context(d.Ref(x.Segment, x.Offset), fmt.Sprintf("last entry %d, commit %d", x.Before, x.After-1))
				if f == nil {
					f = &analyze.Finding{Subject: "etcd member", Severity: report.Critical,
						Message: fmt.Sprintf("the log in %s knows that entry %d is committed and ends at %d", d.WALDir, x.After-1, x.Before)}
				}
				f.Evidence = append(f.Evidence, e)
			}
		}
	}
	switch {
	case f != nil:
		f.Evidence[0].Role = report.RoleSubject
		f.Fix = []report.Step{
			{Text: "Stop etcd on this node and archive its data directory off the node; do not edit or delete single files in it."},
			{Text: "From a healthy member: remove this one.", Command: "etcdctl member remove <id of this member>"},
			{Text: "Empty the data directory and join the node anew; it receives the data from the leader."},
		}
		p.Report(*f)
	case !looked:
		p.Unknown(bundle.KindLogs, p.Node(), bundle.NotCollected, "no etcd log and no write-ahead log")
	}
	return nil
}
