package qrm

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM105", Name: "etcd-leader-churn", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium, report.Info},
	Doc: analyze.Doc{
		Title: "etcd changes its leader again and again",
		Why: "Every change of leader stops writes for about a second and ends requests that were under way; controller-manager and scheduler may lose " +
			"their leases and restart. Healthy members keep one leader for weeks. The cause is almost always a slow disk or the network under one member.",
		Fix: "Look at what stands right before each change: slow syncs or late heartbeats mean the disk or CPU of the old leader (QRM106), broken " +
			"streams mean the network (QRM107). Change election timeouts only when neither can be cured.",
		Links: []string{"https://etcd.io/docs/v3.6/tuning/", "https://github.com/etcd-io/etcd/issues/13169"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "burst", Default: 4, Unit: "changes in 15 minutes", Source: "etcd mixin, etcdHighNumberOfLeaderChanges"},
		{Name: "rate", Default: 2, Unit: "changes per hour"},
	},
	Wants: []analyze.Need{logs.OnNode, etcdwal.OnNode},
	Run:   leaderChurn,
})

// A change is one election as all members' logs together show it.
type change struct {
	term   string
	leader string
	at     logs.At
	before *logs.At // a sign of disk or network right before it
}

func leaderChurn(p *analyze.Pass) error {
	byTerm := map[string]*change{}
	var excuses, signs []logs.At
	var from, to time.Time
	any := false
	for _, n := range p.All() {
		ln, err := logs.OnNode.Try(p, n)
		if err != nil || !ln.Has(signature.Etcd) {
			continue
		}
		any = true
		for _, h := range ln.Hits(signature.Etcd, "R01", "R02", "R03") {
			t := h.Value("term")
			if t == "" || h.Time.IsZero() {
				continue
			}
			if c := byTerm[t]; c == nil || h.Time.Before(c.at.Time) {
				byTerm[t] = &change{term: t, leader: h.Value("leader"), at: h}
			}
		}
		excuses = append(excuses, ln.Hits(signature.Etcd, "E52", "E68", "E95", "E99")...)
		signs = append(signs, ln.Hits(signature.Etcd, "E05", "E06", "E12", "E13")...)
		for _, s := range ln.Of(signature.Etcd) {
			if f := s.Result.First; !f.IsZero() && (from.IsZero() || f.Before(from)) {
				from = f
			}
			if s.Result.Last.After(to) {
				to = s.Result.Last
			}
		}
	}
	if !any {
		termJump(p)
		p.Unknown(bundle.KindLogs, nil, bundle.NotCollected, "no etcd log")
		return nil
	}
	var changes []*change
	for _, c := range byTerm {
		// A member that starts or stops moves the leader; that is no churn.
		if !slices.ContainsFunc(excuses, func(x logs.At) bool { return between(c.at.Time.Sub(x.Time), -2*time.Second, 30*time.Second) }) {
			changes = append(changes, c)
		}
	}
	slices.SortFunc(changes, func(a, b *change) int { return cmp.Or(a.at.Time.Compare(b.at.Time), cmp.Compare(a.term, b.term)) })
	for _, c := range changes {
		for i := range signs {
			if between(c.at.Time.Sub(signs[i].Time), 0, 5*time.Second) {
				c.before = &signs[i]
			}
		}
	}
	burst, start := 0, 0
	for i := range changes {
		n := 0
		for _, c := range changes[i:] {
			if c.at.Time.Sub(changes[i].at.Time) <= 15*time.Minute {
				n++
			}
		}
		if n > burst {
			burst, start = n, i
		}
	}
	hours := max(to.Sub(from).Hours(), 1)
	switch {
	case burst >= int(p.Param("burst")):
		p.Report(churn(report.High, fmt.Sprintf("etcd changed its leader %d times within 15 minutes from %s", burst, clock(changes[start].at.Time)), changes[start:start+burst]))
	case len(changes) >= 3 && float64(len(changes))/hours >= p.Param("rate"):
		p.Report(churn(report.Medium, fmt.Sprintf("etcd changed its leader %d times in %.1f hours of logs", len(changes), hours), changes))
	default:
		termJump(p)
	}
	return nil
}

// termJump looks where the members' write-ahead logs skip terms: elections that
// brought no leader who wrote anything. The records carry no times, so it only
// hints.
func termJump(p *analyze.Pass) {
	var worst uint64
	var at *etcdwal.Dir
	var text string
	for _, n := range p.All() {
		dirs, err := etcdwal.OnNode.Try(p, n)
		if err != nil || dirs.Live() == nil || dirs.Live().Log == nil {
			continue
		}
		d := dirs.Live()
		see := func(from, to, index uint64) {
			if to > from+1 && to-from-1 > worst {
				worst, at = to-from-1, d
				text = fmt.Sprintf("from term %d to %d at entry %d", from, to, index)
			}
		}
		spans := d.Log.Terms.Items
		for i := 1; i < len(spans); i++ {
			see(spans[i-1].Term, spans[i].Term, spans[i].FirstIndex)
		}
		if len(spans) > 0 {
			see(spans[len(spans)-1].Term, d.Log.State.Term, d.Log.LastIndex)
		}
	}
	if at == nil || float64(worst) < p.Param("burst") {
		return
	}
	p.Report(analyze.Finding{Subject: "etcd terms", Severity: report.Info,
		Message:  fmt.Sprintf("the write-ahead log in %s goes %s: %d elections in a row gave no leader that wrote anything; the log holds no times, etcd's own log tells when", at.Path, text, worst),
		Evidence: []analyze.Evidence{analyze.See(at.LogRef(), text)}})
}

func churn(sev report.Severity, msg string, changes []*change) analyze.Finding {
	disk, net := 0, 0
	var ev []analyze.Evidence
	for i, c := range changes {
		if c.before != nil {
			switch c.before.Stat.Sig.ID {
			case "E05", "E06":
				disk++
			default:
				net++
			}
		}
		if i < 4 || i == len(changes)-1 {
			ev = append(ev, analyze.Context(c.at.Ref(), c.at.Excerpt()))
			if c.before != nil {
				ev = append(ev, analyze.Context(c.before.Ref(), c.before.Excerpt()))
			}
		}
	}
	ev[0].Role = report.RoleSubject
	if disk > 0 {
		msg += fmt.Sprintf("; before %d of them a sync was slow or heartbeats late", disk)
	}
	if net > 0 {
		msg += fmt.Sprintf("; before %d of them a peer was lost", net)
	}
	return analyze.Finding{Subject: "etcd leader", Severity: sev, Message: msg, Evidence: ev, ObservedAt: changes[0].at.Time}
}

func between(d, from, to time.Duration) bool { return d >= from && d <= to }

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
