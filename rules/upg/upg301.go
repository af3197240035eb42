package upg

import (
	"fmt"
	"path"

	"coldplane/analyze"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG301", Name: "flags-target-rejects", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.Critical, report.High, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Flags, feature gates or admission plugins that the target rejects",
		Why: "A component that is given something it does not know ends at once. kubeadm writes the static pods anew, but passes extraArgs on as " +
			"they are, and it leaves the kubelet's own flags and feature gates alone: a kubelet that does not start takes every static pod of its node with it.",
		Fix: "Before the upgrade, remove them wherever they stand. For the whole cluster: extraArgs in kubeadm-config and the kubelet-config ConfigMap. " +
			"On every node: config.yaml and kubeadm-flags.env in /var/lib/kubelet, /etc/default/kubelet, and the drop-ins of the kubelet's unit.",
		Links: []string{
			"https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates-removed/",
			"https://github.com/kubernetes/kubernetes/tree/master/CHANGELOG",
		},
		Since: "v0.1",
	},
	Wants: []analyze.Need{running.Config, running.KubeletConfig, running.OnNode, staticpod.Manifests, kubelet.CommandLine, kubelet.File},
	Run:   rejected,
})

func rejected(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	minor := tabled(p, t)
	seen := false
	cfg, err := running.Config.Try(p, nil)
	if err == nil {
		seen = true
		for _, tok := range running.ConfigTokens(cfg) {
			reject(p, nil, tok, minor, report.High, "")
		}
	}
	if d, err := running.KubeletConfig.Try(p, nil); err == nil {
		for _, tok := range running.MapTokens(d) {
			reject(p, nil, tok, minor, report.High, "; kubeadm writes it to every node's kubelet")
		}
	}
	for _, n := range p.Nodes() {
		if m, err := staticpod.Manifests.Try(p, n); err == nil {
			seen = true
			for _, c := range staticpod.Components() {
				pod := m.Component(c)
				if pod == nil {
					continue
				}
				for _, tok := range running.PodTokens(pod) {
					sev, more := report.Critical, ""
					if cfg != nil {
						// kubeadm writes the manifest anew; what is not in
						// extraArgs goes away, what is was reported above.
						sev, more = report.Low, "; kubeadm upgrade writes the manifest without it"
						if inConfig(running.ConfigTokens(cfg), tok) {
							continue
						}
					}
					reject(p, n, tok, minor, sev, more)
				}
			}
		}
		flags, ferr := kubelet.CommandLine.Try(p, n)
		conf, cerr := kubelet.File.Try(p, n)
		if cerr != nil {
			conf = nil
		}
		seen = seen || ferr == nil || cerr == nil
		for _, tok := range running.KubeletTokens(flags, conf) {
			sev, more := report.Critical, "; the kubelet of the target does not start with it"
			if tok.Name == "pod-infra-container-image" && tok.Ref.Origin == kubelet.FlagsEnvPath && minor >= 35 {
				// kubeadm 1.35 takes it out of this file itself.
				sev, more = report.Low, "; kubeadm upgrade node takes it out of this file"
			}
			reject(p, n, tok, minor, sev, more)
		}
	}
	if !seen {
		p.Unknown(bundle.KindKubeadmConfig, nil, bundle.NotCollected, "no kubeadm-config, manifest or kubelet configuration")
	}
	return nil
}

func inConfig(have []running.Token, t running.Token) bool {
	for _, h := range have {
		if h.Component == t.Component && h.Kind == t.Kind && h.Name == t.Name {
			return true
		}
	}
	return false
}

// reject reports a token that the target does not accept and the running
// release, where it is known, did. etcd has a rule of its own (UPG403).
func reject(p *analyze.Pass, n *bundle.Node, t running.Token, minor int, sev report.Severity, more string) {
	if t.Component == staticpod.Etcd {
		return
	}
	r, refused, known := running.Refused(t, minor)
	if !known || !refused {
		return
	}
	where := t.Source
	if where == running.InKubeletFlags {
		where = path.Base(t.Ref.Origin)
	}
	p.Report(analyze.Finding{
		Node: n, Subject: t.Label() + " in " + where, Severity: sev,
		Message:  fmt.Sprintf("%s (%s) %s%s", t.Label(), where, r.Why, more),
		Evidence: []analyze.Evidence{analyze.See(t.Ref, t.Text)},
		Fix:      rejectSteps(t),
	})
}

func rejectSteps(t running.Token) []report.Step {
	switch t.Source {
	case running.InKubeadm:
		return steps(
			report.Step{Text: "Remove " + t.Name + " from extraArgs of " + t.Component + ".", Command: "kubectl -n kube-system edit configmap kubeadm-config"},
			report.Step{Text: "See what kubeadm would write.", Command: "kubeadm upgrade diff"})
	case running.InKubeletMap:
		return steps(report.Step{Text: "Remove " + t.Name + " from featureGates.", Command: "kubectl -n kube-system edit configmap kubelet-config"},
			report.Step{Text: "And from every node's file, then restart the kubelet.", Command: "grep -n " + t.Name + " /var/lib/kubelet/config.yaml"})
	case running.InKubeletFlags, running.InKubeletConfig:
		return steps(report.Step{Text: "Remove " + t.Text + " from " + t.Ref.Origin + " and restart the kubelet while it is still of the old version.", Command: "systemctl restart kubelet && systemctl is-active kubelet"},
			report.Step{Text: "Do the same on every node before its kubelet is upgraded."})
	}
	return nil
}
