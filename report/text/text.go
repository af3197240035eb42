// Package text writes a report for a terminal. Its first screen is what
// somebody pastes into a ticket: verdict, state, findings, what is missing.
package text

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"

	"coldplane/report"
)

// Options of the text forms.
type Options struct {
	Width int  // columns; 0 is 100
	Color bool // ANSI colours
	Wide  bool // all evidence, info findings, results
}

const (
	maxMessage = 600 // runes
	maxValue   = 160
)

// Write writes the report.
func Write(w io.Writer, r *report.Report, o Options) error {
	if o.Width <= 0 {
		o.Width = 100
	}
	o.Width = max(o.Width, 40)
	b := bufio.NewWriter(w)
	p := &printer{w: b, o: o, s: style{o.Color}, r: r}
	p.verdict()
	p.inventory()
	p.findings()
	p.gaps()
	p.inputs()
	if o.Wide {
		p.results()
	}
	return b.Flush() // bufio keeps the first write error
}

type printer struct {
	w *bufio.Writer
	o Options
	s style
	r *report.Report
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// para prints wrapped text; the first line begins with first, the others with
// as many blanks.
func (p *printer) para(indent int, first, s string) {
	for i, l := range wrap(report.Visible(s, maxMessage), p.o.Width-indent) {
		if i == 0 && first != "" {
			p.line("%s%s", first, l)
			continue
		}
		p.line("%s%s", strings.Repeat(" ", indent), l)
	}
}

func (p *printer) verdict() {
	v, r := p.r.Verdict, p.r
	head := map[string]string{
		report.StateCause: "PROBABLE CAUSE", report.StateCandidates: "CANDIDATES", report.StateUndetermined: "UNDETERMINED", report.StateHealthy: "HEALTHY",
	}[v.State]
	if f := r.HeadlineFinding(); f != nil {
		tag := strings.ToUpper(string(f.Severity))
		p.line("%s  %s  %s", p.s.severity(f.Severity, tag), p.s.bold(f.Rule), p.s.bold(report.Visible(f.Title, 200)))
	} else {
		p.line("%s", p.s.bold(head))
	}
	p.para(0, "", v.Summary)
	if len(v.Chain) > 1 {
		p.line("")
		p.line("%s", p.s.bold("How it hangs together"))
		for _, l := range v.Chain {
			if f := r.Find(l.Finding); f != nil {
				p.para(4, "  → ", strings.TrimSpace(f.Rule+" "+at(f.Node)+": "+l.Because))
			}
		}
	}
	for i, c := range v.Candidates {
		if f := r.Find(c.Finding); f != nil {
			if i == 0 {
				p.line("")
				p.line("%s", p.s.bold("Candidates"))
			}
			p.para(4, fmt.Sprintf("  %d ", i+1), f.Rule+" "+f.Message+". Decides: "+c.Decides)
		}
	}
	if len(v.DoNot) > 0 {
		p.line("")
		for _, d := range v.DoNot {
			p.para(8, p.s.severity(report.Critical, "Do not: "), d)
		}
	}
	p.line("")
	asOf := "unknown (age questions are unanswered; give --as-of)"
	if r.AsOf != nil {
		asOf = r.AsOf.UTC().Format("2006-01-02 15:04:05Z") + " (" + r.AsOfSource + ")"
	}
	p.line("control plane %s   user traffic %s   as of %s", p.s.plane(v.Control), p.s.plane(v.UserPlane), asOf)
	var counts []string
	for _, s := range report.Severities() {
		if n := r.Count(s); n > 0 {
			counts = append(counts, p.s.severity(s, fmt.Sprintf("%d %s", n, s)))
		}
	}
	if len(counts) == 0 {
		counts = []string{"none"}
	}
	oc := r.Outcomes()
	p.line("findings: %s   answered: %d pass, %d fail, %d not applicable   unanswered: %d%s", strings.Join(counts, ", "),
		oc[report.Pass], oc[report.Fail], oc[report.NotApplicable], oc[report.Unknown], failed(oc[report.Errored]))
}

func failed(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("   failed: %d", n)
}

func at(node string) string {
	if node == "" {
		return ""
	}
	return "on " + node
}

func (p *printer) inventory() {
	if len(p.r.Inputs) == 0 {
		return
	}
	names := map[string]bool{}
	var nodes []string
	for _, res := range p.r.Results {
		if res.Subject != "cluster" && !names[res.Subject] {
			names[res.Subject] = true
			nodes = append(nodes, report.Visible(res.Subject, 60))
		}
	}
	if len(nodes) > 0 {
		p.para(7, "nodes: ", strings.Join(nodes, ", "))
	}
}

func (p *printer) findings() {
	shown := 0
	for _, f := range p.r.Findings {
		if f.Severity == report.Info && !p.o.Wide {
			continue
		}
		shown++
		p.line("")
		p.finding(f)
	}
	if hidden := len(p.r.Findings) - shown; hidden > 0 {
		p.line("")
		p.line("%s", p.s.dim(fmt.Sprintf("%d informational findings are shown by -o wide", hidden)))
	}
	if n := len(p.r.Suppressed); n > 0 {
		p.line("")
		p.line("%d findings are waived:", n)
		for _, f := range p.r.Suppressed {
			p.para(4, "  - ", fmt.Sprintf("%s %s %s: %s", f.Rule, f.Node, f.Subject, f.Waiver.Reason))
		}
	}
}

func (p *printer) finding(f report.Finding) {
	where := report.Visible(strings.TrimSpace(strings.Join([]string{f.Node, f.Subject}, "  ")), 120)
	conf := ""
	if f.Confidence != report.Certain {
		conf = " (" + string(f.Confidence) + ")"
	}
	p.line("%s  %s  %s%s", p.s.severity(f.Severity, fmt.Sprintf("%-8s", strings.ToUpper(string(f.Severity)))), p.s.bold(f.Rule), where, conf)
	p.para(2, "  ", f.Message)
	for i, e := range f.Evidence {
		if i >= 4 && !p.o.Wide {
			p.line("    %s", p.s.dim(fmt.Sprintf("… and %d more places (-o wide)", len(f.Evidence)-i)))
			break
		}
		p.line("    %s %s", Place(e), p.s.dim(report.Visible(e.Excerpt, maxValue)))
	}
	for i, s := range f.Fix {
		if i >= 6 && !p.o.Wide {
			p.line("    %s", p.s.dim("… more steps: coldplane explain "+f.Rule))
			break
		}
		lead := "fix "
		if len(f.Fix) > 1 {
			lead = fmt.Sprintf("%d. ", i+1)
			if i == 0 {
				p.line("  fix:")
			}
		}
		p.para(2+len(lead), "  "+lead, s.Text)
		if s.Command != "" {
			for l := range strings.SplitSeq(s.Command, "\n") {
				p.line("       $ %s", report.Visible(l, 0))
			}
		}
	}
}

// Place writes where evidence lies, as path:line or path and key.
func Place(e report.Evidence) string {
	s := report.Visible(e.Path, 200)
	if e.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, e.Line)
	}
	if e.Key != "" {
		s += " " + report.Visible(e.Key, 200)
		if e.Revision > 0 {
			s += fmt.Sprintf("@%d", e.Revision)
		}
	} else if e.Offset > 0 {
		s += fmt.Sprintf(" +%d", e.Offset)
	}
	if e.Node != "" && !strings.Contains("/"+e.Path+"/", "/nodes/"+e.Node+"/") {
		s = report.Visible(e.Node, 60) + ":" + s
	}
	return s
}

