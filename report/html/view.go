package html

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"coldplane/bundle"
	"coldplane/report"
	"coldplane/report/words"
)

// A view is what the templates print. Its strings are visible already.
type view struct {
	*report.Report
	Lang      string
	Title     string
	Headline  *findingView
	Banner    string
	Chain     []linkView
	Maybe     []candidateView
	Counts    []countView
	Questions map[string]int
	Matrix    []planeView
	Quorum    *quorumView
	Story     *timelineView
	Stores    []storeView
	Certs     *certsView
	Versions  []report.Version
	Inventory []report.NodeInventory
	Topology  *report.Topology
	List      []findingView
	Nodes     []string
	Families  []string
	Gaps      []report.GapSummary
	Outcomes  []resultView
}

type countView struct {
	Severity report.Severity
	N        int
}

// A linkView is one step of the causal chain.
type linkView struct {
	Finding *findingView
	Because string
}

type candidateView struct {
	Finding *findingView
	Decides string
}

// A planeView is the matrix of one plane as a table.
type planeView struct {
	Head     string
	Subjects []string
	Rows     []planeRow
}

type planeRow struct {
	Name  string
	Cells []*report.MatrixRow // nil: not asked there
}

// A findingView is a finding with what the catalogue says of its rule.
type findingView struct {
	*report.Finding
	Anchor      string
	Family      string
	Title, Why  string
	FixWords    string   // the rule's own advice, when it is translated and the steps are not
	Links       []string // of hosts we name ourselves
	Explains    []*findingView
	ExplainedBy []*findingView
	Open        bool // shown with its evidence from the start
}

type resultView struct {
	report.Result
	Title string
}

const openFindings = 6 // findings whose evidence is open from the start

func newView(r *report.Report, o report.Options, say *words.Words) *view {
	v := &view{Report: r, Lang: say.Lang(), Gaps: r.Gaps(), Questions: map[string]int{}}
	v.findings(o, say)
	byID := map[string]*findingView{}
	for i := range v.List {
		byID[v.List[i].ID] = &v.List[i]
	}
	for i := range v.List {
		f := &v.List[i]
		f.Explains, f.ExplainedBy = known(byID, f.Finding.Explains), known(byID, f.Finding.ExplainedBy)
	}
	if r.Verdict.Headline != nil {
		v.Headline = byID[*r.Verdict.Headline]
	}
	v.Title = say.T(r.Verdict.Heading())
	if v.Headline != nil {
		v.Title = v.Headline.Title
	}
	for _, l := range r.Verdict.Chain {
		if f := byID[l.Finding]; f != nil {
			v.Chain = append(v.Chain, linkView{f, l.Because})
		}
	}
	if len(v.Chain) < 2 {
		v.Chain = nil
	}
	for _, c := range r.Verdict.Candidates {
		if f := byID[c.Finding]; f != nil {
			v.Maybe = append(v.Maybe, candidateView{f, c.Decides})
		}
	}
	for _, s := range report.Severities() {
		v.Counts = append(v.Counts, countView{s, r.Count(s)})
	}
	for k, n := range r.Outcomes() {
		v.Questions[string(k)] = n
	}
	if b, ok := report.Fact[report.Banner](r, report.FactBanner); ok {
		v.Banner = b.Text
	}
	if m, ok := report.Fact[report.Matrix](r, report.FactMatrix); ok {
		v.Matrix = planes(m)
	}
	v.Quorum, v.Story, v.Stores, v.Certs = newQuorum(r, say), newTimeline(r, say), newStores(r, say), newCerts(r, say)
	v.Versions, _ = report.Fact[[]report.Version](r, report.FactVersions)
	v.Inventory, _ = report.Fact[[]report.NodeInventory](r, report.FactInventory)
	if t, ok := report.Fact[report.Topology](r, report.FactTopology); ok {
		v.Topology = &t
	}
	for _, x := range r.Results {
		d, _ := o.Rule(x.Rule)
		t, _ := say.Rule(d.ID, d.Title, d.Why, d.Fix)
		v.Outcomes = append(v.Outcomes, resultView{x, t.Title})
	}
	return v
}

