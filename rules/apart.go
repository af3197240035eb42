package rules

import (
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/facts"
	"coldplane/analyze/identity"
	"coldplane/bundle"
	"coldplane/report"
)

// apart judges each cluster of a mixed input as if it had been given alone: the
// questions between nodes, which the whole input was not asked (BUN102). It
// returns one part per cluster, nil when there is one only.
func apart(e *analyze.Engine, o Options, rules []*analyze.Rule, findings *[]report.Finding, results *[]report.Result) ([]facts.Part, error) {
	clusters, err := identity.OfSet.Get(e.Ctx(nil))
	if err != nil || !clusters.Several() {
		return nil, nil
	}
	between := slices.DeleteFunc(slices.Clone(rules), func(r *analyze.Rule) bool { return r.Scope != analyze.PerCluster || r.Evidence })
	o.Mixed, o.Progress = nil, nil
	var parts []facts.Part
	answers := map[string][]report.Result{}
	for _, c := range clusters {
		var nodes []*bundle.Node
		for _, n := range e.Set().Nodes {
			if slices.ContainsFunc(c, func(x identity.Node) bool { return x.Node == n }) {
				nodes = append(nodes, n)
			}
		}
		if len(nodes) == 0 {
			continue // the files beside the nodes
		}
		part := facts.Part{Name: "cluster of " + nodes[0].Name, Engine: analyze.New(e.Ctx(nil).Context(), e.Set().Of(nodes), o.Options)}
		fs, rs, err := part.Engine.Evaluate(between)
		if err != nil {
			return nil, err
		}
		for _, f := range fs {
			if f.Node == "" {
				f.Subject += " (" + part.Name + ")"
				f.ID = report.FindingID(f.Rule, f.Node, f.Subject)
			}
			*findings = append(*findings, f)
		}
		for _, r := range rs {
			answers[r.Rule] = append(answers[r.Rule], r)
		}
		parts = append(parts, part)
	}
	for i, r := range *results {
		if rs := answers[r.Rule]; r.Subject == "" && len(rs) > 0 {
			(*results)[i] = worst(rs)
		}
	}
	return parts, nil
}

// worst is one answer for several clusters: the gravest, with what all lack.
func worst(rs []report.Result) report.Result {
	rank := []report.Outcome{report.NotApplicable, report.Pass, report.Unknown, report.Fail}
	out := rs[0]
	for _, r := range rs[1:] {
		gaps := append(slices.Clone(out.Gaps), r.Gaps...)
		if slices.Index(rank, r.Outcome) > slices.Index(rank, out.Outcome) {
			out = r
		}
		out.Gaps = gaps
	}
	return out
}
