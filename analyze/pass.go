package analyze

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"coldplane/bundle"
	"coldplane/report"
)

// A Pass is one question: one rule for one node, or for the cluster. It is
// the only door a rule has.
type Pass struct {
	rule   *Rule
	engine *Engine
	node   *bundle.Node // nil for a cluster rule
	params map[string]float64

	findings []report.Finding
	gaps     []report.Gap
	unknown  bool
	na       string
	err      error
}

// Node is the node asked about; nil for a cluster rule.
func (p *Pass) Node() *bundle.Node { return p.node }

// Nodes returns the real nodes of the set, sorted by name.
func (p *Pass) Nodes() []*bundle.Node { return p.engine.set.Nodes }

// All returns the nodes and the shared pseudo-node, if it holds anything.
func (p *Pass) All() []*bundle.Node { return p.engine.set.All() }

// Target is the Kubernetes version of a pre-upgrade audit, or "".
func (p *Pass) Target() string { return p.engine.opts.Target }

// AsOf is the time that judges ages on a node: given, the collection's, or
// inferred from the evidence. ok is false when no time is known; age
// questions are then unknown. n is nil for the cluster as a whole.
func (p *Pass) AsOf(n *bundle.Node) (t time.Time, ok bool) {
	a := p.engine.AsOf(n)
	return a.Time, !a.Time.IsZero()
}

// AsOfSource says where AsOf comes from: "given", "collection", "inferred",
// "now" or "".
func (p *Pass) AsOfSource(n *bundle.Node) string { return p.engine.AsOf(n).Source }

// Param returns a named threshold of the rule.
func (p *Pass) Param(name string) float64 {
	v, ok := p.params[name]
	if !ok {
		panic(fmt.Sprintf("rule %s has no parameter %s", p.rule.ID, name))
	}
	return v
}

// In returns a fact for the pass's node (or the cluster), and whether it is
// there. A missing one is recorded as a gap. The fact must be declared in
// Needs or Wants.
func (f *Fact[T]) In(p *Pass) (T, bool) { return f.On(p, p.node) }

// On is In for a given node of a cluster rule.
func (f *Fact[T]) On(p *Pass, n *bundle.Node) (T, bool) {
	var zero T
	if !p.declared(f) {
		panic(fmt.Sprintf("rule %s uses the undeclared fact %s", p.rule.ID, f.Name))
	}
	v, err := f.at(p.engine, n)
	if err != nil {
		p.miss(err)
		return zero, false
	}
	return v, true
}

// Try is On without recording a gap: for evidence whose absence says nothing.
func (f *Fact[T]) Try(p *Pass, n *bundle.Node) (T, error) {
	if !p.declared(f) {
		panic(fmt.Sprintf("rule %s uses the undeclared fact %s", p.rule.ID, f.Name))
	}
	return f.at(p.engine, n)
}

// declared reports whether a fact is among the rule's needs and wants, or
// among what those need.
func (p *Pass) declared(f Need) bool {
	var in func([]Need) bool
	in = func(ns []Need) bool {
		for _, n := range ns {
			if n == f || in(n.info().needs) {
				return true
			}
		}
		return false
	}
	return in(p.rule.Needs) || in(p.rule.Wants)
}

// miss records why a fact is not there.
func (p *Pass) miss(err error) {
	g := report.Gap{Reason: string(bundle.FactFailed), Detail: err.Error(), Evidence: "fact"}
	var m *MissingError
	if errors.As(err, &m) {
		g = report.Gap{Evidence: m.Evidence, Node: m.Node, Reason: string(m.Reason), Detail: m.Detail}
	}
	p.gap(g)
}

func (p *Pass) gap(g report.Gap) {
	if !slices.Contains(p.gaps, g) {
		p.gaps = append(p.gaps, g)
	}
}

// Unknown records that the question, or a part of it, could not be answered.
// Without a finding the outcome is then unknown, never pass.
func (p *Pass) Unknown(k bundle.Kind, n *bundle.Node, r bundle.Reason, detail string) {
	p.unknown = true
	p.gap(report.Gap{Evidence: string(k), Node: nodeName(n), Reason: string(r), Detail: detail})
}

// UnknownErr is Unknown for an error of the bundle package.
func (p *Pass) UnknownErr(k bundle.Kind, n *bundle.Node, err error) {
	var m *MissingError
	if errors.As(err, &m) {
		detail := m.Detail
		if m.Evidence != "" && m.Evidence != string(k) {
			detail = m.Evidence
			if m.Detail != "" {
				detail += ": " + m.Detail
			}
		}
		p.Unknown(k, n, m.Reason, detail)
		return
	}
	p.Unknown(k, n, bundle.FactFailed, err.Error())
}

// NotApplicable ends the question: it makes no sense here, and why.
func (p *Pass) NotApplicable(why string) error {
	p.na = why
	return nil
}

