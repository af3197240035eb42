package qrm

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM103", Name: "etcd-stale-member", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "A listed etcd member is gone, or a removed one still starts",
		Why: "A member whose machine was wiped or removed without `member remove` still counts in the quorum, and every join checks its health and fails. " +
			"etcd refuses two members at one peer address, so a second record there belongs to a member that is gone; etcd 3.5.0, and 3.6 after an upgrade, bring such records back to life.",
		Fix:   "Remove the stale member by its id, before anything is added, from a member that has quorum; then join the machine anew.",
		Links: []string{"https://github.com/kubernetes/kubernetes/issues/81071", "https://github.com/etcd-io/etcd/issues/13196", "https://etcd.io/docs/v3.6/faq/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{quorum.Joined, logs.OnNode, quorum.Nodes},
	Run:   staleMembers,
})

func staleMembers(p *analyze.Pass) error {
	told := removed(p)
	v, err := quorum.Joined.Try(p, nil)
	if err != nil {
		if !told {
			p.UnknownErr(bundle.KindEtcdctl, nil, err)
		}
		return nil
	}
	for _, c := range v.Clusters {
		if !live(c) || len(c.Sources) == 0 {
			continue
		}
		twins(p, v, c)
		for _, m := range c.Members {
			if m.Ghost || m.Life == quorum.Alive {
				continue
			}
			if h, ok := joinsItself(p, m); ok {
				rejoining(p, v, c, m, h)
				continue
			}
			withoutNode(p, v, c, m)
		}
	}
	return nil
}

// removed reports nodes whose etcd was told that it is no member any more and
// ended; it cannot come back with the data it has. told is whether one was.
func removed(p *analyze.Pass) (told bool) {
	for _, n := range p.All() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		h, ok := l.Last(signature.Etcd, "E17")
		if !ok {
			continue
		}
		if s, ok := l.Last(signature.Etcd, "E89"); ok && s.Time.After(h.Time) {
			continue // it serves again since
		}
		told = true
		p.Report(analyze.Finding{
			Node: n, Subject: "etcd of a removed member", Severity: report.High, Confidence: report.Probable, ObservedAt: h.Time,
			Message:  "etcd here was removed from the cluster and ends at every start: the data directory belongs to a member that does not exist any more",
			Evidence: []analyze.Evidence{h.See()},
			Fix: []report.Step{
				{Text: "See on a healthy member that this node is not listed, and that the others have quorum.", Command: "etcdctl member list -w table"},
				{Text: "Stop etcd on this node (move etcd.yaml out of the manifest directory) and archive the whole data directory to another machine."},
				{Text: "Join the node anew with an empty data directory: kubeadm reset here, then kubeadm join with --control-plane. The old data cannot be used again."},
			},
		})
	}
	return told
}

// twins reports, address by address, the records of members that another id
// has replaced.
func twins(p *analyze.Pass, v *quorum.View, c *quorum.Cluster) {
	var lives []uint64
	for _, m := range c.Members {
		if m.Ghost && m.Twin != 0 && !slices.Contains(lives, m.Twin) {
			lives = append(lives, m.Twin)
		}
	}
	for _, id := range lives {
		live := c.Member(id)
		var dead []string
		f := analyze.Finding{Severity: report.High}
		why := ""
		for _, m := range c.Members {
			if m.Ghost && m.Twin == id {
				dead = append(dead, quorum.ID(m.ID))
				f.Evidence = append(f.Evidence, claims(m)...)
				why = m.Why
			}
		}
		f.Evidence = append(f.Evidence, proofs(live)...)
		if e := claims(live); len(e) > 0 {
			f.Evidence = append(f.Evidence, e[0])
		}
		f.Evidence[0].Role = report.RoleSubject
		who := live.Name
		if who == "" {
			who = quorum.Host(live.PeerURLs[0])
		}
		f.Subject = subject(v, c, "etcd members at "+quorum.Address(live.PeerURLs[0]))
		f.Message = fmt.Sprintf("%s is listed under %d ids at %s: %s, and not %s: %s; %d members are listed in all, %d are there",
			who, len(dead)+1, live.PeerURLs[0], quorum.ID(id), list(dead), why, len(c.Members), len(c.Voters())+learners(c))
		for _, d := range dead {
			f.Fix = append(f.Fix, report.Step{Text: "Remove the stale record " + d + ".", Command: "etcdctl member remove " + d})
		}
		if c.V2Decides {
			f.Fix = append([]report.Step{{Text: "Do not upgrade to etcd 3.6 before this is gone: 3.6 would count these records as voters. Update every member to the newest 3.5 patch first, which repairs the list by itself from 3.5.26 on."}}, f.Fix...)
		}
		p.Report(f)
	}
}

