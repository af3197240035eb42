package text

import (
	"strings"

	"coldplane/report"
)

// safe is text that may reach the terminal as it is: our own words, or
// something from evidence that went through report.Visible. Everything else
// that line prints goes through it there.
type safe string

// A style adds colour by meaning. The zero style adds none.
type style struct{ on bool }

func (s style) wrap(code, t string) safe {
	t = report.Visible(t, 0)
	if !s.on || t == "" {
		return safe(t)
	}
	return safe("\x1b[" + code + "m" + t + "\x1b[0m")
}

func (s style) bold(t string) safe { return s.wrap("1", t) }
func (s style) dim(t string) safe  { return s.wrap("2", t) }

func (s style) severity(v report.Severity, t string) safe {
	switch v {
	case report.Critical:
		return s.wrap("1;31", t)
	case report.High:
		return s.wrap("31", t)
	case report.Medium:
		return s.wrap("33", t)
	case report.Low:
		return s.wrap("36", t)
	}
	return s.dim(t)
}

// state colours a plane's or a member's state; label is what is printed.
func (s style) state(p, label string) safe {
	switch p {
	case report.PlaneUp, report.Alive, report.Good:
		return s.wrap("32", label)
	case report.PlaneDegraded, report.LastSeen:
		return s.wrap("33", label)
	case report.PlaneDown, report.Dead, report.Bad:
		return s.wrap("1;31", label)
	}
	return s.wrap("0", label)
}

func upper(s string) string { return strings.ToUpper(s) }
