package qrm

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcdctl"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM110", Name: "etcd-corrupt-alarm-or-hash-mismatch", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical},
	Doc: analyze.Doc{
		Title: "etcd raised the CORRUPT alarm or found members with different hashes",
		Why: "etcd compared hashes of its members and they differed. While the CORRUPT alarm is set every request is refused. Member id 0 in the alarm means that no majority had the same hash. " +
			"A message about different compact revisions only says that nothing could be compared and is no corruption.",
		Fix: "Save a snapshot of every member separately. Find the odd member by the majority's hash at a common revision, remove it, empty its directory and let it join anew; without a majority restore the chosen copy everywhere. " +
			"Disarm the alarm last, when the member has been rebuilt.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/data_corruption/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{etcddb.OnNode, etcdctl.OnNode, logs.OnNode},
	Run:   corruptAlarm,
})

func corruptAlarm(p *analyze.Pass) error {
	looked := false
	var evidence []analyze.Evidence
	who := ""
	mark := func(id uint64, e analyze.Evidence) {
		evidence = append(evidence, e)
		who = "member " + quorum.ID(id)
		if id == 0 {
			who = "no single member (id 0: no majority)"
		}
	}
	for _, n := range p.All() {
		if dbs, err := etcddb.OnNode.Try(p, n); err == nil {
			if d := dbs.Live(); d != nil {
				looked = true
				for _, a := range d.Store.Alarms {
					if a.Type == "CORRUPT" {
						mark(a.MemberID, analyze.Context(d.AtKey("alarm", 0), "CORRUPT of "+quorum.ID(a.MemberID)))
					}
				}
			}
		}
		if s, err := etcdctl.OnNode.Try(p, n); err == nil {
			looked = looked || len(s.Alarms)+len(s.NoAlarms) > 0
			for _, a := range s.Alarms {
				if a.Type == "CORRUPT" {
					mark(a.ID, analyze.Context(a.Ref, a.Text))
				}
			}
		}
	}
	var hits []logs.At
	for _, n := range p.All() {
		if l, err := logs.OnNode.Try(p, n); err == nil {
			looked = looked || l.Has(signature.Etcd)
			hits = append(hits, l.Hits(signature.Etcd, "E36", "E37", "E92")...)
			hits = append(hits, l.Hits(0, "E38")...)
			for _, h := range l.Hits(signature.Etcd, "E103") {
				if h.Value("alarm") == "CORRUPT" {
					hits = append(hits, h)
				}
			}
		}
	}
	logs.SortHits(hits)
	msg := ""
	switch {
	case len(evidence) > 0:
		msg = "the CORRUPT alarm is set for " + who + ": every request is refused"
	case len(hits) > 0:
		msg = fmt.Sprintf("etcd found members with different data: %s", lower(hits[len(hits)-1].Stat.Sig.Means))
	case !looked:
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "no database of a member, no alarm list and no etcd log")
		return nil
	default:
		return nil
	}
	for i := len(hits) - 1; i >= 0 && len(evidence) < 6; i-- {
		evidence = append(evidence, analyze.Context(hits[i].Ref(), hits[i].Excerpt()))
	}
	evidence[0].Role = report.RoleSubject
	p.Report(analyze.Finding{Subject: "etcd data", Severity: report.Critical, Message: msg, Evidence: evidence})
	return nil
}

func lower(s string) string {
	if s == "" || s[0] < 'A' || s[0] > 'Z' {
		return s
	}
	return string(s[0]+'a'-'A') + s[1:]
}
