// Package text writes a report for a terminal. Its first screen is what
// somebody pastes into a ticket: verdict, chain, what to do and what not,
// state, findings, what could not be judged.
package text

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"coldplane/report"
	"coldplane/report/words"
)

const (
	maxMessage = 700 // runes
	maxPlaces  = 4   // evidence of one finding, without Wide
	maxSteps   = 6
	maxGaps    = 12
	minWidth   = 40
	maxLine    = 120 // columns of a paragraph; tables and paths may use the whole width
	manyInputs = 8   // from here inputs are a table
)

// Write writes the report.
func Write(w io.Writer, r *report.Report, o report.Options) error {
	if o.Width <= 0 {
		o.Width = 100
	}
	o.Width = max(o.Width, minWidth)
	b := bufio.NewWriter(w)
	say := words.For(o.Lang)
	p := &printer{w: b, o: o, s: style{o.Color}, r: say.Report(r, o), say: say}
	p.verdict()
	p.state()
	p.findings()
	p.waived()
	p.gaps()
	p.baseline()
	p.plan()
	if o.Wide {
		p.members()
		p.losses()
		p.versions()
		p.stores()
		p.certificates()
		p.timeline()
		p.results()
	}
	p.inputs()
	return b.Flush() // bufio keeps the first write error
}

type printer struct {
	w   *bufio.Writer
	o   report.Options
	s   style
	r   *report.Report
	say *words.Words
}

// line prints one line. Arguments that are plain strings are made visible;
// only safe ones are printed as they are.
func (p *printer) line(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = report.Visible(s, 0)
		}
	}
	s := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	p.w.WriteString(s)
	p.w.WriteByte('\n')
}

// head prints a heading after a blank line.
func (p *printer) head(s string) {
	p.line("")
	p.line("%s", p.s.bold(p.say.T(s)))
}

// para prints wrapped text; the first line begins with first, the others with
// as many blanks as indent says.
func (p *printer) para(indent int, first safe, s string) {
	for i, l := range wrap(report.Visible(s, maxMessage), min(p.o.Width, maxLine)-indent) {
		if i == 0 && first != "" {
			p.line("%s%s", first, safe(l))
			continue
		}
		p.line("%s%s", safe(strings.Repeat(" ", indent)), safe(l))
	}
}

// words are the texts of a finding's rule in the reader's language; ok is
// false when they are English anyway.
func (p *printer) words(f *report.Finding) (t words.RuleText, ok bool) {
	d, found := p.o.Rule(f.Rule)
	if !found || d.Title != f.Title {
		return words.RuleText{Title: f.Title}, false
	}
	return p.say.Rule(d.ID, d.Title, d.Why, d.Fix)
}

func (p *printer) title(f *report.Finding) string {
	t, _ := p.words(f)
	return t.Title
}

func (p *printer) severity(s report.Severity) safe {
	return p.s.severity(s, upper(p.say.T(string(s))))
}

// on names the node in front of a text.
func (p *printer) on(node string) string {
	if node == "" {
		return ""
	}
	return " " + p.say.T("on %s", cut(report.Visible(node, 200), 60))
}

// steps prints what to do, numbered when there is more than one.
func (p *printer) steps(steps []report.Step, indent int, rule string) {
	in := safe(strings.Repeat(" ", indent))
	for i, s := range steps {
		if i >= maxSteps && !p.o.Wide && rule != "" {
			p.line("%s%s", in, p.s.dim(p.say.T("… more steps: coldplane explain %s", rule)))
			break
		}
		lead := ""
		if len(steps) > 1 {
			lead = fmt.Sprintf("%d. ", i+1)
		}
		p.para(indent+len(lead), in+safe(lead), s.Text)
		p.command(s.Command, indent+len(lead))
	}
}

func (p *printer) command(c string, indent int) {
	if c == "" {
		return
	}
	for l := range strings.SplitSeq(c, "\n") {
		prompt := safe("$ ")
		if strings.HasPrefix(l, "#") {
			prompt = "" // a comment beside the command
		}
		p.line("%s%s%s", safe(strings.Repeat(" ", indent)), prompt, l)
	}
}
