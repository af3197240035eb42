package certtable

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"coldplane/report"
)

// Text writes the table for a terminal: one line a certificate, and below it,
// in the wide form, everything else that is known.
func Text(w io.Writer, t *Table, o report.Options) error {
	p := &printer{w: w, color: o.Color}
	if len(t.Certificates) == 0 {
		p.line("no certificates in the input")
		return p.err
	}
	if t.AsOf != nil {
		source := ""
		if t.AsOfSource != "" {
			source = " (" + t.AsOfSource + ")"
		}
		p.line("as of " + date(*t.AsOf) + source + "; bar: a year before | a year after")
		p.line("")
	}
	head := []string{"NODE", "FILE", "ROLE", "EXPIRES", "LEFT", "CHAIN", "KEY", "VALIDITY", "USED BY"}
	rows := [][]string{}
	for _, c := range t.Certificates {
		rows = append(rows, []string{c.Node, name(c), c.Role, date(c.NotAfter), left(c), short(c.Chain), short(c.KeyMatch), bar(c), firstUser(c)})
	}
	width := widths(head, rows)
	p.line(strings.TrimRight(row(head, width), " "))
	for i, r := range rows {
		p.certificate(t.Certificates[i], row(r, width), t.rules(t.Certificates[i]), o.Wide)
	}
	if len(t.Findings) > 0 {
		p.line("")
		for _, f := range t.Findings {
			where := f.Node
			if where != "" {
				where += ": "
			}
			p.line(fmt.Sprintf("%-8s %s %s%s", f.Severity, f.Rule, visible(where, 80), visible(f.Message, 400)))
		}
	}
	return p.err
}

type printer struct {
	w     io.Writer
	color bool
	err   error
}

func (p *printer) line(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s+"\n")
	}
}

func (p *printer) certificate(c report.Certificate, line, rules string, wide bool) {
	line = strings.TrimRight(line, " ")
	if p.color {
		switch {
		case c.Chain == report.Bad || c.KeyMatch == report.Bad || left(c) == "expired" || left(c) == "not yet" || left(c) == "unreadable":
			line = "\x1b[31m" + line + "\x1b[0m"
		case c.DaysLeft != nil && *c.DaysLeft < 28:
			line = "\x1b[33m" + line + "\x1b[0m"
		}
	}
	p.line(line)
	if !wide {
		return
	}
	detail := func(k, v string) {
		if v != "" {
			p.line("    " + k + strings.Repeat(" ", max(0, 9-len(k))) + visible(v, 2000))
		}
	}
	detail("subject", c.Subject)
	detail("issuer", c.Issuer)
	detail("serial", c.Serial)
	if !c.NotBefore.IsZero() {
		detail("from", date(c.NotBefore))
	}
	detail("names", strings.Join(c.SANs, ", "))
	detail("usages", strings.Join(c.Usages, ", "))
	detail("key", c.SPKI)
	detail("chain", c.ChainWhy)
	if c.External {
		detail("issued", "by a CA whose key is not on the node")
	}
	for _, u := range c.UsedBy {
		detail("used by", u)
	}
	detail("rules", rules)
}

func visible(s string, n int) string { return report.Visible(s, n) }

func short(s string) string {
	switch s {
	case report.Good:
		return "ok"
	case report.Bad:
		return "BAD"
	}
	return "?"
}

func firstUser(c report.Certificate) string {
	if len(c.UsedBy) == 0 {
		return "-"
	}
	who := c.UsedBy[0]
	if strings.ContainsAny(who, "/(") || strings.Contains(who, " --") {
		who, _, _ = strings.Cut(who, " ")
	}
	if len(c.UsedBy) > 1 {
		who += fmt.Sprintf(" +%d", len(c.UsedBy)-1)
	}
	return who
}

const maxCell = 64 // runes shown of a cell

func widths(head []string, rows [][]string) []int {
	w := make([]int, len(head))
	for i, h := range head {
		w[i] = len(h)
	}
	for _, r := range rows {
		for i := range r {
			r[i] = visible(r[i], maxCell)
			w[i] = max(w[i], utf8.RuneCountInString(r[i]))
		}
	}
	return w
}

func row(cells []string, width []int) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		b.WriteString(c)
		b.WriteString(strings.Repeat(" ", max(0, width[i]-utf8.RuneCountInString(c))))
	}
	return b.String()
}