func learners(c *quorum.Cluster) int {
	n := 0
	for _, m := range c.Members {
		if m.Learner && !m.Ghost {
			n++
		}
	}
	return n
}

// joinsItself finds a kubeadm join of the member's own machine that failed
// because that member does not answer: its data was wiped, its record was not.
func joinsItself(p *analyze.Pass, m *quorum.Member) (logs.At, bool) {
	if m.Name == "" || m.Life != quorum.Silent {
		return logs.At{}, false
	}
	for _, n := range p.All() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, h := range l.Hits(signature.Kubeadm, "Q03", "G02", "G10") {
			if joiner(h) != m.Name {
				continue
			}
			for _, x := range m.Proofs {
				if x.Ref.Path == h.Ref().Path && x.Ref.Line == h.Line {
					return h, true
				}
			}
		}
	}
	return logs.At{}, false
}

// joiner is the machine a saved kubeadm output is of: the file's name says so,
// or the node whose evidence it lies in.
func joiner(h logs.At) string {
	base := strings.TrimSuffix(path.Base(h.Stream.File.Origin), ".log")
	for _, pre := range []string{"kubeadm-join-", "kubeadm-reset-"} {
		if name, ok := strings.CutPrefix(base, pre); ok {
			return name
		}
	}
	return h.Stream.File.Node.Name
}

// severityOf is critical when the cluster has no quorum because of members like
// this one.
func severityOf(c *quorum.Cluster) report.Severity {
	if _, best := c.Sum().Tolerance(); best < 0 {
		return report.Critical
	}
	return report.High
}

func rejoining(p *analyze.Pass, v *quorum.View, c *quorum.Cluster, m *quorum.Member, h logs.At) {
	e := append(claims(m), analyze.Context(h.Ref(), h.Excerpt()))
	e[0].Role = report.RoleSubject
	p.Report(analyze.Finding{
		Subject: subject(v, c, "etcd member "+quorum.ID(m.ID)), Severity: severityOf(c), Confidence: report.Probable,
		Message: fmt.Sprintf("%s is still registered while its machine is joining anew: kubeadm checks the old member at %s and nothing runs there", m.Label(),
			list(m.ClientURLs)),
		Evidence: e,
		Fix: []report.Step{
			{Text: fmt.Sprintf("Remove the old member from a healthy one; the other %s keep quorum.", plural(len(c.Voters())-1, "voter")), Command: "etcdctl member remove " + quorum.ID(m.ID)},
			{Text: "Check that the list no longer holds it.", Command: "etcdctl member list -w table"},
			{Text: fmt.Sprintf("Wipe what kubeadm left on %s and join it again.", m.Name), Command: "kubeadm reset && kubeadm join ... --control-plane"},
		},
	})
}

// withoutNode reports a member that no Node object, and nothing of the
// evidence, knows, where the other members are Nodes.
func withoutNode(p *analyze.Pass, v *quorum.View, c *quorum.Cluster, m *quorum.Member) {
	if m.Name == "" || m.Name == "default" || m.Learner {
		return
	}
	nodes, err := quorum.Nodes.Try(p, nil)
	if err != nil || nodes.Find(m.Name) != nil || slices.ContainsFunc(m.PeerURLs, func(u string) bool { return nodes.HasAddress(quorum.Host(u)) }) {
		return
	}
	known := slices.ContainsFunc(c.Members, func(o *quorum.Member) bool { return o != m && nodes.Find(o.Name) != nil })
	if !known || slices.ContainsFunc(p.Nodes(), func(n *bundle.Node) bool { return n.Name == m.Name }) {
		return
	}
	f := analyze.Finding{Subject: subject(v, c, "etcd member "+quorum.ID(m.ID)), Severity: report.Medium, Confidence: report.Probable,
		Message: fmt.Sprintf("%s is a member, but no Node object has its name or address: the machine seems to be gone", m.Label())}
	if m.Life == quorum.Silent {
		f.Severity = severityOf(c)
		f.Message += ", and it did not answer"
	}
	f.Evidence = append(claims(m), proofs(m)...)
	f.Evidence = append(f.Evidence, analyze.Context(nodes.Ref, fmt.Sprintf("%s: %s", plural(len(nodes.List), "Node object"), list(nodes.Names()))))
	f.Evidence[0].Role = report.RoleSubject
	f.Fix = []report.Step{
		{Text: "Make sure that the machine is gone for good and that the other members have quorum without it."},
		{Text: "Remove the member before adding a replacement.", Command: "etcdctl member remove " + quorum.ID(m.ID)},
	}
	p.Report(f)
}
