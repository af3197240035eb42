package facts

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/quorum"
	"coldplane/report"
)

// members joins the quorum view into the report's member table and the
// arithmetic of the first cluster.
func members(c *analyze.Ctx) ([]report.Member, *report.Quorum) {
	v, err := quorum.Joined.Get(c)
	if err != nil || len(v.Clusters) == 0 {
		return nil, nil
	}
	nodes, _ := quorum.Nodes.Get(c)
	var rows []report.Member
	for _, cl := range v.Clusters {
		for _, m := range cl.Members {
			rows = append(rows, memberRow(cl, m, nodes))
		}
	}
	q := arithmetic(v.Clusters[0])
	if len(v.Clusters) > 1 {
		q.Text += fmt.Sprintf(" The evidence shows %d etcd clusters; this is the one most evidence speaks of.", len(v.Clusters))
	}
	return rows, q
}

func memberRow(cl *quorum.Cluster, m *quorum.Member, nodes *quorum.NodeObjects) report.Member {
	row := report.Member{
		ID: quorum.ID(m.ID), Name: m.Name, PeerURLs: orEmpty(m.PeerURLs), ClientURLs: orEmpty(m.ClientURLs),
		Learner: m.Learner, Leader: cl.Leader != 0 && cl.Leader == m.ID, State: report.NotKnown,
	}
	if cl.ID != 0 {
		row.Cluster = quorum.ID(cl.ID)
	}
	if n := nodes.Of(m); n != nil {
		row.Node, row.Domain = n.Name, n.Zone
	}
	switch {
	case m.Ghost:
		row.State, row.Why = report.Dead, "a record without a member: "+m.Why
	case m.Life == quorum.Alive:
		row.State = report.Alive
	case m.Life == quorum.Silent:
		row.State = report.Dead
	}
	for _, p := range m.Proofs {
		if p.Life == m.Life && row.Why == "" {
			row.Why = p.Text
			if !p.At.IsZero() {
				t := p.At.UTC()
				row.Time = &t
			}
		}
	}
	for _, s := range m.Claims {
		if s.Source.Self == m.ID && s.Source.Node != nil {
			row.Node = s.Source.Node.Name
			row.Term, row.Index = s.Source.Term, s.Source.Index
		}
		if row.Source == "" {
			row.Source = s.Ref.Path
		}
	}
	for _, ver := range cl.Versions {
		if ver.Member == m.ID && ver.Server {
			row.Version = ver.Text
		}
	}
	return row
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// arithmetic is the quorum of a cluster and what each further loss would do.
func arithmetic(cl *quorum.Cluster) *report.Quorum {
	s := cl.Sum()
	worst, best := s.Tolerance()
	q := &report.Quorum{
		Voters: s.Voters, Need: s.Quorum, AliveMin: s.Alive, AliveMax: s.Voters - s.Silent, ToleranceMin: worst, ToleranceMax: best,
	}
	for _, m := range cl.Members {
		if m.Learner && !m.Ghost {
			q.Learners++
		}
	}
	if cl.ID != 0 {
		q.Cluster = quorum.ID(cl.ID)
	}
	if len(cl.Sources) > 0 {
		q.Source = cl.Sources[0].Ref.Path
	}
	switch {
	case best < 0:
		q.State = "lost"
		q.Text = fmt.Sprintf("%d of %d voters do not answer; %d are needed.", s.Silent, s.Voters, s.Quorum)
	case worst >= 1, s.Voters == 1 && s.Alive == 1:
		q.State = "held"
		q.Text = fmt.Sprintf("%d of %d voters seen alive; %d are needed; %d more may fail.", s.Alive, s.Voters, s.Quorum, worst)
	case worst == 0:
		q.State = "at-risk"
		q.Text = fmt.Sprintf("%d of %d voters seen alive; the loss of one more ends it.", s.Alive, s.Voters)
	default:
		q.State = "unknown"
		q.Text = fmt.Sprintf("%d voters, %d are needed; %d seen alive, nothing is known of %d.", s.Voters, s.Quorum, s.Alive, s.Unknown)
	}
	for lost := 1; lost <= s.Voters && lost <= 4; lost++ {
		left := s.Voters - s.Silent - lost
		if left < 0 {
			break
		}
		l := report.Loss{Lost: lost, Left: left, Quorum: "unknown"}
		switch {
		case left < s.Quorum:
			l.Quorum, l.Text = "lost", "no writes, no consistent reads"
		case s.Alive-lost >= s.Quorum:
			l.Quorum = "held"
		default:
			l.Text = "depends on members nothing is known of"
		}
		q.Losses = append(q.Losses, l)
	}
	return q
}
