// Package correlate joins findings into one probable root cause, with the
// causal chain and the doubts. Edges and chains are data; the algorithm is
// small.
package correlate

import (
	"fmt"
	"slices"

	"coldplane/analyze"
	"coldplane/bundle"
	"coldplane/report"
)

// Judge writes the verdict of a report whose findings and results are settled.
func Judge(e *analyze.Engine, r *report.Report) {
	v := &r.Verdict
	v.Chain, v.Candidates, v.Collect = []report.ChainLink{}, []report.Candidate{}, collect(r)
	v.Control, v.UserPlane = report.PlaneUnknown, report.PlaneUnknown
	head := gravest(r.Findings)
	unknown := r.Outcomes()[report.Unknown]
	switch {
	case head != nil:
		id := head.ID
		v.State, v.Headline = report.StateCause, &id
		if head.Severity == report.Medium {
			v.State = report.StateUndetermined
		}
		v.Summary = head.Message
		v.Do = head.Fix
	case unknown > 0:
		v.State = report.StateUndetermined
		v.Summary = fmt.Sprintf("Nothing wrong found in what was given; %d questions could not be answered from it.", unknown)
	default:
		v.State = report.StateHealthy
		v.Summary = "Nothing wrong found."
	}
}

// gravest returns the gravest finding that needs an act, or nil.
func gravest(fs []report.Finding) *report.Finding {
	var best *report.Finding
	for i := range fs {
		f := &fs[i]
		if !f.Severity.AtLeast(report.Medium) {
			continue
		}
		if best == nil || f.Severity.Rank() > best.Severity.Rank() {
			best = f
		}
	}
	return best
}

// collect names the evidence whose absence left most questions open.
func collect(r *report.Report) []report.Collect {
	out := []report.Collect{}
	seen := []string{}
	for _, g := range r.Gaps() {
		if g.Reason != string(bundle.NotCollected) || slices.Contains(seen, g.Evidence) {
			continue
		}
		seen = append(seen, g.Evidence)
		info := bundle.Kind(g.Evidence).Info()
		out = append(out, report.Collect{What: info.What, Command: info.Command})
	}
	return out
}
