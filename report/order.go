package report

import (
	"cmp"
	"slices"
)

// Sort orders findings: headline first, then its chain, then by severity,
// rule, node and subject.
func (r *Report) Sort() {
	pos := map[string]int{}
	if r.Verdict.Headline != nil {
		pos[*r.Verdict.Headline] = 1
	}
	for i, l := range r.Verdict.Chain {
		if pos[l.Finding] == 0 {
			pos[l.Finding] = i + 2
		}
	}
	place := func(f Finding) int {
		if p := pos[f.ID]; p > 0 {
			return p
		}
		return len(pos) + 2 + len(r.Verdict.Chain)
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), bySeverity(a, b))
	})
	slices.SortStableFunc(r.Suppressed, bySeverity)
	slices.SortStableFunc(r.Timeline, func(a, b Event) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Text, b.Text))
	})
}

func bySeverity(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Subject, b.Subject))
}

// Find returns the finding of that id, or nil.
func (r *Report) Find(id string) *Finding {
	for i := range r.Findings {
		if r.Findings[i].ID == id {
			return &r.Findings[i]
		}
	}
	return nil
}

// Headline returns the headline finding, or nil.
func (r *Report) HeadlineFinding() *Finding {
	if r.Verdict.Headline == nil {
		return nil
	}
	return r.Find(*r.Verdict.Headline)
}

// Worst returns the gravest severity among the findings, "" without any.
func (r *Report) Worst() Severity {
	var w Severity
	for _, f := range r.Findings {
		if w == "" || f.Severity.Rank() > w.Rank() {
			w = f.Severity
		}
	}
	return w
}

// Count returns how many findings have severity s.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Outcomes counts results by outcome.
func (r *Report) Outcomes() map[Outcome]int {
	m := map[Outcome]int{}
	for _, x := range r.Results {
		m[x.Outcome]++
	}
	return m
}

// An InputSummary is one input and the findings whose first evidence lies in it.
type InputSummary struct {
	Input
	Counts map[Severity]int
}

// PerInput counts findings by the input they were first seen in.
func (r *Report) PerInput() []InputSummary {
	out := make([]InputSummary, len(r.Inputs))
	at := map[string]int{}
	for i, in := range r.Inputs {
		out[i] = InputSummary{in, map[Severity]int{}}
		if in.ID != "" {
			at[in.ID] = i
		}
	}
	for _, f := range r.Findings {
		if len(f.Evidence) == 0 {
			continue
		}
		if i, ok := at[f.Evidence[0].Input]; ok {
			out[i].Counts[f.Severity]++
		}
	}
	return out
}

// A GapSummary joins equal gaps over rules.
type GapSummary struct {
	Gap
	Rules []string // rules that wanted it, sorted
}

// unusable tells evidence that is in the input and could not be used from
// evidence that is not in it, or does not decide.
func (g *Gap) unusable() bool {
	switch g.Reason {
	case "unreadable", "damaged", "truncated", "too-large", "refused", "not-regular", "spool-full", "unsupported", "limit", "failed": // codes of package bundle
		return true
	}
	return false
}

// Gaps joins the gaps of all unknown results: one entry per evidence, node and
// reason; what is in the input and could not be used comes first, place by
// place, then what most rules wanted.
func (r *Report) Gaps() []GapSummary {
	type key struct{ evidence, node, reason, detail string }
	idx := map[key]int{}
	var out []GapSummary
	for _, res := range r.Results {
		if res.Outcome != Unknown && res.Outcome != Errored {
			continue
		}
		for _, g := range res.Gaps {
			k := key{g.Evidence, g.Node, g.Reason, ""}
			if g.unusable() {
				k.detail = g.Detail
			}
			i, ok := idx[k]
			if !ok {
				i = len(out)
				idx[k] = i
				out = append(out, GapSummary{Gap: g})
			}
			if !slices.Contains(out[i].Rules, res.Rule) {
				out[i].Rules = append(out[i].Rules, res.Rule)
			}
		}
	}
	for i := range out {
		slices.Sort(out[i].Rules)
	}
	slices.SortStableFunc(out, func(a, b GapSummary) int {
		if a.unusable() != b.unusable() {
			return map[bool]int{true: -1, false: 1}[a.unusable()]
		}
		return cmp.Or(cmp.Compare(len(b.Rules), len(a.Rules)), cmp.Compare(a.Evidence, b.Evidence), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Reason, b.Reason))
	})
	return out
}

// A GapGroup is a gap that is the same on several nodes.
type GapGroup struct {
	GapSummary
	Nodes []string // sorted; empty for a gap of the cluster
}

// GapGroups joins gaps that differ in their node only.
func (r *Report) GapGroups() []GapGroup {
	var out []GapGroup
	for _, g := range r.Gaps() {
		i := slices.IndexFunc(out, func(x GapGroup) bool {
			return x.Evidence == g.Evidence && x.Reason == g.Reason && x.Detail == g.Detail && (g.Node == "") == (len(x.Nodes) == 0) && slices.Equal(x.Rules, g.Rules)
		})
		if i < 0 {
			i = len(out)
			out = append(out, GapGroup{GapSummary: g})
		}
		if g.Node != "" {
			out[i].Nodes = append(out[i].Nodes, g.Node)
			slices.Sort(out[i].Nodes)
		}
	}
	return out
}
