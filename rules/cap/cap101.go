package cap

import (
	"fmt"
	"slices"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcdctl"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP101", Name: "etcd-nospace-alarm", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical},
	Doc: analyze.Doc{
		Title: "NOSPACE alarm raised: cluster writes are refused",
		Why: "Under the alarm etcd refuses puts, transactions with puts and lease grants; reads and pure deletes pass. kube-apiserver cannot compact " +
			"either, because its compactor writes a key first, so nothing heals by itself. Disarming before space is made brings the alarm back at the next write.",
		Fix:   "In this order: snapshot, stop the writer, delete what needs no update, compact, defragment each member, list alarms, disarm.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/maintenance/#space-quota", "https://github.com/kubernetes/kubernetes/issues/94029"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{etcddb.OnNode, etcddb.QuotaOf, objects.Cluster, objects.OnNode, etcdctl.OnNode, logs.OnNode},
	Run:   nospace,
})

func nospace(p *analyze.Pass) error {
	ms := members(p)
	seen := map[uint64]bool{}
	stores := 0
	for _, m := range ms {
		stores++
		for _, a := range m.s.Alarms {
			if a.Type != "NOSPACE" || seen[a.MemberID] || foreign(m.s, a.MemberID) {
				continue
			}
			seen[a.MemberID] = true
			reportNospace(p, m, a)
		}
	}
	saved, listed := alarmLists(p)
	for _, a := range saved {
		if !seen[a.ID] {
			seen[a.ID] = true
			p.Report(analyze.Finding{
				Subject: "member " + etcdstore.MemberID(a.ID), Severity: report.Critical,
				Message:  fmt.Sprintf("the saved alarm list shows NOSPACE for member %s: etcd refuses writes", etcdstore.MemberID(a.ID)),
				Evidence: []analyze.Evidence{analyze.See(a.Ref, a.Text)}, Fix: nospaceFix(""),
			})
		}
	}
	if len(seen) > 0 || stores > 0 || listed {
		return nil
	}
	return nospaceLogs(p)
}

// foreign reports an alarm of a member that the member list does not know: what a
// restore brought along, which is RST104's.
func foreign(s *etcdstore.Store, id uint64) bool {
	return id != 0 && len(s.Members) > 0 && !slices.ContainsFunc(s.Members, func(m etcdstore.Member) bool { return m.ID == id })
}

func reportNospace(p *analyze.Pass, m member, a etcdstore.Alarm) {
	key := "alarm/" + etcdstore.MemberID(a.MemberID)
	filler, share := "", ""
	if types := byBytes(m.s.Types); len(types) > 0 {
		filler = types[0].Type
		share = fmt.Sprintf("; %s fills most of it, %.0f %% of all record bytes", filler, 100*ratio(types[0].RecBytes, m.s.RecBytes))
	}
	f := analyze.Finding{
		Node: m.node, Subject: "member " + etcdstore.MemberID(a.MemberID), Severity: report.Critical,
		Message: fmt.Sprintf("NOSPACE alarm of member %s: etcd refuses every write; database of %d bytes, quota %s; %s%s",
			etcdstore.MemberID(a.MemberID), m.s.Pages.DBSize, m.quota, m.s.Room(), share),
		Evidence: []analyze.Evidence{analyze.See(m.db.AtKey(key, 0), "alarm NOSPACE, "+m.sizes())},
		Fix:      nospaceFix(filler),
	}
	if !m.quota.Ref.IsZero() {
		f.Evidence = append(f.Evidence, analyze.Context(m.quota.Ref, m.quota.Text))
	}
	for i, t := range byBytes(m.s.Types) {
		if i == 3 {
			break
		}
		f.Evidence = append(f.Evidence, analyze.Context(m.db.AtKey(t.Largest.Key, t.Largest.Rev.Main),
			fmt.Sprintf("%s: %d live objects, %d bytes live, %d bytes history", t.Type, t.Live, t.LiveRec, t.History())))
	}
	var first time.Time
	for _, n := range p.Nodes() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		if hit, ok := l.First(signature.Etcd, "E01"); ok {
			f.Evidence = append(f.Evidence, analyze.Context(hit.Ref(), hit.Excerpt()))
			if first.IsZero() || hit.Time.Before(first) {
				first = hit.Time
			}
		}
	}
	f.ObservedAt = first
	p.Report(f)
}

// alarmLists gathers saved NOSPACE rows; listed is true when an alarm list was
// saved at all.
func alarmLists(p *analyze.Pass) (rows []etcdctl.Alarm, listed bool) {
	for _, n := range p.All() {
		s, err := etcdctl.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		listed = listed || len(s.NoAlarms) > 0 || len(s.Alarms) > 0
		for _, a := range s.Alarms {
			if a.Type == "NOSPACE" {
				rows = append(rows, a)
			}
		}
	}
	return rows, listed
}

// quietAfter is how long a log without refused writes shows that they are no
// longer refused: components renew leases every few seconds.
const quietAfter = 10 * time.Minute

// refused is the newest line that shows the alarm: etcd's own, or a write that
// a client of etcd was refused for it.
func refused(l *logs.Node) (logs.At, bool) {
	hits := l.Hits(signature.Etcd, "E01", "E03")
	for _, h := range l.Hits(signature.Etcd, "E103") {
		if h.Value("alarm") == "NOSPACE" {
			hits = append(hits, h)
		}
	}
	for _, h := range l.Hits(0, "E02") {
		// Writes go on all the time: a log that goes on without a refusal shows that the alarm is gone.
		if h.Stream.Result.Last.Sub(h.Time) <= quietAfter {
			hits = append(hits, h)
		}
	}
	if len(hits) == 0 {
		return logs.At{}, false
	}
	logs.SortHits(hits)
	return hits[len(hits)-1], true
}

// nospaceLogs answers from logs alone: writes were refused, and nothing shows
// that the alarm was cleared since.
func nospaceLogs(p *analyze.Pass) error {
	any := false
	for _, n := range p.Nodes() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		any = any || l.Has(signature.Etcd)
		hit, ok := refused(l)
		if !ok {
			continue
		}
		p.Report(analyze.Finding{
			Node: n, Subject: "etcd on " + n.Name, Severity: report.Critical, Confidence: report.Probable, ObservedAt: hit.Time,
			Message:  "the log shows that etcd refuses writes (NOSPACE alarm); no database was given to see whether it is still set",
			Evidence: []analyze.Evidence{hit.See()}, Fix: nospaceFix(""),
		})
	}
	if !any {
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "no etcd database, alarm list or etcd log")
	}
	return nil
}
