package html

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"coldplane/report"
	"coldplane/report/words"
)

const (
	day          = 24 * time.Hour
	ganttBack    = 400 * day // shown before as-of: a year's certificate and its renewal
	ganttAhead   = 400 * day
	ganttRows    = 150
	upgradeWidth = 30 * day // window after as-of in which an audited upgrade is taken to happen
)

// certsView is the certificates by expiry and their picture.
type certsView struct {
	Rows    []report.Certificate
	Picture *picture
	From    int64 // seconds of the picture's left edge, for the line of today
	To      int64
	Left    float64
	Right   float64
	Bottom  float64
	Hidden  int
}

func newCerts(r *report.Report, say *words.Words) *certsView {
	cs, _ := report.Fact[[]report.Certificate](r, report.FactCertificates)
	if len(cs) == 0 {
		return nil
	}
	cs = slices.Clone(cs)
	slices.SortStableFunc(cs, func(a, b report.Certificate) int {
		return cmp.Or(a.NotAfter.Compare(b.NotAfter), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Path, b.Path))
	})
	v := &certsView{Rows: cs}
	v.draw(r, say)
	return v
}

func (v *certsView) draw(r *report.Report, say *words.Words) {
	mid := v.Rows[0].NotAfter
	if r.AsOf != nil {
		mid = *r.AsOf
	}
	from, to := mid.Add(-ganttBack), mid.Add(ganttAhead)
	const left, right, rowHigh, top = 270.0, 950.0, 20.0, 44.0
	p := &picture{W: 960, ID: "gantt", Label: say.T("Life of each certificate around the as-of time")}
	x := func(t time.Time) float64 {
		return left + (right-left)*min(max(float64(t.Sub(from))/float64(to.Sub(from)), 0), 1)
	}
	rows := v.Rows[:min(len(v.Rows), ganttRows)]
	v.Hidden = len(v.Rows) - len(rows)
	bottom := top + rowHigh*float64(len(rows))
	if r.Target != "" {
		a, b := x(mid), x(mid.Add(upgradeWidth))
		p.rect(a, top-6, b-a, bottom-top+6, "window", say.T("upgrade window"))
		p.text(b+4, top-8, "start", "small", say.T("upgrade to %s", r.Target))
	}
	for m := time.Date(from.Year(), from.Month()+1, 1, 0, 0, 0, 0, time.UTC); m.Before(to); m = m.AddDate(0, 3, 0) {
		p.line(x(m), top-4, x(m), bottom, "grid")
		p.text(x(m), 14, "middle", "small", m.Format("2006-01"))
	}
	for i, c := range rows {
		y := top + rowHigh*float64(i)
		class := "good"
		switch {
		case c.DaysLeft == nil:
			class = "unknown"
		case *c.DaysLeft < 0:
			class = "bad"
		case *c.DaysLeft < 30:
			class = "fair"
		}
		title := fmt.Sprintf("%s %s, %s to %s", c.Node, c.Path, c.NotBefore.UTC().Format(time.DateOnly), c.NotAfter.UTC().Format(time.DateOnly))
		name := c.Role
		if name == "" {
			name = c.Path
		}
		if c.Node != "" {
			name = c.Node + " " + name
		}
		p.text(left-8, y+14, "end", "small", fit(name, left-14))
		a, b := x(c.NotBefore), x(c.NotAfter)
		p.rect(a, y+3, max(b-a, 2), rowHigh-6, "span "+class, title)
		switch {
		case c.NotAfter.After(to):
			p.text(right-4, y+14, "end", "small on-span", "→ "+c.NotAfter.UTC().Format(time.DateOnly))
		case b < left+90:
			p.text(left+4, y+14, "start", "small", "← "+c.NotAfter.UTC().Format(time.DateOnly))
		default:
			p.text(b-4, y+14, "end", "small on-span", c.NotAfter.UTC().Format(time.DateOnly))
		}
	}
	if r.AsOf != nil {
		p.line(x(mid), top-14, x(mid), bottom, "asof")
		p.text(x(mid), 30, "middle", "strong", say.T("as of")+" "+mid.UTC().Format(time.DateOnly))
	}
	p.H = int(bottom + 4)
	v.Picture, v.From, v.To, v.Left, v.Right, v.Bottom = p, from.Unix(), to.Unix(), left, right, bottom
}
