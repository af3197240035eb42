package correlate

import (
	"slices"
	"strings"
	"time"

	"coldplane/report"
)

// lead is how long before another sign a sign still belongs to the same
// incident.
const lead = 10 * time.Minute

// incident finds the span of time in which things went wrong: back from the
// earliest grave finding that is no lasting circumstance, over the signs in the
// timeline that stand close enough before, up to the time of the evidence. nil
// when nothing grave is active.
func incident(r *report.Report, traits map[string]Traits) *report.Incident {
	var in *report.Incident
	grave := false
	for i := range r.Findings {
		f := &r.Findings[i]
		if !f.Severity.AtLeast(report.High) || traits[f.Rule].Latent || background[f.Rule] {
			continue
		}
		grave = true
		if f.ObservedAt != nil && (in == nil || f.ObservedAt.Before(in.From)) {
			in = &report.Incident{From: *f.ObservedAt, Why: short(f.Rule + ": " + f.Message)}
		}
	}
	if !grave {
		return nil
	}
	signs := slices.DeleteFunc(slices.Clone(r.Timeline), func(e report.Event) bool { return e.Kind != report.EventMark && e.Kind != report.EventGap })
	if in == nil {
		// Nothing says when: the newest sign is where the incident is.
		if len(signs) == 0 || r.AsOf == nil {
			return nil
		}
		last := signs[len(signs)-1]
		in = &report.Incident{From: last.Time, Why: opening(last)}
	}
	for i := len(signs) - 1; i >= 0; i-- {
		if s := signs[i]; s.Time.Before(in.From) && in.From.Sub(s.Time) <= lead && s.Text != lastWrite {
			in.From, in.Why = s.Time, opening(s)
		}
	}
	in.From, in.To = in.From.UTC(), in.From.UTC()
	if n := len(r.Timeline); n > 0 && r.Timeline[n-1].Time.After(in.To) {
		in.To = r.Timeline[n-1].Time
	}
	if r.AsOf != nil && r.AsOf.After(in.From) {
		in.To = r.AsOf.UTC()
	}
	return in
}

// lastWrite is the entry of the last good write, which is no sign of anything
// by itself; the gap after it is.
const lastWrite = "last write the store remembers"

func opening(e report.Event) string {
	s := e.Source + ": " + e.Text
	if e.Node != "" {
		s = e.Node + " " + s
	}
	return short(s)
}

// short cuts a sign to what fits a line: its first clause, at most.
func short(s string) string {
	s, _, _ = strings.Cut(s, "; ")
	s, _, _ = strings.Cut(s, " (")
	if r := []rune(s); len(r) > 140 {
		s = string(r[:140]) + "…"
	}
	return s
}
