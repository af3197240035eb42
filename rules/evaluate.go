package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/facts"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/correlate"
	"coldplane/rules/plan"
)

// Options of Evaluate.
type Options struct {
	analyze.Options
	Version string          // of coldplane, for the report
	Rules   []*analyze.Rule // nil: all
	Waivers []Waiver
}

// Evaluate asks the rules over a set and settles the whole report. Only a
// cancelled context is an error.
func Evaluate(ctx context.Context, set *bundle.Set, o Options) (*report.Report, error) {
	rules := o.Rules
	if rules == nil {
		rules = All()
	}
	if o.Witnesses == nil {
		o.Witnesses = facts.Witnesses()
	}
	if o.Kubeadm == nil {
		o.Kubeadm = facts.Kubeadm
	}
	if o.Mixed == nil {
		o.Mixed = facts.Mixed
	}
	if err := analyze.Validate(rules); err != nil {
		return nil, err
	}
	e := analyze.New(ctx, set, o.Options)
	findings, results, err := e.Evaluate(rules)
	if err != nil {
		return nil, err
	}
	parts, err := apart(e, o, rules, &findings, &results)
	if err != nil {
		return nil, err
	}
	r := &report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		Tool:   report.Tool{Name: "coldplane", Version: o.Version, Rules: len(rules)},
		Target: o.Target, Inputs: inputs(set), Results: results, Timeline: []report.Event{},
	}
	if a := e.AsOf(nil); !a.Time.IsZero() {
		r.AsOf, r.AsOfSource = &a.Time, a.Source
	}
	openQuestions(findings, results, rules, o.Target)
	r.Findings, r.Suppressed, r.Results = waive(findings, results, o.Waivers, e.AsOf(nil).Time)
	r.Findings = mergeSame(r.Findings)
	r.Facts = facts.Inventory(e, parts)
	r.Timeline = facts.Timeline(e)
	correlate.Judge(r, correlate.TraitsOf(rules))
	r.Sort()
	r.Plan = plan.Make(e, r)
	return r, nil
}

// openQuestions completes BUN101, which cannot know what other rules answered:
// it names the grave ones that stay open on its node, and before an upgrade
// such a question makes the gap itself a finding of weight.
func openQuestions(fs []report.Finding, results []report.Result, rules []*analyze.Rule, target string) {
	grave := map[string]bool{}
	for _, r := range rules {
		grave[r.ID] = !r.Evidence && slices.Contains(r.Severities, report.Critical)
	}
	for i := range fs {
		if fs[i].Rule != "BUN101" {
			continue
		}
		var open []string
		for _, r := range results {
			if r.Outcome == report.Unknown && r.Subject == fs[i].Node && grave[r.Rule] {
				open = append(open, r.Rule)
			}
		}
		if len(open) == 0 {
			continue
		}
		slices.Sort(open)
		more := ""
		if open = slices.Compact(open); len(open) > 8 {
			open, more = open[:8], fmt.Sprintf(" and %d more", len(open)-8)
		}
		fs[i].Message += "; open because of it: " + strings.Join(open, ", ") + more
		if target != "" {
			fs[i].Severity = report.Medium
		}
	}
}

func inputs(set *bundle.Set) []report.Input {
	var out []report.Input
	for _, in := range set.Inputs {
		x := report.Input{ID: in.ID, Path: in.Path, Format: string(in.Format), Node: in.Node, State: in.State, Detail: in.Detail}
		if !in.CollectedAt.IsZero() {
			t := in.CollectedAt.UTC()
			x.CollectedAt = &t
		}
		for _, r := range in.Refusals {
			x.Refused = append(x.Refused, report.Refusal{Name: r.Name, Why: r.Why})
		}
		if in.RefusalsDropped > 0 {
			x.Refused = append(x.Refused, report.Refusal{Name: "…", Why: fmt.Sprintf("and %d more", in.RefusalsDropped)})
		}
		out = append(out, x)
	}
	for _, p := range set.Problems {
		out = append(out, report.Input{ID: "", Path: p.Evidence, State: "unusable", Detail: p.Detail})
	}
	return out
}

