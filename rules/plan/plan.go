// Package plan turns a pre-upgrade audit into an ordered checklist: what stops
// the upgrade, what to do first, then minor by minor and node by node, and
// what kubeadm rewrites. It decides nothing that a rule has not found.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/drift"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/kubeadm/render"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/report"
)

// maxMinors bounds the stages of a target far away.
const maxMinors = 12

// Make builds the plan of a report whose findings are settled; nil without a
// target that is a Kubernetes 1.x version.
func Make(e *analyze.Engine, r *report.Report) *report.Plan {
	t, ok := releases.Parse(r.Target)
	if !ok || t.Major != 1 {
		return nil
	}
	p := &planner{e: e, r: r, target: t, plan: &report.Plan{Target: "v" + t.String(), Blockers: []string{}, Warnings: []string{}, Open: []string{}, First: []report.Step{}, Stages: []report.PlanStage{}, Rewrites: []report.Rewrite{}}}
	p.cfg, _ = running.Config.Get(e.Ctx(nil))
	p.nodes()
	p.judge()
	p.first()
	p.stages()
	p.rewrites()
	return p.plan
}

type planner struct {
	e       *analyze.Engine
	r       *report.Report
	target  releases.Version
	from    releases.Version
	cfg     *kubeadm.Config
	plan    *report.Plan
	control []string
	workers []string
	local   bool // a stacked etcd
}

// nodes finds the control-plane nodes and the workers, and what runs.
func (p *planner) nodes() {
	for _, n := range p.e.Set().Nodes {
		r, err := running.OnNode.Get(p.e.Ctx(n))
		if err != nil {
			continue
		}
		if a := r.Of(staticpod.APIServer); a != nil {
			p.control = append(p.control, n.Name)
			if p.from.IsZero() || a.Version.Less(p.from) {
				p.from = a.Version
			}
		}
		p.local = p.local || r.Of(staticpod.Etcd) != nil
	}
	if p.from.IsZero() && p.cfg != nil {
		p.from, _ = releases.Parse(p.cfg.KubernetesVersion)
	}
	if !p.from.IsZero() {
		p.plan.From = "v" + p.from.String()
	}
	if os, err := running.Nodes.Get(p.e.Ctx(nil)); err == nil {
		for _, o := range os {
			switch {
			case slices.Contains(p.control, o.Name):
			case o.ControlPlane:
				p.control = append(p.control, o.Name)
			default:
				p.workers = append(p.workers, o.Name)
			}
		}
	}
}

