package text

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"

	"coldplane/bundle"
	"coldplane/report"
)

const maxCell = 120 // runes of a cell before the table's own limits

// table prints rows with aligned columns, no wider than the page. Cells are
// made visible first: the library passes control characters through.
func (p *printer) table(indent int, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	clean := func(row []string) []string {
		out := make([]string, len(row))
		for i, c := range row {
			out[i] = report.Visible(c, maxCell)
		}
		return out
	}
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, c := range clean(row) {
			widths[i] = max(widths[i], cells.StringWidth(c)+2)
		}
	}
	natural := 0
	for _, w := range widths {
		natural += w
	}
	var b strings.Builder
	opts := []tablewriter.Option{
		tablewriter.WithEastAsian(tw.Off),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft), tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithRendition(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		}),
		tablewriter.WithPadding(tw.Padding{Right: "  ", Overwrite: true}),
	}
	if natural > p.o.Width-indent {
		opts = append(opts, tablewriter.WithMaxWidth(p.o.Width-indent))
	}
	t := tablewriter.NewTable(&b, opts...)
	t.Header(clean(head))
	for _, r := range rows {
		if err := t.Append(clean(r)); err != nil {
			return
		}
	}
	if err := t.Render(); err != nil {
		return
	}
	for l := range strings.Lines(b.String()) {
		p.line("%s%s", safe(strings.Repeat(" ", indent)), safe(strings.TrimRight(l, " \n")))
	}
}

// matrix prints what is alive per node, a row per question. More nodes than
// fit become a list.
func (p *printer) matrix() {
	m, ok := report.Fact[report.Matrix](p.r, report.FactMatrix)
	if !ok || len(m.Rows) == 0 {
		return
	}
	subjects, names, cell := m.Grid()
	p.line("")
	if 26+12*len(subjects) > p.o.Width {
		for _, n := range names {
			var parts []string
			for _, s := range subjects {
				if c := cell(n, s); c != nil {
					parts = append(parts, s+" "+p.say.T(c.State))
				}
			}
			p.para(6, "  ", p.say.T(n.Name)+": "+strings.Join(parts, ", "))
		}
		p.line("")
		return
	}
	for _, plane := range []struct{ id, head string }{{report.PlaneOfControl, "control plane"}, {report.PlaneOfUsers, "user traffic"}} {
		var rows [][]string
		subjects := slices.DeleteFunc(slices.Clone(subjects), func(s string) bool {
			return !slices.ContainsFunc(names, func(n report.Question) bool {
				return (n.Plane == report.PlaneOfUsers) == (plane.id == report.PlaneOfUsers) && cell(n, s) != nil
			})
		})
		for _, n := range names {
			if (n.Plane == report.PlaneOfUsers) != (plane.id == report.PlaneOfUsers) {
				continue
			}
			row := []string{p.say.T(n.Name)}
			for _, s := range subjects {
				row = append(row, p.seen(cell(n, s)))
			}
			rows = append(rows, row)
		}
		if len(rows) > 0 {
			p.table(2, append([]string{p.say.T(plane.head)}, subjects...), rows)
			p.line("")
		}
	}
}

// seen words one cell of the matrix.
func (p *printer) seen(c *report.MatrixRow) string {
	switch {
	case c == nil:
		return "·"
	case c.State == report.LastSeen && c.Time != nil:
		layout := "01-02 15:04"
		if p.r.AsOf != nil && c.Time.UTC().Format(time.DateOnly) == p.r.AsOf.UTC().Format(time.DateOnly) {
			layout = "15:04:05"
		}
		return p.say.T(c.State) + " " + c.Time.UTC().Format(layout)
	}
	return p.say.T(c.State)
}

func (p *printer) members() {
	ms, _ := report.Fact[[]report.Member](p.r, report.FactMembers)
	if len(ms) == 0 {
		return
	}
	p.head("etcd members")
	var rows [][]string
	for _, m := range ms {
		role := p.say.T("voter")
		if m.Learner {
			role = p.say.T("learner")
		}
		if m.Leader {
			role += ", " + p.say.T("leader")
		}
		rows = append(rows, []string{m.Name, m.ID, m.Node, role, p.say.T(m.State), m.Version, fmt.Sprint(m.Revision), bundle.FormatBytes(m.Size), strings.Join(m.PeerURLs, " ")})
	}
	p.table(2, []string{p.say.T("name"), "id", p.say.T("node"), p.say.T("role"), p.say.T("state"), p.say.T("version"), p.say.T("revision"), p.say.T("size"), "peer URLs"}, rows)
}

func (p *printer) stores() {
	ss, _ := report.Fact[[]report.Store](p.r, report.FactStore)
	for _, s := range ss {
		p.head("etcd database")
		quota := p.say.T("unknown")
		if s.Quota != nil {
			quota = bundle.FormatBytes(*s.Quota) + " (" + s.QuotaSource + ")"
		}
		p.para(4, "  ", fmt.Sprintf("%s %s: %s, %s %s, %s %s, %s %s", s.Node, s.Path, bundle.FormatBytes(s.Size), p.say.T("in use"), bundle.FormatBytes(s.InUse), p.say.T("free"), bundle.FormatBytes(s.Free), p.say.T("quota"), quota))
		var rows [][]string
		for i, t := range s.Types {
			if i == 20 {
				break
			}
			rows = append(rows, []string{t.Type, bundle.FormatBytes(t.Live), bundle.FormatBytes(t.History), fmt.Sprint(t.Objects)})
		}
		p.table(2, []string{p.say.T("type"), p.say.T("live"), p.say.T("history"), p.say.T("objects")}, rows)
	}
}

func (p *printer) certificates() {
	cs, _ := report.Fact[[]report.Certificate](p.r, report.FactCertificates)
	if len(cs) == 0 {
		return
	}
	p.head("Certificates")
	cs = slices.Clone(cs)
	slices.SortStableFunc(cs, func(a, b report.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	var rows [][]string
	for _, c := range cs {
		days := "?"
		if c.DaysLeft != nil {
			days = fmt.Sprint(*c.DaysLeft)
		}
		rows = append(rows, []string{c.Node, c.Path, c.Subject, c.NotAfter.UTC().Format(time.DateOnly), days, p.say.T(c.Chain), p.say.T(c.KeyMatch)})
	}
	p.table(2, []string{p.say.T("node"), p.say.T("file"), p.say.T("subject"), p.say.T("expires"), p.say.T("days"), p.say.T("chain"), p.say.T("key")}, rows)
}

func (p *printer) timeline() {
	if len(p.r.Timeline) == 0 {
		return
	}
	p.head("Timeline")
	for _, e := range p.r.Timeline {
		s := e.Text
		if e.Until != nil {
			s += " (" + p.say.T("until %s", e.Until.UTC().Format("15:04:05Z")) + ")"
		}
		p.para(26, safe("  "+e.Time.UTC().Format("2006-01-02 15:04:05.0")+"  "), strings.TrimSpace(e.Node+" "+e.Source)+": "+s)
	}
}
