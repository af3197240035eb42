// Package markdown writes a report as the block somebody pastes into a ticket.
//
// Whatever comes from evidence stands in code spans or fenced blocks, so that
// no ticket system makes a link, an image, a mention or markup of it.
package markdown

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"coldplane/report"
	"coldplane/report/words"
)

const (
	maxText     = 700 // runes of a sentence
	maxValue    = 240
	maxFindings = 30 // without Wide
	maxGaps     = 15
	maxPlaces   = 4
)

// Write writes the report.
func Write(w io.Writer, r *report.Report, o report.Options) error {
	b := bufio.NewWriter(w)
	say := words.For(o.Lang)
	p := &printer{w: b, r: say.Report(r, o), o: o, say: say}
	p.verdict()
	p.findings()
	p.gaps()
	if o.Wide {
		p.versions()
	}
	p.inputs()
	return b.Flush() // bufio keeps the first write error
}

type printer struct {
	w   *bufio.Writer
	r   *report.Report
	o   report.Options
	say *words.Words
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

// head writes a heading with a blank line on either side.
func (p *printer) head(s string) { p.line("\n**%s**\n", p.say.T(s)) }

func (p *printer) verdict() {
	v := p.r.Verdict
	if f := p.r.HeadlineFinding(); f != nil {
		p.line("### coldplane: %s %s %s", p.severity(f.Severity), Code(f.Rule, 12), p.title(f))
	} else {
		p.line("### coldplane: %s", p.say.T(v.Heading()))
	}
	if b, ok := report.Fact[report.Banner](p.r, report.FactBanner); ok && b.Text != "" {
		p.line("\n%s", Code(b.Text, maxText))
	}
	p.line("\n%s", Code(v.Summary, maxText))
	if len(v.Chain) > 1 {
		p.head("How it hangs together")
		for i, l := range v.Chain {
			if f := p.r.Find(l.Finding); f != nil {
				p.line("%d. %s%s %s", i+1, Code(f.Rule, 12), p.on(f.Node), Code(l.Because, maxText))
			}
		}
	}
	if len(v.Candidates) > 0 {
		p.head("Candidates")
		for i, c := range v.Candidates {
			if f := p.r.Find(c.Finding); f != nil {
				p.line("%d. %s%s %s. %s %s", i+1, Code(f.Rule, 12), p.on(f.Node), Code(f.Message, maxText), p.say.T("What decides:"), Code(c.Decides, maxText))
			}
		}
	}
	if len(v.Do) > 0 {
		p.head("Do, in this order")
		p.steps(v.Do)
	}
	if len(v.DoNot) > 0 {
		p.head("Do not")
		for _, d := range v.DoNot {
			p.line("- %s", Code(d, maxText))
		}
	}
	p.head("State")
	p.line("- %s: %s", p.say.T("control plane"), Code(p.say.T(v.Control), 40))
	p.line("- %s: %s", p.say.T("user traffic"), Code(p.say.T(v.UserPlane), 40))
	if p.r.AsOf != nil {
		p.line("- %s: %s (%s)", p.say.T("as of"), p.r.AsOf.UTC().Format("2006-01-02 15:04:05Z"), Code(p.say.T(p.r.AsOfSource), 40))
	}
	if in, ok := report.Fact[report.Incident](p.r, report.FactIncident); ok {
		p.line("- %s; %s %s", p.say.T("incident from %s to %s", in.From.UTC().Format("2006-01-02 15:04:05Z"), in.To.UTC().Format("2006-01-02 15:04:05Z")), p.say.T("it begins with"), Code(in.Why, maxText))
	}
	if q, ok := report.Fact[report.Quorum](p.r, report.FactQuorum); ok {
		p.line("- %s: %s, %s", p.say.T("etcd quorum"), Code(p.say.T(q.State), 40), Code(q.Text, maxText))
		for _, x := range q.Recovery {
			p.line("  1. %s: %s", Code(x.Node, 120), Code(x.Text, maxText))
		}
	}
	oc := p.r.Outcomes()
	p.line("- %s", p.say.T("questions: %d pass, %d fail, %d unknown, %d not applicable", oc[report.Pass], oc[report.Fail], oc[report.Unknown], oc[report.NotApplicable]))
}

func (p *printer) severity(s report.Severity) string {
	if s.Rank() < 0 {
		return Code(string(s), 20)
	}
	return strings.ToUpper(p.say.T(string(s)))
}

func (p *printer) on(node string) string {
	if node == "" {
		return ""
	}
	return " " + Code(node, 80)
}

// title is plain text when it is the catalogue's own, a code span otherwise.
func (p *printer) title(f *report.Finding) string {
	d, ok := p.o.Rule(f.Rule)
	if !ok || d.Title != f.Title {
		return Code(f.Title, 200)
	}
	t, _ := p.say.Rule(d.ID, d.Title, d.Why, d.Fix)
	return escape(t.Title)
}

func (p *printer) findings() {
	if len(p.r.Findings) == 0 {
		return
	}
	p.head("Findings")
	shown := 0
	for i := range p.r.Findings {
		f := &p.r.Findings[i]
		if !p.o.Wide && (shown >= maxFindings || f.Severity == report.Info) {
			continue
		}
		shown++
		conf := ""
		if f.Confidence != report.Certain {
			conf = " (" + Code(p.say.T(string(f.Confidence)), 20) + ")"
		}
		p.line("- **%s** %s%s %s%s", p.severity(f.Severity), Code(f.Rule, 12), p.on(f.Node), p.title(f), conf)
		p.line("  - %s: %s", p.say.T("what"), Code(f.Message, maxText))
		for j, e := range f.Evidence {
			if j >= maxPlaces && !p.o.Wide {
				p.line("  - %s", p.say.T("and %d more places", len(f.Evidence)-j))
				break
			}
			p.line("  - %s: %s %s", p.say.T("where"), Code(e.Place(), maxText), excerpt(e.Excerpt))
		}
		for _, s := range f.Fix {
			p.line("  - %s: %s", p.say.T("fix"), Code(s.Text, maxText))
			p.command(s.Command, "    ")
		}
	}
	if n := len(p.r.Findings) - shown; n > 0 {
		p.line("\n%s", p.say.T("%d more findings are in the full report.", n))
	}
	if len(p.r.Suppressed) > 0 {
		p.head("Waived")
		for _, f := range p.r.Suppressed {
			reason := ""
			if f.Waiver != nil {
				reason = f.Waiver.Reason
			}
			p.line("- %s%s %s: %s", Code(f.Rule, 12), p.on(f.Node), Code(f.Subject, 120), Code(reason, maxText))
		}
	}
}

func excerpt(s string) string {
	if s == "" {
		return ""
	}
	return Code(s, maxValue)
}

func (p *printer) steps(steps []report.Step) {
	for i, s := range steps {
		lead := fmt.Sprintf("%d. ", i+1)
		p.line("%s%s", lead, Code(s.Text, maxText))
		p.command(s.Command, strings.Repeat(" ", len(lead)))
	}
}

// command writes a fenced block inside a list item.
func (p *printer) command(c, indent string) {
	if c == "" {
		return
	}
	fence := strings.Repeat("`", max(3, longest(c, '`')+1))
	p.line("")
	p.line("%s%ssh", indent, fence)
	for l := range strings.SplitSeq(c, "\n") {
		p.line("%s%s", indent, report.Visible(l, 4000))
	}
	p.line("%s%s", indent, fence)
}

func (p *printer) gaps() {
	gaps := p.r.GapGroups()
	if len(gaps) == 0 {
		return
	}
	p.head("Could not be judged")
	for i, g := range gaps {
		if i >= maxGaps && !p.o.Wide {
			p.line("- %s", p.say.T("and %d more", len(gaps)-i))
			break
		}
		s := Code(g.Evidence, 120) + p.on(strings.Join(g.Nodes, ", ")) + ": " + Code(p.say.T(g.Reason), 60)
		if g.Detail != "" {
			s += " " + Code(g.Detail, maxValue)
		}
		p.line("- %s (%s)", s, p.say.T("%d rules", len(g.Rules)))
	}
	if len(p.r.Verdict.Collect) > 0 {
		p.head("To judge more, collect")
		for _, c := range p.r.Verdict.Collect {
			p.line("- %s", Code(c.What, maxText))
			p.command(c.Command, "  ")
		}
	}
}

// versions writes what runs where.
func (p *printer) versions() {
	vs, _ := report.Fact[[]report.Version](p.r, report.FactVersions)
	if len(vs) == 0 {
		return
	}
	p.head("Versions and how they are known")
	for _, v := range vs {
		s := Code(v.Component, 120) + " " + Code(v.Version, 120) + p.on(v.Node)
		if v.Note != "" {
			s += ": " + Code(v.Note, maxValue)
		}
		p.line("- %s", s)
	}
}

func (p *printer) inputs() {
	if len(p.r.Inputs) == 0 {
		return
	}
	p.head("Inputs")
	for _, in := range p.r.Inputs {
		s := Code(in.Path, 200) + " " + Code(in.State, 60)
		if in.SHA256 != "" {
			s += " sha256 " + Code(in.SHA256, 64)
		}
		p.line("- %s", s)
	}
	p.line("\n%s %s, %s", p.say.T("Made by"), Code(p.r.Tool.Name+" "+p.r.Tool.Version, 80), p.say.T("%d rules", p.r.Tool.Rules))
}

// Code puts a string into a code span that it cannot leave. Line breaks and
// characters that do not show become escapes.
func Code(s string, max int) string {
	s = report.Visible(s, max)
	if strings.TrimSpace(s) == "" {
		return "`-`"
	}
	fence := strings.Repeat("`", longest(s, '`')+1)
	pad := ""
	if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' && s[len(s)-1] == ' ' {
		pad = " "
	}
	return fence + pad + s + pad + fence
}

// longest is the length of the longest run of c.
func longest(s string, c byte) int {
	n, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		n = max(n, run)
	}
	return n
}

// escape makes our own words safe as Markdown text.
func escape(s string) string {
	var b strings.Builder
	for _, r := range report.Visible(s, maxText) {
		if strings.ContainsRune("\\`*_{}[]<>#|~!&$^", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
