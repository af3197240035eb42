package rst

import (
	"cmp"
	"fmt"
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "RST104", Name: "snapshot-carries-alarm", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "Snapshot carries an alarm or is over quota",
		Why: "A restore keeps the alarm, under the id of the member that raised it, and the free pages. The restored cluster refuses writes from its first second, with a larger quota too, " +
			"until the alarm is disarmed.",
		Fix:   "Before: take another snapshot after the alarm is cleared. After a restore: compact, defragment, list the alarms, and if no row says CORRUPT disarm.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/maintenance/#space-quota"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{etcddb.OnNode},
	Wants: []analyze.Need{etcddb.QuotaOf},
	Run:   carriesAlarm,
})

func carriesAlarm(p *analyze.Pass) error {
	fix := []report.Step{
		{Text: "Delete what filled it and needs no update first: plain deletes pass under the alarm, namespaces do not go."},
		{Text: "Compact once, to the revision that endpoint status shows.", Command: "etcdctl compact REVISION"},
		{Text: "Defragment each member, the leader last.", Command: "etcdctl --command-timeout=10m defrag"},
		{Text: "List the alarms. With a CORRUPT row stop: the odd member must be rebuilt first.", Command: "etcdctl alarm list"},
		{Text: "When every row says NOSPACE, disarm, and check that a write works.", Command: "etcdctl alarm disarm"},
	}
	for _, n := range p.All() {
		dbs, err := etcddb.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, db := range dbs {
			if db.Store == nil {
				continue
			}
			s := db.Store
			for _, a := range s.Alarms {
				stranger := a.MemberID != 0 && len(s.Members) > 0 && !slices.ContainsFunc(s.Members, func(m etcdstore.Member) bool { return m.ID == a.MemberID })
				sev := report.High
				msg := fmt.Sprintf("the snapshot carries a %s alarm of member %s: a cluster restored from it refuses writes", a.Type, etcdstore.MemberID(a.MemberID))
				switch {
				case db == objects.Choose(dbs) && stranger && !db.Saved():
					sev = report.Critical
					msg = fmt.Sprintf("a %s alarm of member %s, which is no member here, came with a restore: etcd refuses writes until it is disarmed", a.Type, etcdstore.MemberID(a.MemberID))
				case !db.Saved():
					continue
				}
				steps := fix[3:] // nothing to make room for
				if a.Type == "NOSPACE" {
					msg += fmt.Sprintf("; %d bytes: %s%s", s.Pages.DBSize, s.Room(), filler(s))
					steps = fix
				}
				p.Report(analyze.Finding{Node: n, Subject: "alarm of member " + etcdstore.MemberID(a.MemberID), Severity: sev, Message: msg, Fix: steps,
					Evidence: []analyze.Evidence{analyze.See(db.AtKey("alarm/"+etcdstore.MemberID(a.MemberID), 0), "alarm "+a.Type)}})
			}
			if q := quota(p, n); db.Saved() && q != nil && s.Pages.DBSize >= q.Bytes && s.PagesCounted() {
				f := analyze.Finding{Node: n, Subject: "snapshot size", Severity: report.High,
					Message:  fmt.Sprintf("the snapshot's database of %d bytes is not below the quota of %s: restored, it raises NOSPACE at the first write", s.Pages.DBSize, q),
					Evidence: []analyze.Evidence{analyze.See(db.Ref(), fmt.Sprintf("%d bytes", s.Pages.DBSize))}}
				if !q.Ref.IsZero() {
					f.Evidence = append(f.Evidence, analyze.Expect(q.Ref, q.Text))
				}
				p.Report(f)
			}
		}
	}
	return nil
}

// filler names the type that holds most bytes of a store, over all revisions.
func filler(s *etcdstore.Store) string {
	if len(s.Types) == 0 {
		return ""
	}
	t := slices.MaxFunc(s.Types, func(a, b etcdstore.TypeStats) int { return cmp.Compare(a.RecBytes, b.RecBytes) })
	return fmt.Sprintf("; %s fills most of it", t.Type)
}

// quota is a node's quota, or the first that any node says; nil when switched
// off.
func quota(p *analyze.Pass, n *bundle.Node) *etcddb.Quota {
	var first *etcddb.Quota
	for _, o := range append([]*bundle.Node{n}, p.Nodes()...) {
		q, err := etcddb.QuotaOf.Try(p, o)
		if err != nil {
			continue
		}
		if first == nil || first.Assumed {
			first = q
		}
	}
	if first == nil || first.Off {
		return nil
	}
	return first
}
