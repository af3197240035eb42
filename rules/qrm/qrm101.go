package qrm

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM101", Name: "etcd-quorum-and-tolerance", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium, report.Info},
	Doc: analyze.Doc{
		Title: "Quorum of etcd and how many more members it may lose",
		Why: "etcd accepts writes only while a majority of its voting members is up. Learners do not vote, and records of members that are " +
			"gone may count although nothing runs there. With two voters, or with one of three down, the next loss stops the cluster; a fourth " +
			"voter adds no tolerance to three. A member that nothing was collected of is not known to be dead: the range says what follows in either case.",
		Fix: "When a machine of a lost member can come back, bring it back and do nothing else. When a majority is gone for good, save a snapshot or a copy of " +
			"the survivor with the highest index and restore from it as a single member, then join the others anew. With an even number of voters add one or remove one.",
		Links: []string{"https://etcd.io/docs/v3.6/faq/", "https://etcd.io/docs/v3.6/op-guide/failures/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{quorum.Joined, logs.OnNode},
	Run:   quorumState,
})

func quorumState(p *analyze.Pass) error {
	v, err := quorum.Joined.Try(p, nil)
	if err != nil {
		if !leaderless(p) {
			p.UnknownErr(bundle.KindEtcdctl, nil, err)
		}
		return nil
	}
	asked := false
	for _, c := range v.Clusters {
		if len(c.Sources) == 0 {
			p.Unknown(bundle.KindEtcdctl, nil, bundle.Undecided, "members answered, but nothing lists all of them")
			continue
		}
		if !live(c) && asked {
			continue
		}
		asked = true
		quorumOf(p, v, c)
	}
	if !asked {
		leaderless(p)
	}
	return nil
}

func quorumOf(p *analyze.Pass, v *quorum.View, c *quorum.Cluster) {
	s := c.Sum()
	if s.Voters == 0 {
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "no voting member is listed")
		return
	}
	_, best := s.Tolerance()
	var silent []*quorum.Member
	var names, mute, never []string
	for _, m := range c.Voters() {
		if m.Life != quorum.Silent {
			continue
		}
		silent = append(silent, m)
		names = append(names, m.Label())
		if m.NeverStarted() {
			never = append(never, m.Label())
		} else {
			mute = append(mute, m.Label())
		}
	}
	absent := absence(mute, never)
	f := analyze.Finding{Subject: subject(v, c, "etcd quorum"), Severity: report.Info, Message: arithmetic(c, s)}
	switch {
	case best < 0 && c.Leader != 0:
		f.Severity, f.Confidence = report.High, report.Possible
		f.Message += fmt.Sprintf("; %s, yet %s was seen leading: they contradict each other", absent, quorum.ID(c.Leader))
	case best < 0:
		f.Severity, f.Confidence = report.Critical, report.Probable
		f.Message += fmt.Sprintf("; %s: quorum is lost, no write is accepted", absent)
	case best == 0 && len(silent) > 0:
		f.Severity = report.High
		f.Message += fmt.Sprintf("; %s: the next loss stops all writes", absent)
	case len(v.Refusing) >= s.Quorum && s.Alive < s.Quorum:
		f.Severity, f.Confidence = report.High, report.Probable
		f.Message += fmt.Sprintf("; none of %d endpoints asked was healthy: the cluster has no quorum, or none could be reached from where they were asked", len(v.Refusing))
		for _, h := range v.Refusing {
			f.Evidence = append(f.Evidence, analyze.See(h.Ref, h.Text))
		}
	case s.Voters == 2:
		f.Severity = report.High
		f.Message += "; two voters need both, the loss of either stops all writes"
	case len(silent) > 0 || s.Voters%2 == 0:
		f.Severity = report.Medium
		if len(silent) > 0 {
			f.Message += fmt.Sprintf("; %s", absent)
		}
		if s.Voters%2 == 0 {
			f.Message += fmt.Sprintf("; %d voters tolerate no more than %d would", s.Voters, s.Voters-1)
		}
	}
	if f.Severity == report.Info && s.Voters > 1 && s.Alive == s.Voters {
		return // the arithmetic of a healthy cluster is among the report's facts
	}
	for _, m := range silent {
		f.Evidence = append(f.Evidence, proofs(m)...)
	}
	f.Evidence = append(f.Evidence, analyze.Context(c.Sources[0].Ref, string(c.Sources[0].Kind)))
	for _, m := range c.Members {
		if e := claims(m); len(e) > 0 && len(f.Evidence) < 24 {
			f.Evidence = append(f.Evidence, e[0])
		}
		if m.Life == quorum.Alive && len(f.Evidence) < 24 {
			f.Evidence = append(f.Evidence, proofs(m)[:1]...)
		}
	}
	f.Evidence[0].Role = report.RoleSubject
	f.Fix = quorumFix(f.Severity, s, names)
	p.Report(f)
}