func (p *printer) gaps() {
	gaps := p.r.Gaps()
	if len(gaps) == 0 {
		return
	}
	p.line("")
	p.line("%s", p.s.bold("Could not be judged"))
	for i, g := range gaps {
		if i >= 12 && !p.o.Wide {
			p.line("  %s", p.s.dim(fmt.Sprintf("… and %d more (-o wide)", len(gaps)-i)))
			break
		}
		node := ""
		if g.Node != "" {
			node = " on " + g.Node
		}
		detail := ""
		if g.Detail != "" {
			detail = ": " + g.Detail
		}
		rules := strings.Join(g.Rules, " ")
		if len(g.Rules) > 6 && !p.o.Wide {
			rules = fmt.Sprintf("%s and %d more", strings.Join(g.Rules[:5], " "), len(g.Rules)-5)
		}
		p.para(4, "  - ", fmt.Sprintf("%s%s is %s%s (%s)", g.Evidence, node, g.Reason, detail, rules))
	}
	if len(p.r.Verdict.Collect) > 0 {
		p.line("%s", p.s.bold("To judge more, collect"))
		for _, c := range p.r.Verdict.Collect {
			p.para(4, "  - ", c.What)
			p.line("       $ %s", report.Visible(c.Command, 0))
		}
	}
}

func (p *printer) inputs() {
	p.line("")
	for _, in := range p.r.Inputs {
		s := fmt.Sprintf("%s  %s  %s  %s", orDash(in.ID), report.Visible(path.Clean(in.Path), 120), orDash(in.Format), in.State)
		if in.Detail != "" {
			s += ": " + report.Visible(in.Detail, 200)
		}
		p.line("%s", p.s.dim("input "+s))
		if in.SHA256 != "" {
			p.line("%s", p.s.dim("      sha256 "+in.SHA256))
		}
		for _, x := range in.Refused {
			p.line("%s", p.s.dim("      refused "+report.Visible(x.Name, 120)+": "+report.Visible(x.Why, 120)))
		}
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (p *printer) results() {
	p.line("")
	p.line("%s", p.s.bold("Every rule's outcome"))
	for _, x := range p.r.Results {
		s := fmt.Sprintf("  %s  %-14s  %s", x.Rule, x.Outcome, report.Visible(x.Subject, 60))
		if x.Detail != "" {
			s += "  " + report.Visible(x.Detail, 160)
		}
		p.line("%s", s)
	}
}