func (v *view) findings(o report.Options, say *words.Words) {
	for i := range v.Report.Findings {
		f := &v.Report.Findings[i]
		x := findingView{Finding: f, Anchor: fmt.Sprintf("f%d", i+1), Family: f.Rule[:min(3, len(f.Rule))], Title: f.Title, Open: i < openFindings}
		if d, ok := o.Rule(f.Rule); ok {
			t, _ := say.Rule(d.ID, d.Title, d.Why, d.Fix)
			x.Why = t.Why
			if t.Fix != d.Fix && !say.Speaks(f.Fix) {
				x.FixWords = t.Fix
			}
			if f.Title == d.Title {
				x.Title = t.Title
			}
		}
		for _, l := range f.References {
			if ours(l) {
				x.Links = append(x.Links, l)
			}
		}
		if !slices.Contains(v.Nodes, f.Node) {
			v.Nodes = append(v.Nodes, f.Node)
		}
		if !slices.Contains(v.Families, x.Family) {
			v.Families = append(v.Families, x.Family)
		}
		v.List = append(v.List, x)
	}
	slices.Sort(v.Nodes)
	slices.Sort(v.Families)
}

// ours reports whether a reference goes to a site that rules cite. A report
// may come from anywhere; other addresses are shown and are no links.
func ours(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.User != nil {
		return false
	}
	h := u.Host
	return h == "kubernetes.io" || h == "etcd.io" || h == "github.com" || strings.HasSuffix(h, ".kubernetes.io") || strings.HasSuffix(h, ".k8s.io")
}

func known(byID map[string]*findingView, ids []string) []*findingView {
	var out []*findingView
	for _, id := range ids {
		if f := byID[id]; f != nil {
			out = append(out, f)
		}
	}
	return out
}

// planes turns the matrix into one table per plane.
func planes(m report.Matrix) []planeView {
	subjects, questions, cell := m.Grid()
	var out []planeView
	for _, p := range []struct {
		head  string
		users bool
	}{{"control plane", false}, {"user traffic", true}} {
		v := planeView{Head: p.head}
		for _, s := range subjects {
			if slices.ContainsFunc(questions, func(q report.Question) bool {
				return (q.Plane == report.PlaneOfUsers) == p.users && cell(q, s) != nil
			}) {
				v.Subjects = append(v.Subjects, s)
			}
		}
		for _, q := range questions {
			if (q.Plane == report.PlaneOfUsers) != p.users {
				continue
			}
			row := planeRow{Name: q.Name}
			for _, s := range v.Subjects {
				row.Cells = append(row.Cells, cell(q, s))
			}
			v.Rows = append(v.Rows, row)
		}
		if len(v.Rows) > 0 {
			out = append(out, v)
		}
	}
	return out
}

// funcs are what the templates may call.
func funcs(say *words.Words) template.FuncMap {
	return template.FuncMap{
		"T":     say.T,
		"word":  func(s any) string { return say.T(fmt.Sprint(s)) },
		"upper": strings.ToUpper,
		"bytes": bundle.FormatBytes,
		"size": func(n *int64) string {
			if n == nil {
				return say.T("unknown")
			}
			return bundle.FormatBytes(*n)
		},
		"when": func(t any) string {
			switch t := t.(type) {
			case time.Time:
				return t.UTC().Format("2006-01-02 15:04:05Z")
			case *time.Time:
				if t != nil {
					return t.UTC().Format("2006-01-02 15:04:05Z")
				}
			}
			return ""
		},
		"machine": func(t any) string {
			switch t := t.(type) {
			case time.Time:
				return t.UTC().Format(time.RFC3339Nano)
			case *time.Time:
				if t != nil {
					return t.UTC().Format(time.RFC3339Nano)
				}
			}
			return ""
		},
		"date":  func(t time.Time) string { return t.UTC().Format(time.DateOnly) },
		"join":  func(s []string) string { return strings.Join(s, ", ") },
		"lines": func(s string) []string { return strings.Split(s, "\n") },
		"state": stateClass, "mark": stateMark,
		"sev": func(s report.Severity) string {
			if s.Rank() < 0 {
				return "info"
			}
			return string(s)
		},
		"known": func(s report.Severity) bool { return s.Rank() >= 0 },
	}
}
