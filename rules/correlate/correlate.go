// Package correlate joins findings into one probable root cause, with its
// causal chain and its doubts.
//
// Edges (edges.go) say which rule's findings can explain which, and under what
// conditions; chains (chains.go) name the explanations and what must not be
// done; layers (layers.go) order causes. The algorithm here is small: every
// finding that nothing else explains is a candidate, scored by what it
// explains; the best one heads the report when no rival explains the same
// symptoms about as well. Otherwise the rivals are named with the observation
// that would decide, or the report says that the cause is not in the evidence.
package correlate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/bundle"
	"coldplane/report"
)

// Traits are what the catalogue says of a rule.
type Traits struct {
	Symptom, Latent bool
	Gravest         report.Severity // it may find
}

// rivalRatio is how much better the best candidate must score than one that
// explains the same symptoms.
const rivalRatio = 1.5

// A candidate is a possible root.
type candidate struct {
	i         int
	f         *report.Finding
	score     float64
	weight    map[int]float64
	from      map[int]int
	explained []*report.Finding
}

// Judge writes the verdict of a report whose findings, results and facts are
// settled. traits is the catalogue by rule id.
func Judge(r *report.Report, traits map[string]Traits) {
	v := &r.Verdict
	v.Chain, v.Candidates, v.Collect = []report.ChainLink{}, []report.Candidate{}, collect(r, traits)
	v.Control, v.UserPlane = planes(r)
	start := time.Time{}
	if in := incident(r, traits); in != nil {
		r.Facts[report.FactIncident] = *in
		start = in.From
	}

	var fs []*report.Finding
	for i := range r.Findings {
		if r.Findings[i].Severity != report.Info {
			fs = append(fs, &r.Findings[i])
		}
	}
	g := build(fs, compile(edges))
	g.contribute(compile(contributions))
	g.mark()
	cands := g.candidates(traits, start)
	if len(cands) == 0 {
		quiet(r)
		return
	}
	best := cands[0]
	if rs := rivals(best, cands[1:]); len(rs) > 0 {
		candidatesVerdict(r, g, append([]candidate{best}, rs...))
		return
	}
	cause(r, g, best, traits)
}

// background are rules about lasting circumstances: versions, placement,
// backups, file modes, drift from what kubeadm writes, the evidence itself. They head a report only when nothing else needs an act.
var background = map[string]bool{
	"STA206": true, "STA210": true, "BUN101": true, "BUN103": true, "BUN104": true, "QRM113": true,
	"QRM104": true, "QRM114": true, "QRM115": true, "RST106": true, "HAV403": true, "STA104": true, "PKI207": true, "NOD109": true,
	"ADM102": true, "ADM103": true, "ADM302": true, "ADM402": true, "UPG202": true, "UPG203": true, "UPG204": true,
}

// times counts the findings of a rule.
func (g *graph) times(rule string) int {
	n := 0
	for _, f := range g.fs {
		if f.Rule == rule {
			n++
		}
	}
	return n
}

// mark writes Explains and ExplainedBy.
func (g *graph) mark() {
	for i, as := range g.out {
		for _, a := range as {
			g.fs[i].Explains = append(g.fs[i].Explains, g.fs[a.to].ID)
			g.fs[a.to].ExplainedBy = append(g.fs[a.to].ExplainedBy, g.fs[i].ID)
		}
	}
}

// candidates returns the findings that nothing explains, best first. Symptoms
// and latent findings come only when nothing else is left; a possible finding
// counts at most as medium.
func (g *graph) candidates(traits map[string]Traits, start time.Time) []candidate {
	var roots, rest, last []candidate
	for i, f := range g.fs {
		if g.in[i] > 0 || !f.Severity.AtLeast(report.Medium) {
			continue
		}
		c := candidate{i: i, f: f}
		c.weight, c.from = g.reach(i)
		for j, h := range g.fs {
			w, ok := c.weight[j]
			if !ok {
				continue
			}
			c.score += severityWeight(h.Severity) * w
			if j != i {
				c.explained = append(c.explained, h)
			}
		}
		if f.ObservedAt != nil && !start.IsZero() && f.ObservedAt.Sub(start).Abs() <= 10*time.Minute {
			c.score += 2
		}
		c.score *= confidenceWeight(f.Confidence)
		t := traits[f.Rule]
		if background[f.Rule] && f.Severity != report.Critical && len(c.explained) == 0 {
			last = append(last, c)
			continue
		}
		if t.Symptom || t.Latent && len(c.explained) == 0 {
			rest = append(rest, c)
			continue
		}
		roots = append(roots, c)
	}
	better := func(a, b candidate) int {
		return cmp.Or(cmp.Compare(rankOf(b), rankOf(a)), cmp.Compare(b.score, a.score), cmp.Compare(layerOf(a.f), layerOf(b.f)),
			cmp.Compare(a.f.Rule, b.f.Rule), cmp.Compare(a.f.Node, b.f.Node), cmp.Compare(a.f.Subject, b.f.Subject))
	}
	slices.SortFunc(roots, better)
	slices.SortFunc(rest, better)
	slices.SortFunc(last, better)
	rest = append(rest, last...)
	// A latent or symptom finding leads only over roots that are clearly milder.
	if len(rest) > 0 && (len(roots) == 0 || rankOf(rest[0]) > rankOf(roots[0])+1) {
		return append(rest, roots...)
	}
	return append(roots, rest...)
}

