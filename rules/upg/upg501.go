package upg

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/quorum"
	"coldplane/analyze/running"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG501", Name: "kubeadm-upgrade-checks-fail", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.Critical, report.High},
	Latent:     true, Kubeadm: true,
	Doc: analyze.Doc{
		Title: "kubeadm's own checks before an upgrade would fail",
		Why: "kubeadm upgrade stops when a control-plane node is not Ready, when an etcd member does not answer, or when its test Job does not finish. " +
			"Up to 1.36 it wants every member to answer, from 1.37 on a majority. That it stops is right: what it finds makes the upgrade an outage.",
		Fix: "Repair what is named and ask again. Do not pass --ignore-preflight-errors: the checks are about this very step. A missing manifest is STA102, a webhook that refuses the Job ADM101.",
		Links: []string{
			"https://github.com/kubernetes/kubernetes/blob/master/cmd/kubeadm/app/phases/upgrade/health.go",
		},
		Since: "v0.1",
	},
	Wants: []analyze.Need{running.Nodes, running.Config, quorum.Joined},
	Run:   upgradeChecks,
})

// lenientMinor is the first kubeadm that is content with a majority of etcd
// (CHANGELOG-1.37).
const lenientMinor = 37

func upgradeChecks(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	nodes, err := running.Nodes.Try(p, nil)
	if err != nil {
		p.UnknownErr(bundle.KindStore, nil, err)
	} else {
		nodesReady(p, nodes)
	}
	cfg, err := running.Config.Try(p, nil)
	if err == nil && cfg.External() {
		return nil
	}
	v, err := quorum.Joined.Try(p, nil)
	if err != nil || len(v.Clusters) == 0 {
		if err != nil {
			p.UnknownErr(bundle.KindEtcdctl, nil, err)
		}
		return nil
	}
	c := v.Clusters[0]
	s := c.Sum()
	_, best := s.Tolerance()
	if s.Voters == 0 || s.Silent == 0 || t.Minor >= lenientMinor && best >= 0 {
		return nil
	}
	var names []string
	var ev []analyze.Evidence
	for _, m := range c.Voters() {
		if m.Life != quorum.Silent {
			continue
		}
		names = append(names, m.Label())
		for _, s := range m.Proofs {
			if s.Life == quorum.Silent && len(ev) < 5 {
				ev = append(ev, analyze.Context(s.Ref, s.Text))
			}
		}
	}
	if len(ev) == 0 {
		return nil
	}
	ev[0].Role = report.RoleSubject
	want := "every member"
	if t.Minor >= lenientMinor {
		want = "a majority"
	}
	p.Report(analyze.Finding{Subject: "etcd health", Severity: report.Critical, Evidence: ev,
		Message: fmt.Sprintf("kubeadm 1.%d wants %s of etcd to answer, and %s of %d do not: %s", t.Minor, want, count(len(names)), s.Voters, strings.Join(names, ", "))})
	return nil
}

func count(n int) string { return fmt.Sprintf("%d", n) }

// nodesReady mirrors the checks of nodes and of the test Job, which tolerates
// the taint of the control plane and needs any node that takes pods.
func nodesReady(p *analyze.Pass, nodes running.Objects) {
	takes := false
	for _, o := range nodes {
		takes = takes || o.Ready == corev1.ConditionTrue && !o.Unschedulable
		if !o.ControlPlane || o.Ready == corev1.ConditionTrue {
			continue
		}
		state := "NotReady"
		if o.Ready == corev1.ConditionUnknown {
			state = "unknown"
		}
		msg := fmt.Sprintf("control-plane node %s is %s", o.Name, state)
		if o.ReadyReason != "" {
			msg += " (" + o.ReadyReason + ")"
		}
		p.Report(analyze.Finding{Subject: "node " + o.Name, Severity: report.Critical, Message: msg + "; kubeadm upgrade does not begin",
			Evidence: []analyze.Evidence{analyze.See(o.Ref, "Ready="+string(o.Ready)+" "+o.ReadyReason)}})
	}
	if !takes && len(nodes) > 0 {
		p.Report(analyze.Finding{Subject: "test job", Severity: report.High, Message: "no node is Ready and takes pods: kubeadm's test Job cannot run",
			Evidence: []analyze.Evidence{analyze.See(nodes[0].Ref, fmt.Sprintf("Ready=%s, unschedulable=%t", nodes[0].Ready, nodes[0].Unschedulable))},
			Fix:      steps(report.Step{Text: "Let a node take pods again.", Command: "kubectl uncordon NODE"})})
	}
}
