package nod

import (
	"fmt"
	"math"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD103", Name: "clock-wrong", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "The node's clock is not synchronised, or was stepped",
		Why: "Certificates are judged by the local clock: one that is ahead makes valid certificates expire, one that is behind makes fresh ones not yet " +
			"valid. Leases, tokens and the order of events between nodes need clocks that agree within a second.",
		Fix:   "Repair the time service (chronyc sources, timedatectl timesync-status), step the clock once while etcd is stopped on that node, then let it slew.",
		Links: []string{"https://etcd.io/docs/v3.6/tuning/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "critical", Default: 300, Unit: "seconds"},
		{Name: "high", Default: 1, Unit: "seconds between etcd members", Source: "etcd server/etcdserver/api/rafthttp/probing_status.go"},
		{Name: "step", Default: 30, Unit: "seconds the clock went back"},
	},
	Wants: []analyze.Need{host.Clock, logs.OnNode},
	Run:   clockWrong,
})

func clockWrong(p *analyze.Pass) error {
	looked := false
	if c, err := host.Clock.Try(p, p.Node()); err == nil && (c.Synchronized != nil || c.OffsetSeconds != nil) {
		looked = true
		switch {
		case c.OffsetSeconds != nil && math.Abs(*c.OffsetSeconds) >= p.Param("high"):
			sev := report.High
			if math.Abs(*c.OffsetSeconds) >= p.Param("critical") {
				sev = report.Critical
			}
			p.Report(analyze.Finding{Subject: "clock offset", Severity: sev, Message: fmt.Sprintf("the clock is %.1f s off its source %s", *c.OffsetSeconds, c.Source),
				Evidence: []analyze.Evidence{analyze.See(c.Ref, fmt.Sprintf("offset %.3f s", *c.OffsetSeconds))}})
		case c.Synchronized != nil && !*c.Synchronized:
			p.Report(analyze.Finding{Subject: "time service", Severity: report.Medium, Message: "the clock is not synchronised with any source",
				Evidence: []analyze.Evidence{analyze.See(c.Ref, "synchronized: no")}})
		}
	}
	if n, err := logs.OnNode.Try(p, p.Node()); err == nil {
		looked = true
		drift(p, n)
		stepped(p, n)
	}
	if !looked {
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "no state of the time service and no logs")
	}
	return nil
}

// drift reports peers whose clock etcd found to differ.
func drift(p *analyze.Pass, n *logs.Node) {
	hits := n.Hits(signature.Etcd, "E11")
	worst := map[string]logs.At{}
	var order []string
	for _, at := range hits {
		id := at.Value("remote-peer-id")
		if old, ok := worst[id]; !ok {
			order = append(order, id)
			worst[id] = at
		} else if driftOf(at) > driftOf(old) {
			worst[id] = at
		}
	}
	for _, id := range order {
		at := worst[id]
		d := driftOf(at)
		sev := report.High
		if d.Seconds() >= p.Param("critical") {
			sev = report.Critical
		}
		if d.Seconds() < p.Param("high") {
			continue
		}
		p.Report(analyze.Finding{Subject: "clock of peer " + id, Severity: sev, Confidence: report.Probable,
			Message:  fmt.Sprintf("the clocks of this member and of peer %s differ by %s", id, d),
			Evidence: []analyze.Evidence{at.See()}, ObservedAt: at.Time})
	}
}

// driftOf is the difference without half of the round trip it includes.
func driftOf(at logs.At) time.Duration {
	d, err := time.ParseDuration(at.Value("clock-drift"))
	if err != nil {
		return 0
	}
	if rtt, err := time.ParseDuration(at.Value("rtt")); err == nil {
		d = d.Abs() - rtt/2
	}
	return d.Abs()
}

// stepped reports clocks that went back within a log of one program.
func stepped(p *analyze.Pass, n *logs.Node) {
	for _, s := range n.Of(signature.Etcd | signature.Kubelet | signature.APIServer) {
		if s.Result.ZoneAssumed {
			continue // summer time looks the same
		}
		for _, b := range s.Result.Back {
			// Whole quarter hours are a change of zone, not of the clock.
			if b.By.Seconds() < p.Param("step") || b.By%(15*time.Minute) == 0 {
				continue
			}
			sev := report.Medium
			if b.By.Seconds() >= p.Param("critical") {
				sev = report.High
			}
			ref := s.Ref(b.Line, 0)
			p.Report(analyze.Finding{Subject: "clock step", Severity: sev, Confidence: report.Possible,
				Message:  fmt.Sprintf("the clock went back by %s after %s", b.By.Round(time.Second), clock(b.At)),
				Evidence: []analyze.Evidence{analyze.See(ref, "earlier than the line before")}, ObservedAt: b.At})
			return
		}
	}
	if at, ok := n.Last(0, "X14", "X29"); ok {
		p.Report(analyze.Finding{Subject: "clock step", Severity: report.Medium, Confidence: report.Probable,
			Message: "the clock was stepped" + when(at.Time), Evidence: []analyze.Evidence{at.See()}, ObservedAt: at.Time})
	}
}
