package facts

import (
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/report"
)

// A Part is one cluster of the input, with an engine over its nodes alone.
type Part struct {
	Name   string // "" when there is only one
	Engine *analyze.Engine
}

// inPresent adds what holds of a cluster as a whole: members, quorum, the age of
// its objects, and the matrix. Several clusters are told one after the other,
// each by its name; what sums them up is the worst of them.
func inPresent(parts []Part, out map[string]any) {
	var list []report.Member
	var quorums []*report.Quorum
	var banners []*report.Banner
	m := report.Matrix{}
	states := map[string]string{}
	for _, part := range parts {
		c := part.Engine.Ctx(nil)
		rows, q := members(c)
		if rows != nil {
			losses(c, q)
			list = append(list, rows...)
			if part.Name != "" {
				q.Text = strings.ToUpper(part.Name[:1]) + part.Name[1:] + ": " + q.Text
			}
			quorums = append(quorums, q)
		}
		if b := banner(c); b != nil {
			if part.Name != "" {
				b.Text = part.Name + ": " + b.Text
			}
			banners = append(banners, b)
		}
		if g := matrix(part.Engine, q); g != nil {
			for _, row := range g.Rows {
				if part.Name != "" && row.Subject == report.SubjectAll {
					key := row.Plane + "\x00" + row.Name
					if row.Name == report.RowControlPlane || row.Name == report.RowUserTraffic {
						states[key] = graver(states[key], row.State)
					}
					row.Subject = part.Name
				}
				m.Rows = append(m.Rows, row)
			}
		}
	}
	for _, s := range []struct{ plane, name string }{{report.PlaneOfControl, report.RowControlPlane}, {report.PlaneOfUsers, report.RowUserTraffic}} {
		if state := states[s.plane+"\x00"+s.name]; state != "" {
			m.Rows = append(m.Rows, report.MatrixRow{Plane: s.plane, Subject: report.SubjectAll, Name: s.name, State: state,
				Text: "the worst of the clusters in the input", Evidence: []report.Evidence{}})
		}
	}
	if len(list) > 0 {
		out[report.FactMembers] = list
	}
	if len(quorums) > 0 {
		out[report.FactQuorum] = *joinQuorums(quorums)
	}
	if len(banners) > 0 {
		out[report.FactBanner] = *joinBanners(banners)
	}
	if len(m.Rows) > 0 {
		out[report.FactMatrix] = m
	}
}

// graver is the worse of two states of a plane.
func graver(a, b string) string {
	order := []string{"", report.Alive, report.LastSeen, report.NotKnown, report.PlaneDegraded, report.Dead}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// joinQuorums gives the figures of the cluster that is worst off, and the loss
// tables of all.
func joinQuorums(qs []*report.Quorum) *report.Quorum {
	order := []string{"held", "unknown", "at-risk", "lost"}
	worst := slices.MaxFunc(qs, func(a, b *report.Quorum) int { return slices.Index(order, a.State) - slices.Index(order, b.State) })
	out := *worst
	for _, q := range qs {
		if q != worst {
			out.Text += " " + q.Text
			out.Nodes = append(slices.Clone(out.Nodes), q.Nodes...)
			out.Domains = append(slices.Clone(out.Domains), q.Domains...)
			out.Recovery = append(slices.Clone(out.Recovery), q.Recovery...)
		}
	}
	return &out
}

// joinBanners tells the age of every cluster's objects, the oldest deciding.
func joinBanners(bs []*report.Banner) *report.Banner {
	out := *bs[0]
	for _, b := range bs[1:] {
		out.Text += "; " + b.Text
		if at(b).Before(at(&out)) {
			out.LastWrite, out.AgeSeconds = b.LastWrite, b.AgeSeconds
		}
	}
	return &out
}

func at(b *report.Banner) time.Time {
	if b.LastWrite == nil {
		return time.Time{}
	}
	return *b.LastWrite
}
