package html

import (
	"fmt"
	"math"
	"slices"
	"time"

	"coldplane/report"
	"coldplane/report/words"
)

const (
	maxLanes = 40
	maxMarks = 40
	maxRows  = 20_000 // entries listed; a browser takes no more with pleasure
)

// timelineView is the picture and the entries below it.
type timelineView struct {
	Picture  *picture
	Marks    []markView
	Events   []report.Event
	Hidden   int // entries not listed
	Outside  int // entries before or after the picture
	Incident *report.Incident
}

// A markView is one numbered entry of the story.
type markView struct {
	N int
	report.Event
}

type lane struct{ node, source string }

func newTimeline(r *report.Report, say *words.Words) *timelineView {
	if len(r.Timeline) == 0 {
		return nil
	}
	v := &timelineView{Events: r.Timeline}
	if len(v.Events) > maxRows {
		v.Hidden = len(v.Events) - maxRows
		v.Events = v.Events[:maxRows]
	}
	if in, ok := report.Fact[report.Incident](r, report.FactIncident); ok && in.To.After(in.From) {
		v.Incident = &in
	}
	for _, e := range r.Timeline {
		if e.Kind == report.EventMark && len(v.Marks) < maxMarks {
			v.Marks = append(v.Marks, markView{len(v.Marks) + 1, e})
		}
	}
	v.draw(r.Timeline, say)
	return v
}

// span is the time the picture shows: the incident with some of what came
// before, or everything.
func (v *timelineView) span(es []report.Event) (from, to time.Time) {
	from, to = es[0].Time, es[0].Time
	for _, e := range es {
		if e.Time.Before(from) {
			from = e.Time
		}
		end := e.Time
		if e.Until != nil {
			end = *e.Until
		}
		if end.After(to) {
			to = end
		}
	}
	if in := v.Incident; in != nil {
		d := in.To.Sub(in.From)
		if a := in.From.Add(-d / 2); a.After(from) {
			from = a
		}
		if b := in.To.Add(d / 4); b.Before(to) {
			to = b
		}
	}
	if v.Incident == nil {
		from = afterLull(es, from, to)
	}
	if !to.After(from) {
		to = from.Add(time.Minute)
	}
	return from, to
}

// afterLull moves the beginning past silences: when less than a quarter of the
// entries lie before one that takes more than half of the whole time, they are
// old history and would squeeze the rest into a line. es is sorted by time.
func afterLull(es []report.Event, from, to time.Time) time.Time {
	for first := 0; ; {
		at, lull := -1, to.Sub(from)/2
		for i := first + 1; i < len(es); i++ {
			if d := es[i].Time.Sub(es[i-1].Time); d > lull {
				at, lull = i, d
			}
		}
		if at < 0 || at*4 > len(es) {
			return from
		}
		first, from = at, es[at].Time
	}
}

func (v *timelineView) draw(es []report.Event, say *words.Words) {
	from, to := v.span(es)
	const left, right, high, bins = 190.0, 950.0, 22.0, 250
	top := 22.0
	if len(v.Marks) > 0 {
		top = 86 // room for the flags
	}
	p := &picture{W: 960, ID: "lanes", Label: say.T("What happened when, a lane per node and source")}
	x := func(t time.Time) float64 {
		return left + (right-left)*min(max(float64(t.Sub(from))/float64(to.Sub(from)), 0), 1)
	}
	var lanes []lane
	for _, e := range es {
		l := lane{e.Node, e.Source}
		if !slices.Contains(lanes, l) {
			lanes = append(lanes, l)
		}
		if len(lanes) > maxLanes {
			break
		}
	}
	slices.SortFunc(lanes, func(a, b lane) int {
		if a.node != b.node {
			if a.node < b.node {
				return -1
			}
			return 1
		}
		if a.source < b.source {
			return -1
		}
		return 1
	})
	lanes = lanes[:min(len(lanes), maxLanes)]
	row := map[lane]int{}
	for i, l := range lanes {
		row[l] = i
		y := top + high*float64(i)
		p.rect(left, y, right-left, high-3, "lane", "")
		p.text(left-8, y+15, "end", "small", fit(l.node+" "+l.source, left-12))
	}
	bottom := top + high*float64(len(lanes))
	if in := v.Incident; in != nil {
		p.rect(x(in.From), top-6, x(in.To)-x(in.From), bottom-top+6, "window", say.T("incident")+": "+in.Why)
		p.text(x(in.To), top-10, "end", "small", say.T("incident"))
	}
	counts := map[[2]int]int{}
	for _, e := range es {
		i, ok := row[lane{e.Node, e.Source}]
		if e.Time.After(to) || e.Time.Before(from) && (e.Until == nil || e.Until.Before(from)) {
			v.Outside++
			continue
		}
		y := top + high*float64(i)
		switch {
		case !ok:
		case e.Until != nil && (e.Kind == report.EventGap || e.Kind == report.EventSpan):
			p.rect(x(e.Time), y+2, max(x(*e.Until)-x(e.Time), 2), high-7, e.Kind, e.Text)
		default:
			counts[[2]int{i, int(float64(bins-1) * float64(e.Time.Sub(from)) / float64(to.Sub(from)))}]++
		}
	}
	width := (right - left) / bins
	for i := range lanes {
		for b := range bins {
			if n := counts[[2]int{i, b}]; n > 0 {
				class := fmt.Sprintf("tick k%d", min(int(math.Log2(float64(n))/2), 3))
				p.rect(left+width*float64(b), top+high*float64(i)+3, max(width, 2), high-9, class, say.T("%d entries", n))
			}
		}
	}
	p.axis(from, to, x, top, bottom)
	p.marks(v.Marks, from, to, x, bottom)
	p.H = int(bottom + 22)
	v.Picture = p
}

// marks puts numbered flags over the lanes, in three rows where they crowd.
func (p *picture) marks(ms []markView, from, to time.Time, x func(time.Time) float64, bottom float64) {
	taken := [3]float64{-100, -100, -100}
	for _, m := range ms {
		if m.Time.Before(from) || m.Time.After(to) {
			continue
		}
		at, level := x(m.Time), 0
		for i, t := range taken {
			if at-t > 20 {
				level = i
				break
			}
			if t < taken[level] {
				level = i
			}
		}
		taken[level] = at
		y := 14 + 22*float64(2-level)
		p.line(at, y+9, at, bottom, "flag")
		p.circle(at, y, 9.5, "flag", m.Text)
		p.text(at, y+4, "middle", "flag", fmt.Sprint(m.N))
	}
}

// axis writes about six round times below the lanes.
func (p *picture) axis(from, to time.Time, x func(time.Time) float64, top, bottom float64) {
	steps := []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, day, 7 * day, 30 * day, 90 * day, 365 * day}
	i := slices.IndexFunc(steps, func(s time.Duration) bool { return to.Sub(from)/s <= 7 })
	if i < 0 {
		i = len(steps) - 1
	}
	layout := "15:04:05"
	switch {
	case steps[i] >= day:
		layout = time.DateOnly
	case steps[i] >= time.Minute:
		layout = "01-02 15:04"
	}
	n := 0
	for t := from.UTC().Truncate(steps[i]).Add(steps[i]); !t.After(to) && n < 12; t = t.Add(steps[i]) {
		p.line(x(t), top-4, x(t), bottom, "grid")
		p.text(x(t), bottom+15, "middle", "small", t.Format(layout))
		n++
	}
}
