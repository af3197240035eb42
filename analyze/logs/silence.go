package logs

import (
	"slices"
	"time"

	"coldplane/analyze/logs/scan"
	"coldplane/analyze/logs/signature"
)

// Silences returns the stretches of at least min between the node's first and
// last line in which no stream at all wrote anything: a suspended or stopped
// machine, or logs that were not kept. One program alone may well be silent, so
// there are none unless at least two wrote. Streams without times, or whose
// times may be hours off, do not count.
func (n *Node) Silences(min time.Duration) []scan.Span {
	var spans []scan.Span
	programs := map[signature.Emitter]bool{}
	for _, s := range n.Streams {
		if s.Result != nil && s.SameAs == nil && !s.Result.ZoneAssumed {
			spans = append(spans, s.Result.Activity...)
			programs[s.Program] = true
		}
	}
	if len(programs) < 2 {
		return nil
	}
	slices.SortFunc(spans, func(a, b scan.Span) int { return a.From.Compare(b.From) })
	var out []scan.Span
	var end time.Time
	for _, s := range spans {
		if !end.IsZero() && s.From.Sub(end) >= min {
			out = append(out, scan.Span{From: end, To: s.From})
		}
		if s.To.After(end) {
			end = s.To
		}
	}
	return out
}

// Suspended reports whether something that took so long and ended at t slept
// through a silence of the whole node rather than being slow.
func Suspended(silences []scan.Span, t time.Time, took time.Duration) bool {
	for _, s := range silences {
		if !t.Before(s.To.Add(-time.Second)) && t.Sub(s.To) <= 10*time.Second && took >= s.To.Sub(s.From)/2 {
			return true
		}
	}
	return false
}
