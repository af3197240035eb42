package text

import "coldplane/report"

// A style adds colour by meaning. The zero style adds none.
type style struct{ on bool }

func (s style) wrap(code, t string) string {
	if !s.on {
		return t
	}
	return "\x1b[" + code + "m" + t + "\x1b[0m"
}

func (s style) bold(t string) string { return s.wrap("1", t) }
func (s style) dim(t string) string  { return s.wrap("2", t) }

func (s style) severity(v report.Severity, t string) string {
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

func (s style) plane(p string) string {
	switch p {
	case report.PlaneUp:
		return s.wrap("32", p)
	case report.PlaneDegraded:
		return s.wrap("33", p)
	case report.PlaneDown:
		return s.wrap("1;31", p)
	}
	return p
}
