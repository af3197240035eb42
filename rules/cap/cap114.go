package cap

import (
	"fmt"
	"slices"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP114", Name: "etcd-growth-forecast", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Growth forecast",
		Why:   "Two databases of one cluster at different times give the rate at which live data grows, and with the quota the day on which writes stop.",
		Fix:   "Find what grows (CAP105) and stop it before that day; the quota is the last resort.",
		Links: []string{"https://github.com/etcd-io/etcd/tree/main/contrib/mixin"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "high", Default: 7, Unit: "days", Source: "a week to act"},
		{Name: "medium", Default: 30, Unit: "days", Source: "a month"},
		{Name: "apart", Default: 24, Unit: "hours", Source: "closer points measure a deployment, not growth"},
	},
	Needs: []analyze.Need{etcddb.OnNode},
	Wants: []analyze.Need{etcddb.QuotaOf},
	Run:   forecast,
})

// A point is one database of the cluster at one time.
type point struct {
	at   time.Time
	live int64
	ref  bundle.Ref
	uid  string
	q    *etcddb.Quota
}

func forecast(p *analyze.Pass) error {
	var pts []point
	for _, n := range p.All() {
		dbs, err := etcddb.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, db := range dbs {
			if db.Store == nil || db.Store.Lossy || db.Store.Live == 0 {
				continue
			}
			s := objects.New(db)
			last, ok := s.LastWrite()
			ns, err := s.Namespace("kube-system")
			if !ok || err != nil {
				continue
			}
			pts = append(pts, point{last.Time, db.Store.LiveRec, db.Ref(), string(ns.Value.UID), quotaFor(p, n)})
		}
	}
	if len(pts) < 2 {
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "a second database of the same cluster, a day or more apart")
		return nil
	}
	slices.SortStableFunc(pts, func(a, b point) int { return a.at.Compare(b.at) })
	a, b := pts[0], pts[len(pts)-1]
	if a.uid != b.uid || b.at.Sub(a.at).Hours() < p.Param("apart") {
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "the databases are of different clusters or less than a day apart")
		return nil
	}
	if b.live <= a.live || b.q.Off {
		return nil
	}
	perDay := float64(b.live-a.live) / b.at.Sub(a.at).Hours() * 24
	days := float64(b.q.Bytes-b.live) / perDay
	var sev report.Severity
	switch {
	case days < p.Param("high"):
		sev = report.High
	case days < p.Param("medium"):
		sev = report.Medium
	default:
		return nil
	}
	p.Report(analyze.Finding{
		Subject: "database growth", Severity: sev, Confidence: report.Probable,
		Message: fmt.Sprintf("live data grew from %d to %d bytes between %s and %s, %s a day: the quota of %s is reached in %.0f days",
			a.live, b.live, a.at.Format(time.RFC3339), b.at.Format(time.RFC3339), size(int64(perDay)), b.q, max(days, 0)),
		Evidence: []analyze.Evidence{analyze.See(b.ref, fmt.Sprintf("%d bytes live", b.live)), analyze.Expect(a.ref, fmt.Sprintf("%d bytes live", a.live))},
	})
	return nil
}