// rankOf is the gravest thing a candidate explains or is, capped at medium
// for findings that rest on one hint.
func rankOf(c candidate) int {
	r := c.f.Severity.Rank()
	if c.f.Confidence == report.Possible {
		r = min(r, report.Medium.Rank())
	}
	for _, f := range c.explained {
		r = max(r, min(f.Severity.Rank(), c.f.Severity.Rank()+1))
	}
	return r
}

// rivals are candidates that explain a grave symptom the best one also
// explains, about as well.
func rivals(best candidate, others []candidate) []candidate {
	var out []candidate
	for _, o := range others {
		if o.score*rivalRatio <= best.score || o.f.Rule == best.f.Rule {
			continue
		}
		shared := slices.ContainsFunc(o.explained, func(f *report.Finding) bool {
			return f.Severity.AtLeast(report.High) && slices.Contains(best.explained, f)
		})
		if shared {
			out = append(out, o)
		}
	}
	return out
}

// cause writes the verdict of one root.
func cause(r *report.Report, g *graph, best candidate, traits map[string]Traits) {
	v := &r.Verdict
	id := best.f.ID
	v.State, v.Headline = report.StateCause, &id
	if traits[best.f.Rule].Symptom {
		v.State = report.StateUndetermined
	}
	v.Do = best.f.Fix
	if c := chainOf(best.f, best.explained, g.times(best.f.Rule)); c != nil {
		v.ChainName = c.id + " " + c.name
		if c.doNot != "" && best.f.Severity.AtLeast(report.High) {
			v.DoNot = append(v.DoNot, strings.TrimPrefix(c.doNot, "Do not "))
		}
	}
	v.Chain = links(g, best)
	v.Contributing = contributing(g, best)
	v.Summary = summary(r, best, v.State)
}

// contributing lists what made the root or its consequences more likely.
func contributing(g *graph, best candidate) []string {
	var out []string
	for i := range g.fs {
		if _, in := best.weight[i]; !in {
			continue
		}
		for _, j := range g.helped[i] {
			id := g.fs[j].ID
			if _, in := best.weight[j]; !in && !slices.Contains(out, id) {
				out = append(out, id)
			}
		}
	}
	slices.Sort(out)
	return out
}

// links is the causal chain: the root, then what it explains in the order of
// the steps, gravest first.
func links(g *graph, best candidate) []report.ChainLink {
	if len(best.explained) == 0 {
		return []report.ChainLink{}
	}
	depth := func(i int) int {
		d := 0
		for best.from[i] >= 0 {
			i = best.from[i]
			d++
		}
		return d
	}
	var order []int
	for i := range best.weight {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), cmp.Compare(layerOf(g.fs[a]), layerOf(g.fs[b])),
			cmp.Compare(g.fs[b].Severity.Rank(), g.fs[a].Severity.Rank()), cmp.Compare(a, b))
	})
	out := []report.ChainLink{}
	for _, i := range order {
		f := g.fs[i]
		because := f.Message
		if p := best.from[i]; p >= 0 {
			because = fmt.Sprintf("%s (follows from %s)", f.Message, g.fs[p].Rule)
		}
		out = append(out, report.ChainLink{Finding: f.ID, Because: because})
	}
	return out
}