// A Finding is what a rule says. Evidence[0] is the line to edit.
type Finding struct {
	Node       *bundle.Node // set automatically in a node rule
	Subject    string       // component, file role, member, object; never a path with a value
	Severity   report.Severity
	Confidence report.Confidence // Certain when empty
	Message    string
	Evidence   []Evidence
	Fix        []report.Step // Doc.Fix as one step when empty
	Refs       []string      // more references than Doc.Links
	ObservedAt time.Time
}

// Evidence is a Ref with the value seen there.
type Evidence struct {
	Ref     bundle.Ref
	Excerpt string
	Role    string // report.Role*; the first is subject, others context when empty
}

// See makes evidence of the subject's own place.
func See(r bundle.Ref, excerpt string) Evidence { return Evidence{r, excerpt, report.RoleSubject} }

// Expect makes evidence of the other side of a mismatch.
func Expect(r bundle.Ref, excerpt string) Evidence { return Evidence{r, excerpt, report.RoleExpected} }

// Context makes further evidence.
func Context(r bundle.Ref, excerpt string) Evidence { return Evidence{r, excerpt, report.RoleContext} }

const maxExcerpt = 400 // runes kept of an excerpt

// Report adds a finding. A finding without evidence or of an undeclared
// severity is a defect of the rule.
func (p *Pass) Report(f Finding) {
	if f.Node == nil {
		f.Node = p.node
	}
	if f.Confidence == "" {
		f.Confidence = report.Certain
	}
	if !slices.Contains(p.rule.Severities, f.Severity) {
		panic(fmt.Sprintf("rule %s does not declare severity %q", p.rule.ID, f.Severity))
	}
	if len(f.Evidence) == 0 {
		panic(fmt.Sprintf("rule %s: finding without evidence: %s", p.rule.ID, f.Message))
	}
	out := report.Finding{
		Rule: p.rule.ID, Name: p.rule.Name, Severity: f.Severity, Confidence: f.Confidence,
		Node: nodeName(f.Node), Subject: f.Subject, Title: p.rule.Doc.Title, Message: f.Message, Fix: f.Fix,
		References: slices.Concat(p.rule.Doc.Links, f.Refs), Explains: []string{}, ExplainedBy: []string{},
	}
	if len(out.Fix) == 0 {
		out.Fix = []report.Step{{Text: p.rule.Doc.Fix}}
	}
	if out.References == nil {
		out.References = []string{}
	}
	// What lies ahead was not observed: a certificate's end is in the message.
	if a := p.engine.AsOf(f.Node).Time; !f.ObservedAt.IsZero() && (a.IsZero() || !f.ObservedAt.After(a)) {
		t := f.ObservedAt.UTC()
		out.ObservedAt = &t
	}
	for i, e := range f.Evidence {
		if e.Ref.IsZero() || e.Ref.Path == "" {
			panic(fmt.Sprintf("rule %s: evidence %d points nowhere: %s", p.rule.ID, i, f.Message))
		}
		role := e.Role
		if role == "" {
			role = report.RoleContext
			if i == 0 {
				role = report.RoleSubject
			}
		}
		out.Evidence = append(out.Evidence, ToEvidence(e.Ref, e.Excerpt, role))
	}
	out.ID = report.FindingID(out.Rule, out.Node, out.Subject)
	p.findings = append(p.findings, out)
}

// ToEvidence turns a Ref into the report's form.
func ToEvidence(r bundle.Ref, excerpt, role string) report.Evidence {
	return report.Evidence{
		Input: r.Input, Node: r.Node, Path: r.Path, Line: r.Line, Pointer: r.Pointer,
		Offset: r.Offset, Key: r.Key, Revision: r.Rev, Excerpt: cut(excerpt, maxExcerpt), Role: role,
	}
}

func cut(s string, n int) string {
	i := 0
	for j := range s {
		if i == n {
			return s[:j] + "…"
		}
		i++
	}
	return s
}

// result settles the outcome.
func (p *Pass) result() report.Result {
	r := report.Result{Rule: p.rule.ID, Subject: "cluster", Gaps: p.gaps}
	if p.node != nil {
		r.Subject = p.node.Name
		if r.Subject == "" {
			r.Subject = "cluster files"
		}
	}
	if r.Gaps == nil {
		r.Gaps = []report.Gap{}
	}
	switch {
	case p.err != nil:
		r.Outcome, r.Detail = report.Errored, p.err.Error()
	case len(p.findings) > 0:
		r.Outcome = report.Fail
	case p.na != "":
		r.Outcome, r.Detail = report.NotApplicable, p.na
	case p.unknown:
		r.Outcome = report.Unknown
	default:
		r.Outcome = report.Pass
	}
	return r
}
