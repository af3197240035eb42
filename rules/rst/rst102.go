package rst

import (
	"fmt"
	"strconv"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "RST102", Name: "revision-went-backwards", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "Revision went backwards after a restore",
		Why: "Clients that watch remember the revision they have seen. After a restore to a lower one they wait for changes that already happened, or see an old object with a number " +
			"they take for new, until the revision has passed the old mark.",
		Fix: "Restart API servers, controller-manager, scheduler, all kubelets, kube-proxy and operators. Next time restore with --bump-revision 1000000000 --mark-compacted " +
			"(etcdutl of 3.4.27, 3.5.10, 3.6.0 or newer).",
		Links: []string{"https://github.com/kubernetes/kubernetes/issues/118501", "https://github.com/etcd-io/etcd/issues/16028"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "margin", Default: 100, Unit: "revisions", Source: "a member that restarts may be a little behind what it logged"}},
	Wants:  []analyze.Need{etcddb.OnNode, logs.OnNode},
	Run:    wentBack,
})

func wentBack(p *analyze.Pass) error {
	n := p.Node()
	looked := false
	bumped := false
	if dbs, err := etcddb.OnNode.Try(p, n); err == nil {
		live := dbs.Live()
		if live != nil {
			looked = true
			bumped = len(live.Store.Bumps) > 0
		}
		if live != nil && !bumped && !live.Store.Lossy {
			olderRevision(p, dbs, live)
		}
	}
	l, err := logs.OnNode.Try(p, n)
	if err != nil {
		if !looked {
			p.UnknownErr(bundle.KindLogs, n, err)
		}
		return nil
	}
	var prev logs.At
	var before int64
	for _, hit := range l.Hits(signature.Etcd, "E50") {
		rev, err := strconv.ParseInt(hit.Value("current-rev"), 10, 64)
		if err != nil || hit.Time.IsZero() {
			continue
		}
		looked = true
		if before > 0 && float64(rev)+p.Param("margin") < float64(before) && rev > 1 && !bumped {
			p.Report(analyze.Finding{
				Subject: "etcd revision", Severity: report.High, ObservedAt: hit.Time,
				Message: fmt.Sprintf("etcd opened its store at revision %d on %s, after %d on %s, without a revision bump", rev, hit.Time.UTC().Format(time.RFC3339),
					before, prev.Time.UTC().Format(time.RFC3339)),
				Evidence: []analyze.Evidence{hit.See(), analyze.Expect(prev.Ref(), prev.Excerpt())},
			})
		}
		prev, before = hit, rev
	}
	if !looked {
		p.Unknown(bundle.KindLogs, n, bundle.NotCollected, "neither a database nor a log line of etcd opening its store")
	}
	return nil
}

// olderRevision compares the database in use with others of the same cluster on
// the node that are further on.
func olderRevision(p *analyze.Pass, dbs etcddb.DBs, live *etcddb.DB) {
	ns, err := objects.New(live).Namespace("kube-system")
	if err != nil {
		return
	}
	for _, db := range dbs {
		if db == live || db.Dir == nil || db.Store == nil || db.Store.Lossy || float64(db.Store.MaxRev) <= float64(live.Store.MaxRev)+p.Param("margin") {
			continue
		}
		o := objects.New(db)
		other, err := o.Namespace("kube-system")
		if err != nil || other.Value.UID != ns.Value.UID || ns.Value.UID == "" {
			continue
		}
		why, ok := restored(live.Store)
		if !ok {
			if why, ok = otherMembers(live.Store, db.Store); !ok {
				continue
			}
		}
		f := analyze.Finding{
			Subject: "etcd revision", Severity: report.Medium, Confidence: report.Probable,
			Message: fmt.Sprintf("the database in use is at revision %d, that of %s was at %d: a restore went back without a revision bump (%s)",
				live.Store.MaxRev, db.Dir.Path, db.Store.MaxRev, why),
			Evidence: []analyze.Evidence{analyze.See(live.Ref(), fmt.Sprintf("revision %d", live.Store.MaxRev)), analyze.Expect(db.Ref(), fmt.Sprintf("revision %d", db.Store.MaxRev))},
		}
		if last, ok := o.LastWrite(); ok {
			f.Evidence = append(f.Evidence, analyze.Context(db.AtKey(last.Key, last.Rev), "last write "+last.Time.Format(time.RFC3339)))
		}
		p.Report(f)
		return
	}
}

// otherMembers reports two databases of one Kubernetes cluster whose member lists
// have nothing in common: the newer list was made by a restore.
func otherMembers(a, b *etcdstore.Store) (string, bool) {
	if len(a.Members) == 0 || len(b.Members) == 0 {
		return "", false
	}
	for _, m := range a.Members {
		for _, o := range b.Members {
			if m.ID == o.ID {
				return "", false
			}
		}
	}
	return "the member list is another", true
}
