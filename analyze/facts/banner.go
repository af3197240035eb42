package facts

import (
	"fmt"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/report"
)

// banner says how old the newest write is that the store proves.
func banner(c *analyze.Ctx) *report.Banner {
	s, err := objects.Cluster.Get(c)
	if err != nil {
		return nil
	}
	p, ok := s.LastWrite()
	if !ok {
		return nil
	}
	t := p.Time.UTC()
	b := &report.Banner{LastWrite: &t, Text: "objects as of " + t.Format("2006-01-02 15:04:05Z")}
	if a := c.AsOf(); !a.Time.IsZero() {
		age := int64(a.Time.Sub(t) / time.Second)
		b.AgeSeconds = &age
		if a.Source != "inferred" {
			b.Text += fmt.Sprintf(", %s before the evidence was taken", span(a.Time.Sub(t)))
		}
	}
	return b
}

func span(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 3*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 72*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}
