package qrm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM107", Name: "etcd-peer-connection-lost", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "An etcd member cannot reach its peers",
		Why: "Members that cannot reach each other do not vote for each other. A member cut off from the majority serves no writes and no consistent " +
			"reads; when too few remain connected, the whole cluster stops.",
		Fix: "Check both directions between the two hosts on port 2380 (firewall, routes, MTU), and whether the other member runs at all. An error about " +
			"certificates is QRM108.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/failures/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "down", Default: 5, Unit: "minutes", Source: "longer than a restart of the peer"},
		{Name: "flaps", Default: 5, Unit: "losses per hour"},
	},
	Needs: []analyze.Need{logs.OnNode},
	Wants: []analyze.Need{quorum.Joined},
	Run:   peerLost,
})

// A peer is the view of one other member from one log.
type peer struct {
	id         string
	lost       *logs.At // the loss that was not followed by a return
	losses     int      // within one hour at most
	lastError  string
	unhealthy  *logs.At // newest complaint of the prober
	unhealthyN int
	first      *logs.At
}

func peerLost(p *analyze.Pass) error {
	n, _ := logs.OnNode.In(p)
	if !n.Has(signature.Etcd) {
		p.Unknown(bundle.KindLogs, p.Node(), bundle.NotCollected, "no etcd log")
		return nil
	}
	streams := n.Of(signature.Etcd)
	var end time.Time
	for _, s := range streams {
		if s.Result.Last.After(end) {
			end = s.Result.Last
		}
	}
	if end.IsZero() { // a journal of several programs
		end, _ = n.End()
	}
	peers := view(n)
	down := time.Duration(p.Param("down") * float64(time.Minute))
	var cut []*peer
	for _, q := range peers {
		if q.gone(end, down) {
			cut = append(cut, q)
		}
	}
	size := max(len(peers)+1, voters(p, peers)) // a peer in good health is never spoken of
	for _, q := range peers {
		switch {
		case slices.Contains(cut, q):
			sev, more := report.High, ""
			if connected := size - len(cut); connected < size/2+1 {
				sev, more = report.Critical, fmt.Sprintf("; %d of %d members are connected, %d are needed", connected, size, size/2+1)
			}
			at := q.lost
			if at == nil {
				at = q.first
			}
			msg := fmt.Sprintf("peer %s has been unreachable since %s%s%s", q.id, clock(at.Time), reason(q.lastError), more)
			if silent(p, q.id) {
				msg += "; it is silent to all that could be asked: look first whether its machine and its etcd run at all"
			}
			ev := []analyze.Evidence{at.See()}
			if q.unhealthy != nil {
				ev = append(ev, analyze.Context(q.unhealthy.Ref(), q.unhealthy.Excerpt()))
			}
			p.Report(analyze.Finding{Subject: "peer " + q.id, Severity: sev, Confidence: report.Probable, Message: msg, Evidence: ev, ObservedAt: at.Time})
		case q.losses >= int(p.Param("flaps")):
			p.Report(analyze.Finding{Subject: "peer " + q.id, Severity: report.Medium, Confidence: report.Probable,
				Message:  fmt.Sprintf("peer %s was lost %d times within an hour%s", q.id, q.losses, reason(q.lastError)),
				Evidence: []analyze.Evidence{q.first.See()}, ObservedAt: q.first.Time})
		}
	}
	return nil
}

// voters counts the voters of the cluster the peers belong to; 0 when it is not known.
func voters(p *analyze.Pass, peers []*peer) int {
	v, err := quorum.Joined.Try(p, nil)
	if err != nil {
		return 0
	}
	for _, c := range v.Clusters {
		for _, q := range peers {
			if id, err := strconv.ParseUint(q.id, 16, 64); err == nil && c.Member(id) != nil {
				return len(c.Voters())
			}
		}
	}
	return 0
}

// silent reports whether nothing in the evidence speaks for a member: no sign
// of life, and no evidence from its own node. That is a lost member rather than a
// lost connection.
func silent(p *analyze.Pass, id string) bool {
	v, err := quorum.Joined.Try(p, nil)
	n, perr := strconv.ParseUint(id, 16, 64)
	if err != nil || perr != nil {
		return false
	}
	for _, c := range v.Clusters {
		if m := c.Member(n); m != nil {
			return m.Life == quorum.Silent && m.Home() == nil
		}
	}
	return false
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	if c := signature.ConnError(text); c != signature.ConnUnknown {
		return " (" + string(c) + ")"
	}
	return " (" + strings.ToValidUTF8(text[:min(len(text), 120)], "") + ")"
}

// gone reports whether the peer is lost at the end of the log, and has been for
// longer than a restart takes.
func (q *peer) gone(end time.Time, d time.Duration) bool {
	if q.lost != nil {
		return end.Sub(q.lost.Time) > d
	}
	// A peer that never answered is only complained about, every five seconds.
	return q.unhealthy != nil && q.first != nil && q.unhealthyN >= 20 && end.Sub(q.unhealthy.Time) < time.Minute && q.unhealthy.Time.Sub(q.first.Time) > d
}

// view gathers what a member's log says of each peer, in order. Peers that were
// removed are left out.
func view(n *logs.Node) []*peer {
	var out []*peer
	times := map[*peer][]time.Time{}
	get := func(id string) *peer {
		for _, q := range out {
			if q.id == id {
				return q
			}
		}
		q := &peer{id: id}
		out = append(out, q)
		return q
	}
	for _, at := range n.Hits(signature.Etcd, "E10", "E12", "E13", "E51", "E52", "E80") {
		if at.Time.IsZero() {
			continue
		}
		id := at.Value("peer-id") + at.Value("remote-peer-id")
		switch at.Stat.Sig.ID {
		case "E52": // a new process starts with no opinion
			for _, q := range out {
				q.lost, q.unhealthy, q.unhealthyN, q.first = nil, nil, 0, nil
			}
			continue
		case "E80":
			gone := at.Value("removed-remote-peer-id")
			out = slices.DeleteFunc(out, func(q *peer) bool { return q.id == gone })
			continue
		}
		if id == "" {
			continue
		}
		q := get(id)
		switch at.Stat.Sig.ID {
		case "E10":
			q.unhealthy = &at
			q.unhealthyN++
			if e := at.Value("error"); e != "" {
				q.lastError = e
			}
		case "E13":
			q.lost = &at
			times[q] = append(times[q], at.Time)
			if e := at.Value("error"); e != "" {
				q.lastError = e
			}
		case "E51":
			q.lost, q.unhealthy, q.unhealthyN = nil, nil, 0
		}
		if q.first == nil && at.Stat.Sig.ID != "E51" {
			q.first = &at
		}
	}
	for _, q := range out {
		ts := times[q]
		for i := range ts {
			c := 0
			for _, t := range ts[i:] {
				if t.Sub(ts[i]) <= time.Hour {
					c++
				}
			}
			q.losses = max(q.losses, c)
		}
	}
	return out
}