// FillDigests waits for the inputs' digests and writes them into the report.
func FillDigests(set *bundle.Set, r *report.Report) {
	set.WaitDigests()
	for i, in := range set.Inputs {
		r.Inputs[i].SHA256 = in.SHA256
	}
}

// mergeSame joins findings whose evidence points at the very same places:
// the more specific one (the graver, then the one with more to do) stays and
// names the other (guard G9).
func mergeSame(fs []report.Finding) []report.Finding {
	key := func(f report.Finding) string {
		var parts []string
		for _, e := range f.Evidence {
			parts = append(parts, fmt.Sprintf("%s|%s|%d|%s|%s|%d|%d", e.Input, e.Path, e.Line, e.Pointer, e.Key, e.Revision, e.Offset))
		}
		slices.Sort(parts)
		return strings.Join(slices.Compact(parts), "\n")
	}
	at := map[string]int{}
	out := []report.Finding{}
	for _, f := range fs {
		k := key(f)
		i, ok := at[k]
		if !ok || !related(f, out[i]) {
			at[k] = len(out)
			out = append(out, f)
			continue
		}
		keep, drop := out[i], f
		if f.Severity.Rank() > keep.Severity.Rank() {
			keep, drop = f, keep
		}
		keep.Message += fmt.Sprintf(" (also %s: %s)", drop.Rule, drop.Message)
		out[i] = keep
	}
	return out
}

// related reports whether two findings are of one family and node: only
// those say the same thing twice.
func related(a, b report.Finding) bool {
	return a.Rule != b.Rule && a.Rule[:3] == b.Rule[:3] && a.Node == b.Node
}

// A Waiver accepts a finding, with a reason and a last day.
type Waiver struct {
	Rule    string    `json:"rule"`    // id
	Node    string    `json:"node"`    // "" for any
	Subject string    `json:"subject"` // "" for any
	Reason  string    `json:"reason"`
	Expires time.Time `json:"expires"` // zero: never
}

// expired says in words that a finding was waived and is not any more; "" when
// it never was.
func expired(f report.Finding, ws []Waiver, asOf time.Time) string {
	for _, w := range ws {
		if w.Rule == f.Rule && (w.Node == "" || w.Node == f.Node) && (w.Subject == "" || w.Subject == f.Subject) &&
			!w.Expires.IsZero() && !asOf.IsZero() && !asOf.Before(w.Expires) {
			return fmt.Sprintf(" (its waiver expired on %s: %s)", w.Expires.UTC().Format(time.DateOnly), w.Reason)
		}
	}
	return ""
}

// waive takes waived findings out. An expired waiver does not count; the
// finding says so.
func waive(fs []report.Finding, rs []report.Result, ws []Waiver, asOf time.Time) (open, waived []report.Finding, results []report.Result) {
	open = []report.Finding{}
	left := map[string]bool{}
	gone := map[string]bool{}
	for _, f := range fs {
		i := slices.IndexFunc(ws, func(w Waiver) bool {
			return w.Rule == f.Rule && (w.Node == "" || w.Node == f.Node) && (w.Subject == "" || w.Subject == f.Subject) &&
				(w.Expires.IsZero() || asOf.IsZero() || asOf.Before(w.Expires))
		})
		key := f.Rule + "\x00" + f.Node
		if i < 0 {
			f.Message += expired(f, ws, asOf)
			open = append(open, f)
			left[key] = true
			continue
		}
		f.Waiver = &report.Waiver{Reason: ws[i].Reason}
		if !ws[i].Expires.IsZero() {
			f.Waiver.Expires = ws[i].Expires.UTC().Format(time.DateOnly)
		}
		waived = append(waived, f)
		gone[key] = true
	}
	results = slices.Clone(rs)
	for i, r := range results {
		key := r.Rule + "\x00" + r.Subject
		if r.Outcome == report.Fail && gone[key] && !left[key] {
			results[i].Outcome = report.Suppressed
		}
	}
	return open, waived, results
}
