package qrm

import (
	"fmt"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
	"coldplane/report"
)

const (
	askedInVain = 3               // elections without a leader: one or two happen at every start
	stillAsking = 2 * time.Minute // the log ends within this of the last election
)

// leaderless reports what an etcd log shows without any member list: the member
// goes on asking for votes and no leader comes of it. A log that ends with a
// leader, on whatever node, contradicts it. looked is whether there was a log.
func leaderless(p *analyze.Pass) (looked bool) {
	var f *analyze.Finding
	for _, n := range p.All() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil || !l.Has(signature.Etcd) {
			continue
		}
		looked = true
		first, last, times := inVain(l)
		if times < askedInVain {
			if _, ok := l.Last(signature.Etcd, "R01", "R02", "R03"); ok {
				return true
			}
			continue
		}
		if f == nil {
			f = &analyze.Finding{Subject: "etcd quorum", Severity: report.Critical, Confidence: report.Probable, ObservedAt: first.Time,
				Message: fmt.Sprintf("etcd on %s has had no leader since %s: it asked for votes %d times and no majority answered; nothing can be written", nodeLabel(n), clock(first.Time), times),
				Fix: []report.Step{
					{Text: "Look at the machines of the other members first: power, network, port 2380. Two of three that answer are enough, and then nothing else is needed."},
					{Text: "Before anything that cannot be undone, copy this member's data directory to another machine."},
					{Text: "Only when a majority is gone for good: restore this data as a single member and join the others anew. Do not run member remove without quorum."},
				}}
		}
		f.Evidence = append(f.Evidence, last.See())
		for _, h := range []string{"E13", "E10", "E39"} {
			if x, ok := l.Last(signature.Etcd, h); ok {
				f.Evidence = append(f.Evidence, analyze.Context(x.Ref(), x.Excerpt()))
			}
		}
	}
	if f == nil && !looked {
		f = noLeader(p)
	}
	if f != nil {
		looked = true
		f.Evidence[0].Role = report.RoleSubject
		p.Report(*f)
	}
	return looked
}

// noLeader takes the API servers' word, when there is no log of etcd: their
// store answered that it has no leader, up to the end of the log.
func noLeader(p *analyze.Pass) *analyze.Finding {
	for _, n := range p.All() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		hits := l.Hits(signature.APIServer, "E40")
		if len(hits) < askedInVain {
			continue
		}
		last := hits[len(hits)-1]
		if last.Stream.Result.Last.Sub(last.Time) > stillAsking {
			continue
		}
		return &analyze.Finding{Subject: "etcd quorum", Severity: report.High, Confidence: report.Probable, ObservedAt: hits[0].Time,
			Message:  fmt.Sprintf("the API server on %s was told %d times, first %s, that etcd has no leader: nothing can be written", nodeLabel(n), len(hits), clock(hits[0].Time)),
			Evidence: []analyze.Evidence{last.See()},
			Fix: []report.Step{
				{Text: "See which etcd members run and can reach each other; collect their logs.", Command: "crictl ps -a --name etcd; crictl logs $(crictl ps -a --name etcd -q | head -1)"},
				{Text: "Bring back machines until a majority of the members runs; do nothing that cannot be undone before that."},
			}}
	}
	return nil
}

// inVain counts the elections since the last leader up to the end of the log.
func inVain(l *logs.Node) (first, last logs.At, times int) {
	for _, h := range l.Hits(signature.Etcd, "R01", "R02", "R03", "R05", "E52") {
		if h.Stat.Sig.ID != "R05" {
			times = 0
			continue
		}
		if times == 0 {
			first = h
		}
		times++
		last = h
	}
	if times > 0 && last.Stream.Result.Last.Sub(last.Time) > stillAsking {
		return first, last, 0
	}
	return first, last, times
}

func nodeLabel(n *bundle.Node) string {
	if n.Name == "" {
		return "this node"
	}
	return n.Name
}
