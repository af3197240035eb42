package text

import (
	"fmt"
	"strings"

	"coldplane/report"
)

// plan prints the checklist of a pre-upgrade audit.
func (p *printer) plan() {
	pl := p.r.Plan
	if pl == nil {
		return
	}
	p.head("Upgrade plan")
	from := pl.From
	if from == "" {
		from = "?"
	}
	p.para(2, safe("  "), fmt.Sprintf("%s → %s: %s. %s", from, pl.Target, strings.ToUpper(pl.State), pl.Summary))
	p.planFindings("Stops it", pl.Blockers)
	p.planFindings("Settle first", pl.Warnings)
	if len(pl.First) > 0 {
		p.line("  %s", p.s.bold(p.say.T("Do first")))
		p.steps(pl.First, 4, "")
	}
	for _, st := range pl.Stages {
		head := "Then to " + st.Version
		if st.Etcd != "" {
			head += " with etcd " + st.Etcd
		}
		p.line("  %s", p.s.bold(head))
		for i, s := range st.Steps {
			lead := fmt.Sprintf("%d. ", i+1)
			text := s.Text
			if s.Node != "" {
				text = s.Node + ": " + text
			}
			p.para(4+len(lead), safe("    "+lead), text)
			p.command(s.Command, 4+len(lead))
		}
	}
	if len(pl.Rewrites) > 0 {
		p.line("  %s", p.s.bold(p.say.T("What kubeadm rewrites")))
		for i, w := range pl.Rewrites {
			if i >= 12 && !p.o.Wide {
				p.line("    %s", p.s.dim(fmt.Sprintf("… and %d more (-o wide)", len(pl.Rewrites)-i)))
				break
			}
			p.para(4, safe("    "), rewriteText(w))
		}
	}
}

func rewriteText(w report.Rewrite) string {
	s := fmt.Sprintf("%s %s: %s", w.Node, w.Component, w.Item)
	switch {
	case w.Want == "":
		s += " = " + w.Have + " goes away"
	case w.Have == "":
		s += " = " + w.Want + " is added"
	default:
		s += ": " + w.Have + " → " + w.Want
	}
	if w.HandEdit {
		s += " (edited by hand"
		if w.Loses != "" {
			s += "; " + w.Loses
		}
		s += ")"
	}
	return s
}

func (p *printer) planFindings(head string, ids []string) {
	if len(ids) == 0 {
		return
	}
	p.line("  %s", p.s.bold(p.say.T(head)))
	for _, id := range ids {
		if f := p.r.Find(id); f != nil {
			p.para(4, safe("    "), f.Rule+" "+f.Message)
		}
	}
}

// baseline prints what changed since an earlier report.
func (p *printer) baseline() {
	b := p.r.Baseline
	if b == nil {
		return
	}
	p.head("Since the baseline")
	p.line("  %s", fmt.Sprintf("%d new, %d fixed, %d not answered any more, %d unchanged", len(b.New), len(b.Fixed), len(b.Unanswered), b.Unchanged))
	for _, id := range b.New {
		if f := p.r.Find(id); f != nil {
			p.para(4, safe("  + "), string(f.Severity)+" "+f.Rule+" "+f.Message)
		}
	}
	for _, f := range b.Fixed {
		p.para(4, safe("  - "), string(f.Severity)+" "+f.Rule+" "+f.Message)
	}
	for _, f := range b.Unanswered {
		p.para(4, safe("  ? "), string(f.Severity)+" "+f.Rule+" "+f.Message)
	}
}
