package quorum

import (
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/bundle"
)

// recent is how close to the time of the evidence a member's own traces must
// reach to count as life: node leases are renewed every 10 s and etcd's
// compactor writes every 5 min, so a member that serves leaves traces.
const recent = 2 * time.Minute

// A trace is the newest sign of work a member left on its own node.
type trace struct {
	at   time.Time
	ref  bundle.Ref
	text string
}

// traces finds, for every member with a node in the evidence, how far its own
// log and its own database reach. They outrank what peers complained of before.
func traces(c *analyze.Ctx, v *View) map[*Member]trace {
	out := map[*Member]trace{}
	for _, n := range c.Nodes() {
		if n.Name == "" {
			continue
		}
		t := newestTrace(c, n)
		if t.at.IsZero() {
			continue
		}
		for _, m := range v.hosted(n) {
			if t.at.After(out[m].at) {
				out[m] = t
			}
		}
	}
	return out
}

func newestTrace(c *analyze.Ctx, n *bundle.Node) trace {
	var t trace
	if l, err := logs.OnNode.Of(c, n); err == nil {
		if ss := l.Of(signature.Etcd); len(ss) > 0 {
			if s := ss[len(ss)-1]; !ended(l, s.Result.Last) {
				t = trace{s.Result.Last, s.Ref(s.Result.LastTimed, 0), "its own log goes on until " + stamp(s.Result.Last)}
			}
		}
	}
	if n.StoreOnly {
		return t
	}
	if s, err := objects.OnNode.Of(c, n); err == nil && s.DB.InUse() {
		if p, ok := s.LastWrite(); ok && p.Time.After(t.at) {
			t = trace{p.Time, s.DB.AtKey(p.Key, p.Rev), "its own database holds a write of " + stamp(p.Time)}
		}
	}
	return t
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// ended reports whether etcd's log says that the process stopped just before
// a time, so that the log's end is the member's end.
func ended(l *logs.Node, at time.Time) bool {
	h, ok := l.Last(signature.Etcd, "E95", "E68")
	return ok && !h.Time.IsZero() && at.Sub(h.Time) < 5*time.Second
}

// stopping reports whether the node's own etcd was being stopped around a
// time: what it then says about its peers is about itself.
func stopping(l *logs.Node, at time.Time) bool {
	for _, h := range l.Hits(signature.Etcd, "E95", "E68") {
		if d := h.Time.Sub(at); d > -5*time.Second && d < 15*time.Second {
			return true
		}
	}
	return false
}