// summary is the sentence for a human who has twenty seconds.
func summary(r *report.Report, best candidate, state string) string {
	f := best.f
	var b strings.Builder
	switch {
	case state == report.StateUndetermined:
		b.WriteString("What is seen, without its cause in this evidence: ")
	case !f.Severity.AtLeast(report.High):
		b.WriteString("No incident; most worth doing: ")
	case f.Confidence == report.Certain:
		b.WriteString("Root cause: ")
	default:
		fmt.Fprintf(&b, "%s root cause: ", strings.ToUpper(string(f.Confidence[:1]))+string(f.Confidence[1:]))
	}
	if f.Node != "" {
		b.WriteString(f.Node + ": ")
	}
	b.WriteString(f.Message)
	if f.ObservedAt != nil {
		fmt.Fprintf(&b, ", since %s", f.ObservedAt.UTC().Format("2006-01-02 15:04Z"))
	}
	b.WriteString(".")
	total := 0
	for _, x := range r.Findings {
		if x.Severity.AtLeast(report.Medium) {
			total++
		}
	}
	if n := len(best.explained); n > 0 {
		fmt.Fprintf(&b, " It explains %d further finding%s of %d.", n, plural(n), total-1)
	}
	if n := len(r.Verdict.Contributing); n > 0 {
		fmt.Fprintf(&b, " %d finding%s contributed to it.", n, plural(n))
	}
	if len(f.Fix) > 0 {
		b.WriteString(" First: " + strings.TrimSuffix(f.Fix[0].Text, ".") + ".")
	}
	return b.String()
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// candidatesVerdict says that two or more causes explain the same symptoms.
func candidatesVerdict(r *report.Report, g *graph, cs []candidate) {
	v := &r.Verdict
	v.State = report.StateCandidates
	var names []string
	times := map[string]int{}
	for _, c := range cs {
		decides := "the time each began"
		if ch := chainOf(c.f, c.explained, g.times(c.f.Rule)); ch != nil {
			decides = ch.decides
		}
		v.Candidates = append(v.Candidates, report.Candidate{Finding: c.f.ID, Score: float64(int(c.score*100)) / 100, Decides: decides})
		name := strings.TrimSpace(c.f.Rule + " " + c.f.Node)
		if times[name]++; times[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if n := times[name]; n > 1 {
			names[i] = fmt.Sprintf("%s (%d times)", name, n)
		}
	}
	v.Summary = fmt.Sprintf("%d causes explain the same symptoms: %s. What decides: %s.", len(cs), strings.Join(names, "; "), v.Candidates[0].Decides)
}

// quiet writes the verdict when no finding needs an act.
func quiet(r *report.Report) {
	v := &r.Verdict
	unknown := r.Outcomes()[report.Unknown] + r.Outcomes()[report.Errored]
	if unknown > 0 {
		v.State = report.StateUndetermined
		v.Summary = fmt.Sprintf("Nothing that needs an act was found in what was given; %d questions could not be answered from it.", unknown)
		return
	}
	v.State = report.StateHealthy
	v.Summary = "Nothing that needs an act was found, and every question could be answered."
}

// maxCollect is how many things a reader is asked to get.
const maxCollect = 6

// collect names the evidence whose absence left questions open, by what they
// would decide: a critical question counts more than many small ones. What one
// command gets is asked for once.
func collect(r *report.Report, traits map[string]Traits) []report.Collect {
	weight := map[string]float64{}
	rules := map[string][]string{}
	var kinds []string
	for _, g := range r.Gaps() {
		if g.Reason != string(bundle.NotCollected) {
			continue
		}
		if !slices.Contains(kinds, g.Evidence) {
			kinds = append(kinds, g.Evidence)
		}
		for _, id := range g.Rules {
			if !slices.Contains(rules[g.Evidence], id) {
				rules[g.Evidence] = append(rules[g.Evidence], id)
				weight[g.Evidence] += severityWeight(traits[id].Gravest)
			}
		}
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b)) })
	out := []report.Collect{}
	for _, k := range kinds {
		info := bundle.Kind(k).Info()
		i := slices.IndexFunc(out, func(c report.Collect) bool { return c.Command == info.Command })
		switch {
		case i >= 0:
			out[i].What += "; " + info.What
		case len(out) < maxCollect:
			out = append(out, report.Collect{What: info.What, Command: info.Command})
		}
	}
	return out
}

// planes are the states of the control plane and of user traffic, from the
// matrix; never one from the other.
func planes(r *report.Report) (control, user string) {
	control, user = report.PlaneUnknown, report.PlaneUnknown
	m, ok := report.Fact[report.Matrix](r, report.FactMatrix)
	if !ok {
		return control, user
	}
	for _, row := range m.Rows {
		if row.Subject != report.SubjectAll {
			continue
		}
		switch {
		case row.Plane == report.PlaneOfControl && row.Name == report.RowControlPlane:
			control = planeOf(row.State)
		case row.Plane == report.PlaneOfUsers && row.Name == report.RowUserTraffic:
			user = planeOf(row.State)
		}
	}
	return control, user
}

func planeOf(state string) string {
	switch state {
	case report.Alive:
		return report.PlaneUp
	case report.Dead:
		return report.PlaneDown
	case report.PlaneDegraded:
		return report.PlaneDegraded
	}
	return report.PlaneUnknown
}

func gravest(r *analyze.Rule) report.Severity {
	if len(r.Severities) == 0 {
		return report.Info
	}
	return r.Severities[0]
}

// TraitsOf reads the traits of a catalogue.
func TraitsOf(rules []*analyze.Rule) map[string]Traits {
	m := map[string]Traits{}
	for _, r := range rules {
		m[r.ID] = Traits{r.Symptom, r.Latent, gravest(r)}
	}
	return m
}
