package text

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"coldplane/report"
)

func (p *printer) findings() {
	if len(p.r.Findings) > 0 {
		p.head("Findings")
	}
	shown := 0
	for i := range p.r.Findings {
		f := &p.r.Findings[i]
		if f.Severity == report.Info && !p.o.Wide {
			continue
		}
		if shown > 0 {
			p.line("")
		}
		shown++
		p.finding(f)
	}
	if hidden := len(p.r.Findings) - shown; hidden > 0 {
		p.line("")
		p.line("%s", p.s.dim(p.say.T("%d informational findings are shown by -o wide", hidden)))
	}
}

func (p *printer) finding(f *report.Finding) {
	where := f.Subject
	if f.Node != "" {
		where = f.Node + "  " + where
	}
	if f.Confidence != report.Certain {
		where += " (" + p.say.T(string(f.Confidence)) + ")"
	}
	p.para(2, p.severity(f.Severity)+"  "+p.s.bold(f.Rule)+"  ", where)
	t, translated := p.words(f)
	if translated {
		p.para(2, "  ", t.Title)
	}
	p.para(2, "  ", f.Message)
	for i, e := range f.Evidence {
		if i >= maxPlaces && !p.o.Wide {
			p.line("    %s", p.s.dim(p.say.T("… and %d more places (-o wide)", len(f.Evidence)-i)))
			break
		}
		p.evidence(e)
	}
	v := p.r.Verdict
	switch {
	case len(f.Fix) == 0:
	case v.Headline != nil && *v.Headline == f.ID && slices.Equal(v.Do, f.Fix):
		p.line("  %s: %s", p.s.bold(p.say.T("fix")), p.say.T("see above, what to do"))
	default:
		p.line("  %s", p.s.bold(p.say.T("fix")))
		if d, _ := p.o.Rule(f.Rule); translated && t.Fix != d.Fix && !p.say.Speaks(f.Fix) {
			p.para(4, "    ", t.Fix)
		}
		p.steps(f.Fix, 4, f.Rule)
	}
}

// evidence prints a place, and what was seen there beside it or below.
func (p *printer) evidence(e report.Evidence) {
	place := report.Visible(e.Place(), 400)
	seen := report.Visible(e.Excerpt, 400)
	w := 4 + cells.StringWidth(place)
	switch {
	case seen == "":
		p.line("    %s", safe(place))
	case w+2+cells.StringWidth(seen) <= p.o.Width:
		p.line("    %s  %s", safe(place), p.s.dim(seen))
	default:
		p.line("    %s", safe(place))
		if !p.o.Wide {
			seen = cut(seen, p.o.Width-6)
		}
		p.line("      %s", p.s.dim(seen))
	}
}

func (p *printer) waived() {
	if len(p.r.Suppressed) == 0 {
		return
	}
	p.head("Waived")
	for _, f := range p.r.Suppressed {
		reason := ""
		if f.Waiver != nil {
			reason = f.Waiver.Reason
			if f.Waiver.Expires != "" {
				reason += " (" + p.say.T("until %s", f.Waiver.Expires) + ")"
			}
		}
		p.para(4, "  - ", strings.TrimSpace(f.Rule+" "+f.Node)+" "+f.Subject+": "+reason)
	}
}

func (p *printer) gaps() {
	gaps := p.r.GapGroups()
	if len(gaps) > 0 {
		p.head("Could not be judged")
	}
	for i, g := range gaps {
		if i >= maxGaps && !p.o.Wide {
			p.line("  %s", p.s.dim(p.say.T("… and %d more (-o wide)", len(gaps)-i)))
			break
		}
		s := g.Evidence + p.on(strings.Join(g.Nodes, ", ")) + ": " + p.say.T(g.Reason)
		if g.Detail != "" {
			s += ", " + g.Detail
		}
		rules := strings.Join(g.Rules, " ")
		if len(g.Rules) > 6 && !p.o.Wide {
			rules = strings.Join(g.Rules[:5], " ") + " " + p.say.T("and %d more", len(g.Rules)-5)
		}
		p.para(4, "  - ", s+" ("+rules+")")
	}
	if len(p.r.Verdict.Collect) == 0 {
		return
	}
	p.head("To judge more, collect")
	for _, c := range p.r.Verdict.Collect {
		p.para(4, "  - ", c.What)
		p.command(c.Command, 4)
	}
}

func (p *printer) inputs() {
	if len(p.r.Inputs) == 0 {
		return
	}
	p.head("Inputs")
	if len(p.r.Inputs) > manyInputs {
		p.inputTable()
		if !p.o.Wide {
			p.line("  %s", p.s.dim(p.say.T("digests and refused entries are shown by -o wide")))
			return
		}
	}
	for _, in := range p.r.Inputs {
		s := in.Path
		if in.Format != "" {
			s += ", " + in.Format
		}
		if in.Node != "" {
			s += ", " + in.Node
		}
		s += ", " + in.State
		if in.Detail != "" {
			s += ": " + in.Detail
		}
		p.para(4, "  ", s)
		if in.SHA256 != "" {
			p.line("    %s", p.s.dim("sha256 "+report.Visible(in.SHA256, 64)))
		}
		for i, x := range in.Refused {
			if i >= maxPlaces && !p.o.Wide {
				p.line("    %s", p.s.dim(p.say.T("… and %d more (-o wide)", len(in.Refused)-i)))
				break
			}
			p.para(6, "    ", p.say.T("refused")+" "+x.Name+": "+x.Why)
		}
	}
}

// inputTable is one line per input, for a directory of many bundles.
func (p *printer) inputTable() {
	head := []string{"id", p.say.T("node"), p.say.T("state")}
	for _, s := range report.Severities() {
		head = append(head, p.say.T(string(s)))
	}
	var rows [][]string
	for _, in := range p.r.PerInput() {
		row := []string{in.ID, in.Node, in.State}
		for _, s := range report.Severities() {
			n := "·"
			if c := in.Counts[s]; c > 0 {
				n = strconv.Itoa(c)
			}
			row = append(row, n)
		}
		rows = append(rows, append(row, path.Base(in.Path)))
	}
	p.table(2, append(head, p.say.T("input")), rows)
}

func (p *printer) results() {
	if len(p.r.Results) == 0 {
		return
	}
	p.head("Every rule's outcome")
	for _, x := range p.r.Results {
		p.para(30, safe("  "+pad(report.Visible(x.Rule, 12), 8)+pad(report.Visible(p.say.T(string(x.Outcome)), 16), 16)+"  "), x.Subject+"  "+x.Detail)
	}
}
