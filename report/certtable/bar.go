package certtable

import (
	"time"

	"coldplane/report"
)

// The bar shows a year before and a year after the time of judgement.
const (
	barCells = 24
	barSpan  = 365 * 24 * time.Hour // to each side
)

// cell states of a bar.
const (
	cellNone  = '.' // not valid at that time
	cellPast  = '-' // valid, gone by
	cellAhead = '=' // valid, still to come
	cellMore  = '>' // goes on beyond the bar
)

// bar draws a certificate's validity around its time of judgement, which
// stands as | between the halves; "" when there is no such time.
func bar(c report.Certificate) string {
	if c.AsOf == nil || c.NotAfter.IsZero() {
		return ""
	}
	start := c.AsOf.Add(-barSpan)
	step := 2 * barSpan / barCells
	out := make([]rune, 0, barCells+1)
	for i := range barCells {
		if i == barCells/2 {
			out = append(out, '|')
		}
		mid := start.Add(time.Duration(i)*step + step/2)
		switch {
		case i == barCells/2 && c.NotAfter.After(*c.AsOf) && !c.NotBefore.After(*c.AsOf):
			out = append(out, cellAhead) // good now, however short
		case mid.Before(c.NotBefore) || mid.After(c.NotAfter):
			out = append(out, cellNone)
		case i < barCells/2:
			out = append(out, cellPast)
		case i == barCells-1 && c.NotAfter.After(start.Add(2*barSpan)):
			out = append(out, cellMore)
		default:
			out = append(out, cellAhead)
		}
	}
	return string(out)
}

// A span is a bar in percent of its width, for drawing.
type span struct{ From, Now, To float64 }

func spanOf(c report.Certificate) (s span, ok bool) {
	if c.AsOf == nil || c.NotAfter.IsZero() {
		return span{}, false
	}
	start := c.AsOf.Add(-barSpan)
	pct := func(t time.Time) float64 {
		p := 100 * float64(t.Sub(start)) / float64(2*barSpan)
		return min(max(p, 0), 100)
	}
	return span{pct(c.NotBefore), 50, pct(c.NotAfter)}, true
}
