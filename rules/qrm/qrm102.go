package qrm

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM102", Name: "etcd-member-not-started-or-not-promoted", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "An etcd member never started, or a learner was never promoted",
		Why: "A voter that was added and never started counts against the quorum from the moment it was added. A learner does not vote, so the cluster tolerates " +
			"less than its size suggests, and etcd allows only one: the next control-plane node cannot join while it is there. kubeadm tries for two minutes to promote its learner and then gives up.",
		Fix: "If the machine is to become a member, repair its etcd first (peer port 2380 reachable both ways, clock, disk), then promote it. If it is not coming, remove the member by its id.",
		Links: []string{"https://github.com/kubernetes/kubeadm/issues/2997", "https://github.com/kubernetes/kubeadm/issues/3269",
			"https://etcd.io/docs/v3.6/learning/design-learner/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{quorum.Joined},
	Wants: []analyze.Need{logs.OnNode},
	Run:   notStarted,
})

func notStarted(p *analyze.Pass) error {
	v, _ := quorum.Joined.In(p)
	hits := joinHits(p)
	for _, c := range v.Clusters {
		if !live(c) {
			continue
		}
		for _, m := range c.Members {
			switch {
			case m.Ghost || quorum.Disagree(m):
				continue // QRM103, UPG402
			case m.Learner:
				learner(p, v, c, m, hits)
			case unstarted(m):
				unstartedVoter(p, v, c, m)
			}
		}
	}
	return nil
}

// unstarted tells a member that no source saw started, by a source that can
// know: after a restore the database lists names without client URLs until the
// members publish themselves.
func unstarted(m *quorum.Member) bool {
	if m.Started || m.Life == quorum.Alive {
		return false
	}
	for _, x := range m.Claims {
		if x.Source.Kind == quorum.List || x.Source.Kind == quorum.Store && !x.Source.Restored && !x.Source.Snapshot {
			return true
		}
	}
	return false
}

// joinHits are lines about a promotion that did not happen.
func joinHits(p *analyze.Pass) []logs.At {
	var out []logs.At
	for _, n := range p.All() {
		if l, err := logs.OnNode.Try(p, n); err == nil {
			out = append(out, l.Hits(0, "E30", "E31", "E33")...)
			out = append(out, l.Hits(signature.Kubeadm, "Q15")...)
		}
	}
	logs.SortHits(out)
	return out
}

func learner(p *analyze.Pass, v *quorum.View, c *quorum.Cluster, m *quorum.Member, hits []logs.At) {
	f := analyze.Finding{Subject: subject(v, c, "etcd member "+quorum.ID(m.ID)), Severity: report.Medium,
		Message: fmt.Sprintf("%s is a learner: it has no vote, so %s count", m.Label(), plural(len(c.Voters()), "voter"))}
	var why []string
	if !m.Started && m.Life != quorum.Alive {
		why = append(why, "it never started")
	}
	if p.Target() != "" {
		f.Severity = report.High
		why = append(why, "an upgrade adds to the trouble: no further learner can join")
	}
	f.Evidence = claims(m)
	for _, h := range hits {
		if h.Stat.Sig.ID == "E30" {
			f.Severity = report.High
			why = append(why, "another member was refused because of it")
			f.Evidence = append(f.Evidence, analyze.Context(h.Ref(), h.Excerpt()))
			break
		}
	}
	for _, h := range hits {
		if h.Stat.Sig.ID != "E30" {
			why = append(why, fmt.Sprintf("its promotion was refused %s", times(count102(hits))))
			f.Evidence = append(f.Evidence, analyze.Context(h.Ref(), h.Excerpt()))
			break
		}
	}
	if len(why) > 0 {
		f.Message += "; " + strings.Join(why, "; ")
	}
	f.Evidence[0].Role = report.RoleSubject
	host := "its machine"
	if len(m.PeerURLs) > 0 {
		host = quorum.Host(m.PeerURLs[0])
	}
	f.Fix = []report.Step{
		{Text: fmt.Sprintf("See whether a join is still going on; kubeadm promotes within two minutes. If not, check etcd on %s and that 2380 is open between it and every member, in both directions.", host)},
		{Text: "When it has caught up, promote it.", Command: "etcdctl member promote " + quorum.ID(m.ID)},
		{Text: "If the machine will not become a member, remove it before any other join.", Command: "etcdctl member remove " + quorum.ID(m.ID)},
	}
	p.Report(f)
}

func count102(hits []logs.At) int {
	n := 0
	for _, h := range hits {
		if h.Stat.Sig.ID != "E30" {
			n++
		}
	}
	return n
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func unstartedVoter(p *analyze.Pass, v *quorum.View, c *quorum.Cluster, m *quorum.Member) {
	s := c.Sum()
	e := claims(m)
	if len(e) == 0 {
		p.Unknown(bundle.KindEtcdctl, nil, bundle.Undecided, "no source of the member "+quorum.ID(m.ID)+" is left")
		return
	}
	e[0].Role = report.RoleSubject
	p.Report(analyze.Finding{
		Subject: subject(v, c, "etcd member "+quorum.ID(m.ID)), Severity: report.High,
		Message:  fmt.Sprintf("%s was added as a voter and never started; it counts in the quorum of %d out of %d all the same", m.Label(), s.Quorum, s.Voters),
		Evidence: e,
		Fix: []report.Step{
			{Text: "If its machine is to be a member, start etcd there with --initial-cluster-state=existing and the member list of the cluster."},
			{Text: "If it is not coming, remove it before anything else fails.", Command: "etcdctl member remove " + quorum.ID(m.ID)},
		},
	})
}
