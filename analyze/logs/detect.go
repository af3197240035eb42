package logs

import (
	"slices"
	"time"

	"coldplane/analyze/logs/signature"
)

// A Period is a stretch in which something was wrong, with the lines that show
// where it begins and ends.
type Period struct {
	From, To time.Time
	// Open says that nothing shows its end: it may still go on.
	Open  bool
	Count int // lines that belong to it
	Begin At
	End   At // the line that ends it; its Stat is nil when Open
}

// electionPatience is ten election timeouts of etcd's default (1 s): an
// election that is not won in that time finds no majority.
const electionPatience = 10 * time.Second

// NoQuorum returns the periods in which a member found no majority: elections
// that start again and again (three times and more, longer than
// electionPatience) without a leader, or "no leader" answers for longer than 30
// seconds. An election of a second is no such period.
func (n *Node) NoQuorum() []Period {
	hits := n.Hits(0, "R01", "R02", "R03", "R04", "R05", "R06", "E04", "E09", "E40", "E49", "E84")
	var out []Period
	var cur *Period
	attempts := 0
	end := func(at At) {
		if cur == nil {
			return
		}
		cur.End, cur.To, cur.Open = at, at.Time, at.Stat == nil
		if cur.Open {
			cur.To = cur.From
			for _, h := range hits {
				if h.Time.After(cur.To) {
					cur.To = h.Time
				}
			}
		}
		if long := cur.To.Sub(cur.From); attempts >= 3 && long > electionPatience || attempts == 0 && cur.Count > 1 && long > 30*time.Second {
			out = append(out, *cur)
		}
		cur, attempts = nil, 0
	}
	for _, h := range hits {
		if h.Time.IsZero() {
			continue
		}
		switch h.Stat.Sig.ID {
		case "R01", "R02", "R03", "E84":
			end(h)
			continue
		case "R05":
			attempts++
		}
		if cur == nil {
			cur = &Period{From: h.Time, Begin: h}
		}
		cur.Count++
	}
	end(At{})
	return out
}

// QuotaIncident returns when writes were first refused for lack of database
// space and what followed: the alarm of etcd, or without etcd's log the first
// refusal another program saw. ok is false if nothing says so.
func (n *Node) QuotaIncident() (p Period, ok bool) {
	first, raised := n.First(signature.Etcd, "E01")
	refused := n.Hits(0, "E02")
	switch {
	case raised:
	case len(refused) > 0:
		first = refused[0]
	default:
		return Period{}, false
	}
	p = Period{From: first.Time, Begin: first, Open: true, To: first.Time, Count: n.Count(0, "E01", "E02")}
	for _, h := range slices.Concat(refused, n.Hits(signature.Etcd, "E01", "E03")) {
		if h.Time.After(p.To) {
			p.To, p.End = h.Time, h
		}
	}
	return p, true
}

// StoreOutage returns the periods in which the API server of the node could not
// use its store: its watches end, its hooks fail, and controllers cannot read
// their leases, several of these within a minute.
func (n *Node) StoreOutage() []Period {
	hits := slices.Concat(n.Hits(signature.APIServer, "A48", "A49", "A08", "A09", "A31", "E39", "E40", "G10"), n.Hits(signature.ControllerManager|signature.Scheduler, "C02", "C11"))
	SortHits(hits)
	var out []Period
	var cur *Period
	kinds := map[string]bool{}
	flush := func() {
		if cur != nil && cur.Count >= 3 && len(kinds) >= 2 {
			out = append(out, *cur)
		}
		cur = nil
		clear(kinds)
	}
	for _, h := range hits {
		if h.Time.IsZero() {
			continue
		}
		if cur != nil && h.Time.Sub(cur.To) > time.Minute {
			flush()
		}
		if cur == nil {
			cur = &Period{From: h.Time, Begin: h}
		}
		cur.To, cur.End = h.Time, h
		cur.Count++
		kinds[h.Stat.Sig.ID] = true
	}
	flush()
	if len(out) > 0 {
		last := &out[len(out)-1]
		if end, _ := n.End(); end.Sub(last.To) < time.Minute {
			last.Open = true
		}
	}
	return out
}

// Upgrade is the start of another version of etcd than before on the same node.
type Upgrade struct {
	From, To string
	At       At
}

// Upgrades returns the changes of etcd's version between its starts.
func (n *Node) Upgrades() []Upgrade {
	var out []Upgrade
	last := ""
	for _, h := range n.Hits(signature.Etcd, "E52") {
		v := h.Value("etcd-version")
		if v == "" {
			v = h.Value("etcdversion")
		}
		if v == "" {
			continue
		}
		if last != "" && v != last {
			out = append(out, Upgrade{last, v, h})
		}
		last = v
	}
	return out
}

// LeadsAt reports whether the log of a component says that it holds or waits
// for its lease within d before the end of the node's logs. A silent scheduler
// beside an API server that writes is one that does not work.
func (n *Node) LeadsAt(by signature.Emitter, d time.Duration) bool {
	end, _ := n.End()
	at, ok := n.Last(by, "C04", "C05", "C10")
	return ok && end.Sub(at.Time) <= d
}
