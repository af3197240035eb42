package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"coldplane/report"
	"coldplane/report/words"
)

// quorumView is the members, their arithmetic and the picture of both.
type quorumView struct {
	Quorum   *report.Quorum
	Members  []report.Member
	Picture  *picture
	Clusters int // different cluster ids among the members
}

func newQuorum(r *report.Report, say *words.Words) *quorumView {
	ms, _ := report.Fact[[]report.Member](r, report.FactMembers)
	q, ok := report.Fact[report.Quorum](r, report.FactQuorum)
	if !ok && len(ms) == 0 {
		return nil
	}
	v := &quorumView{Members: ms}
	if ok {
		v.Quorum = &q
	}
	clusters := map[string]bool{}
	for _, m := range ms {
		clusters[m.Cluster] = true
	}
	v.Clusters = len(clusters)
	if len(ms) > 0 && len(ms) <= 60 {
		v.Picture = members(ms, say)
	}
	return v
}

// members draws each member as a circle in the box of its failure domain;
// members of another cluster stand in boxes of their own.
func members(ms []report.Member, say *words.Words) *picture {
	type group struct {
		name string
		ms   []report.Member
	}
	var groups []group
	clusters := map[string]bool{}
	for _, m := range ms {
		clusters[m.Cluster] = true
	}
	for _, m := range ms {
		name := m.Domain
		if name == "" {
			name = say.T("failure domain not known")
		}
		if len(clusters) > 1 && m.Cluster != "" {
			if name = say.T("cluster %s", m.Cluster); m.Domain != "" {
				name += " · " + m.Domain
			}
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{name: name})
		}
		groups[i].ms = append(groups[i].ms, m)
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(a.name, b.name) })
	p := &picture{W: 960, ID: "members", Label: say.T("etcd members by failure domain")}
	const size, gap = 150.0, 14.0
	x, y, high := 0.0, 0.0, 178.0
	for _, g := range groups {
		w := size*float64(len(g.ms)) + gap
		if x > 0 && x+w > float64(p.W) {
			x, y = 0, y+high+gap
		}
		perRow := max(1, int((float64(p.W)-gap)/size))
		rows := (len(g.ms) + perRow - 1) / perRow
		w = min(w, float64(p.W))
		p.rect(x, y, w, high*float64(rows), "domain", "")
		p.text(x+10, y+20, "start", "small", fit(g.name, (w-16)*1.12))
		for i, m := range g.ms {
			p.member(x+gap/2+size*(float64(i%perRow)+0.5), y+high*float64(i/perRow)+84, m, say)
		}
		y += high * float64(rows-1)
		x += w + gap
	}
	p.H = int(y + high + 2)
	return p
}

func (p *picture) member(x, y float64, m report.Member, say *words.Words) {
	name := m.Name
	if name == "" {
		name = m.ID
	}
	class := "member " + stateClass(m.State)
	if m.Learner {
		class += " learner"
	}
	title := strings.Join([]string{name, m.ID, m.Node, say.T(m.State), m.Why}, " ")
	p.circle(x, y, 36, class, title)
	p.text(x, y+7, "middle", "mark "+stateClass(m.State), stateMark(m.State))
	if m.Leader {
		p.text(x, y-42, "middle", "small", "★ "+say.T("leader"))
	}
	role := say.T("voter")
	if m.Learner {
		role = say.T("learner")
	}
	p.text(x, y+56, "middle", "strong", fit(name, 145))
	p.text(x, y+74, "middle", "small", fit(fmt.Sprintf("%s, %s", role, say.T(m.State)), 145))
}

func stateClass(s string) string {
	switch s {
	case report.Alive, report.PlaneUp, report.Good, "held":
		return "good"
	case report.Dead, report.PlaneDown, report.Bad, "lost":
		return "bad"
	case report.LastSeen, report.PlaneDegraded, "at-risk":
		return "fair"
	}
	return "unknown"
}

func stateMark(s string) string {
	switch stateClass(s) {
	case "good":
		return "●"
	case "bad":
		return "✕"
	case "fair":
		return "◐"
	}
	return "?"
}
