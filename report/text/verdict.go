package text

import (
	"fmt"
	"strings"

	"coldplane/report"
)

func (p *printer) verdict() {
	v := p.r.Verdict
	if f := p.r.HeadlineFinding(); f != nil {
		p.para(2, p.severity(f.Severity)+"  "+p.s.bold(f.Rule)+"  ", report.Visible(p.title(f), 200))
	} else {
		p.line("%s", p.s.bold(upper(p.say.T(v.Heading()))))
	}
	p.para(0, "", v.Summary)
	if b, ok := report.Fact[report.Banner](p.r, report.FactBanner); ok && b.Text != "" {
		p.line("%s", p.s.dim(cut(report.Visible(b.Text, maxMessage), p.o.Width)))
	}
	if in, ok := report.Fact[report.Incident](p.r, report.FactIncident); ok {
		p.para(2, "", p.say.T("incident from %s to %s", in.From.UTC().Format("2006-01-02 15:04:05Z"), in.To.UTC().Format("2006-01-02 15:04:05Z"))+"; "+p.say.T("it begins with")+" "+in.Why)
	}
	p.chain()
	p.candidates()
	if len(v.Do) > 0 {
		p.head("Do, in this order")
		p.steps(v.Do, 2, "")
	}
	if len(v.DoNot) > 0 {
		p.head("Do not")
		for _, d := range v.DoNot {
			p.para(4, "  "+p.s.severity(report.Critical, "✗")+" ", d)
		}
	}
}

// chain draws cause and effects, the cause first.
func (p *printer) chain() {
	if len(p.r.Verdict.Chain) < 2 {
		return
	}
	p.head("How it hangs together")
	first := true
	for _, l := range p.r.Verdict.Chain {
		f := p.r.Find(l.Finding)
		if f == nil {
			continue
		}
		lead := safe("  └▶ ")
		if first {
			lead = "  ●  "
		}
		first = false
		p.para(5, lead, f.Rule+p.on(f.Node)+": "+l.Because)
	}
}

func (p *printer) candidates() {
	n := 0
	for _, c := range p.r.Verdict.Candidates {
		f := p.r.Find(c.Finding)
		if f == nil {
			continue
		}
		if n++; n == 1 {
			p.head("Candidates")
		}
		p.para(5, safe(fmt.Sprintf("  %d. ", n)), f.Rule+p.on(f.Node)+": "+f.Message)
		p.para(7, "     ", p.say.T("What decides:")+" "+c.Decides)
	}
}

// state prints the planes, the matrix and what the report counts.
func (p *printer) state() {
	v := p.r.Verdict
	p.head("State")
	p.line("  %s %s   %s %s", p.say.T("control plane"), p.s.state(v.Control, upper(p.say.T(v.Control))), p.say.T("user traffic"), p.s.state(v.UserPlane, upper(p.say.T(v.UserPlane))))
	if p.r.AsOf != nil {
		p.line("  %s %s (%s)", p.say.T("as of"), p.r.AsOf.UTC().Format("2006-01-02 15:04:05Z"), p.say.T(p.r.AsOfSource))
	} else {
		p.para(2, "  ", p.say.T("as of: unknown, so questions about age are unanswered; give --as-of"))
	}
	if q, ok := report.Fact[report.Quorum](p.r, report.FactQuorum); ok {
		text := q.Text
		if text == "" {
			text = p.say.T("%d voters, %d needed, %d to %d alive", q.Voters, q.Need, q.AliveMin, q.AliveMax)
		}
		p.para(4, "  ", p.say.T("etcd quorum")+": "+p.say.T(q.State)+", "+text)
		for i, x := range q.Recovery {
			p.para(7, safe(fmt.Sprintf("    %d. ", i+1)), x.Node+": "+x.Text)
		}
	}
	p.matrix()
	p.nodes()
	var counts []string
	for _, s := range report.Severities() {
		if n := p.r.Count(s); n > 0 {
			counts = append(counts, string(p.s.severity(s, fmt.Sprintf("%d %s", n, p.say.T(string(s))))))
		}
	}
	if len(counts) == 0 {
		counts = []string{p.say.T("none")}
	}
	p.line("  %s: %s", p.say.T("findings"), safe(strings.Join(counts, ", ")))
	oc := p.r.Outcomes()
	s := p.say.T("questions: %d pass, %d fail, %d unknown, %d not applicable", oc[report.Pass], oc[report.Fail], oc[report.Unknown], oc[report.NotApplicable])
	if n := oc[report.Errored]; n > 0 {
		s += ", " + p.say.T("%d failed", n)
	}
	p.para(4, "  ", s)
}

// nodes prints who was looked at, and as what.
func (p *printer) nodes() {
	inv, _ := report.Fact[[]report.NodeInventory](p.r, report.FactInventory)
	var names []string
	for _, n := range inv {
		s := n.Node
		if len(n.Roles) > 0 {
			s += " (" + strings.Join(n.Roles, ", ") + ")"
		}
		names = append(names, s)
	}
	if len(names) > 0 {
		p.para(4, "  ", p.say.T("nodes")+": "+strings.Join(names, "; "))
	}
}