// judge sorts the findings into blockers and warnings.
func (p *planner) judge() {
	pl := p.plan
	for _, f := range p.r.Findings {
		switch {
		case strings.HasPrefix(f.Rule, "BUN"):
			// Evidence that is missing is a question, nothing to settle first.
			if f.Severity.AtLeast(report.Medium) && !slices.Contains(pl.Open, f.Rule) {
				pl.Open = append(pl.Open, f.Rule)
			}
		case f.Severity == report.Critical:
			pl.Blockers = append(pl.Blockers, f.ID)
		case f.Severity.AtLeast(report.Medium):
			pl.Warnings = append(pl.Warnings, f.ID)
		}
	}
	for _, x := range p.r.Results {
		if strings.HasPrefix(x.Rule, "UPG") && x.Outcome == report.Unknown && !slices.Contains(pl.Open, x.Rule) {
			pl.Open = append(pl.Open, x.Rule)
		}
	}
	switch {
	case len(pl.Blockers) > 0:
		pl.State, pl.Summary = report.PlanBlocked, fmt.Sprintf("Do not upgrade to %s yet: %s.", pl.Target, count(len(pl.Blockers), "finding stops it", "findings stop it"))
	case len(pl.Warnings) > 0:
		pl.State, pl.Summary = report.PlanWarnings, fmt.Sprintf("Nothing found that stops the upgrade to %s; settle %s first.", pl.Target, count(len(pl.Warnings), "finding", "findings"))
	case len(pl.Open) > 0:
		pl.State, pl.Summary = report.PlanUnknown, fmt.Sprintf("Nothing found against the upgrade to %s, but %s could not be answered: %s.", pl.Target, count(len(pl.Open), "question", "questions"), strings.Join(pl.Open, ", "))
	default:
		pl.State, pl.Summary = report.PlanReady, fmt.Sprintf("Ready for %s.", pl.Target)
	}
	if pl.State != report.PlanUnknown && len(pl.Open) > 0 {
		pl.Summary += fmt.Sprintf(" Not answered: %s.", strings.Join(pl.Open, ", "))
	}
	if n := releases.NewestMinor(); p.target.Minor > n {
		pl.Summary += fmt.Sprintf(" This version of coldplane knows Kubernetes up to 1.%d: what 1.%d changes is not known to it.", n, p.target.Minor)
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// first is what to do before anything is touched.
func (p *planner) first() {
	add := func(text, command string) {
		p.plan.First = append(p.plan.First, report.Step{Text: text, Command: command})
	}
	if p.local {
		add("Take a snapshot of etcd on one healthy member and copy it off the node.",
			"ETCDCTL_API=3 etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key snapshot save /root/before-upgrade.db")
		add("See that every member is healthy and on one version; each step of the upgrade takes one member away for a while, so all of them must be there.", "etcdctl endpoint health --cluster && etcdctl endpoint status --cluster -w table")
		add("See that /etc/kubernetes has room for a copy of the data directory (kubeadm keeps one below /etc/kubernetes/tmp), and remove old kubeadm-backup-* directories.", "df -h /etc/kubernetes && du -sh /var/lib/etcd /etc/kubernetes/tmp")
	}
	add("Keep a copy of the certificates, kubeconfigs and manifests of every control-plane node off the node.", "tar -C / -czf /root/etc-kubernetes.tgz etc/kubernetes")
	add("See that no certificate ends within the upgrade window.", "kubeadm certs check-expiration")
	add("See that no PodDisruptionBudget and no fail-closed webhook keeps nodes from being drained.", "kubectl get pdb -A && kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")
}

// stages are the minors on the way, none left out.
func (p *planner) stages() {
	if p.from.IsZero() || p.target.Minor < p.from.Minor {
		return
	}
	start := p.from.Minor + 1
	if p.target.Minor == p.from.Minor {
		start = p.target.Minor
	}
	for m := start; m <= p.target.Minor && m-start < maxMinors; m++ {
		version := fmt.Sprintf("v1.%d.x (its newest patch)", m)
		arg := fmt.Sprintf("v1.%d.PATCH", m)
		if m == p.target.Minor {
			version, arg = p.plan.Target, p.plan.Target
		}
		st := report.PlanStage{Version: version, Steps: []report.PlanStep{}}
		if p.local && p.cfg != nil && !p.cfg.External() {
			st.Etcd = render.EtcdTag(m, fmt.Sprintf("v1.%d.0", m), &p.cfg.ClusterConfiguration)
		}
		add := func(node, text, command string) {
			st.Steps = append(st.Steps, report.PlanStep{Node: node, Text: text, Command: command})
		}
		for i, n := range p.control {
			if i == 0 {
				add(n, fmt.Sprintf("Install kubeadm 1.%d, read its plan, then apply.", m), "kubeadm upgrade plan "+arg+" && kubeadm upgrade apply "+arg)
			} else {
				add(n, fmt.Sprintf("Install kubeadm 1.%d. Wait until the node before is Ready and every etcd member is healthy.", m), "kubeadm upgrade node")
			}
			add(n, fmt.Sprintf("Upgrade its kubelet and kubectl to 1.%d.", m), fmt.Sprintf("kubectl drain %s --ignore-daemonsets && systemctl daemon-reload && systemctl restart kubelet && kubectl uncordon %s", n, n))
		}
		if len(p.workers) > 0 {
			who := strings.Join(p.workers, ", ")
			if len(p.workers) > 10 {
				who = fmt.Sprintf("%s and %d more", strings.Join(p.workers[:10], ", "), len(p.workers)-10)
			}
			add("", "Then the workers, a few at a time: "+who+".", fmt.Sprintf("kubectl drain NODE --ignore-daemonsets --delete-emptydir-data   # on the node: kubeadm 1.%d, kubeadm upgrade node, kubelet 1.%d", m, m))
		}
		add("", "See that every node is Ready on the new version and kube-system is whole before going on.", "kubectl get nodes -o wide && kubectl -n kube-system get pods")
		p.plan.Stages = append(p.plan.Stages, st)
	}
}

// rewrites lists what kubeadm of the target writes differently.
func (p *planner) rewrites() {
	for _, n := range p.e.Set().Nodes {
		d, err := drift.OnNode.Get(p.e.Ctx(n))
		if err != nil {
			continue
		}
		for _, c := range d.Components {
			for _, ch := range c.Rewrites {
				hand := slices.ContainsFunc(c.Edits, func(e render.Change) bool { return e.Item == ch.Item })
				w := report.Rewrite{Node: n.Name, Component: c.Name, Item: ch.Item, Have: ch.Have, Want: ch.Want, HandEdit: hand}
				if hand {
					w.Loses, _ = render.Loss(c.Name, ch)
				}
				p.plan.Rewrites = append(p.plan.Rewrites, w)
			}
		}
	}
}