// absence says why voters do not count as up.
func absence(mute, never []string) string {
	var out []string
	if len(mute) > 0 {
		out = append(out, list(mute)+" did not answer")
	}
	if len(never) > 0 {
		out = append(out, list(never)+" never started")
	}
	return list(out)
}

// arithmetic writes down the voters, the majority, what is known alive, and
// what each further loss would do.
func arithmetic(c *quorum.Cluster, s quorum.Sum) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, quorum %d: %d seen alive", plural(s.Voters, "voter"), s.Quorum, s.Alive)
	if s.Silent > 0 {
		fmt.Fprintf(&b, ", %d not answering", s.Silent)
	}
	if s.Unknown > 0 {
		fmt.Fprintf(&b, ", %d of unknown state", s.Unknown)
	}
	learners, ghosts := 0, 0
	for _, m := range c.Members {
		switch {
		case m.Ghost:
			ghosts++
		case m.Learner:
			learners++
		}
	}
	if learners > 0 {
		fmt.Fprintf(&b, "; %s beside them, without a vote", plural(learners, "learner"))
	}
	if ghosts > 0 {
		fmt.Fprintf(&b, "; %s of members that are gone not counted", plural(ghosts, "record"))
	}
	worst, best := s.Tolerance()
	switch {
	case best < 0:
	case worst == best:
		fmt.Fprintf(&b, "; may lose %d more", best)
	case s.Alive == 0:
		fmt.Fprintf(&b, "; may lose %d more if the unknown ones are up", best)
	default:
		fmt.Fprintf(&b, "; may lose %d more if the unknown ones are up", best)
		if worst < 0 {
			b.WriteString(", and has no quorum if they are down")
		} else {
			fmt.Fprintf(&b, ", %d if they are down", worst)
		}
	}
	left := s.Voters - s.Silent
	var steps []string
	for lost := 1; lost <= min(left, 4); lost++ {
		if left-lost >= s.Quorum {
			steps = append(steps, fmt.Sprintf("losing %d leaves %d of %d and writes go on", lost, left-lost, s.Voters))
			continue
		}
		if best >= 0 {
			steps = append(steps, fmt.Sprintf("losing %d leaves %d of %d and nothing is written any more", lost, left-lost, s.Voters))
		}
		break
	}
	if len(steps) > 0 {
		b.WriteString(" (" + strings.Join(steps, "; ") + ")")
	}
	return b.String()
}

func quorumFix(sev report.Severity, s quorum.Sum, silent []string) []report.Step {
	switch {
	case sev == report.Critical:
		return []report.Step{
			{Text: fmt.Sprintf("Bring back the machines of %s until %d of %d members run; then nothing else is needed.", list(silent), s.Quorum, s.Voters)},
			{Text: "Before anything that cannot be undone, copy the data directory of every member that still has one to another machine."},
			{Text: "Only when a majority is gone for good: restore the survivor with the highest index as a single member and join the others anew. Do not run member remove without quorum, and use --force-new-cluster only when no restore is possible."},
		}
	case sev == report.High && len(silent) > 0:
		return []report.Step{
			{Text: fmt.Sprintf("Repair %s before any maintenance of another member: no restart, no upgrade, no reboot until then.", list(silent))},
			{Text: "Save a snapshot from a running member and move it off the node.", Command: "etcdctl snapshot save snapshot.db"},
			{Text: "If its machine is gone for good: member remove first, then join a replacement."},
		}
	case s.Voters%2 == 0:
		return []report.Step{{Text: "Add a control-plane node, or remove one after the other members are seen healthy: an odd number of voters tolerates as much with less to fail."}}
	case s.Voters == 1:
		return []report.Step{{Text: "One member tolerates no loss: keep snapshots off the node, or join two more control-plane nodes."}}
	}
	return []report.Step{{Text: "Nothing to do. Restart or upgrade one member at a time and wait until it is healthy again."}}
}
