package sta

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA203", Name: "flag-unknown-to-version", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "A flag, feature gate or admission plugin that the running version does not accept",
		Why: "A component ends at once when it is given a flag, a feature gate or an admission plugin it does not know, or a locked gate set to " +
			"another value. After an upgrade this is the usual reason why a kubelet or a control-plane container no longer starts. While the old " +
			"process still runs nothing is seen; the next restart brings it down.",
		Fix: "Remove it where it stands, and in kubeadm-config, the kubelet-config ConfigMap and /etc/default/kubelet too, else it comes back with the next upgrade or join.",
		Links: []string{
			"https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates-removed/",
			"https://github.com/kubernetes/kubeadm/issues/3281",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{running.OnNode},
	Wants: []analyze.Need{staticpod.Manifests, kubelet.CommandLine, kubelet.File, cri.OnNode, logs.OnNode},
	Run:   unknownFlags,
})

func unknownFlags(p *analyze.Pass) error {
	versions, _ := running.OnNode.In(p)
	var tokens []running.Token
	if m, err := staticpod.Manifests.Try(p, p.Node()); err == nil {
		for _, c := range staticpod.Components() {
			if pod := m.Component(c); pod != nil {
				tokens = append(tokens, running.PodTokens(pod)...)
			}
		}
	}
	flags, flagErr := kubelet.CommandLine.Try(p, p.Node())
	cfg, cfgErr := kubelet.File.Try(p, p.Node())
	if cfgErr != nil {
		cfg = nil
	}
	tokens = append(tokens, running.KubeletTokens(flags, cfg)...)
	if flagErr != nil && cfgErr != nil && len(tokens) == 0 {
		p.UnknownErr(bundle.KindKubelet, p.Node(), flagErr)
		return nil
	}
	log, err := logs.OnNode.Try(p, p.Node())
	if err != nil {
		log = nil
	}
	view, err := cri.OnNode.Try(p, p.Node())
	if err != nil {
		view = nil
	}
	unknown := map[string]bool{}
	for _, t := range tokens {
		v := versions.Of(t.Component)
		if v == nil {
			continue
		}
		r, refused, known := running.Refused(t, v.Minor)
		if v.Major != 1 && t.Component != staticpod.Etcd || v.Major != 3 && t.Component == staticpod.Etcd || !known {
			if !unknown[t.Component] {
				unknown[t.Component] = true
				p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, fmt.Sprintf("the tables do not know %s %s", t.Component, v.Text))
			}
			continue
		}
		if refused {
			reportUnknownFlag(p, t, v, r, refusal(log, t), view)
		}
	}
	return nil
}

// refusal finds the component's own words about a token.
func refusal(log *logs.Node, t running.Token) *logs.At {
	if log == nil {
		return nil
	}
	id := map[string][]string{running.FlagToken: {"S06"}, running.GateToken: {"A14", "A15"}, running.PluginToken: {"A16"}}[t.Kind]
	var found *logs.At
	for _, at := range log.Hits(signature.Named(t.Component), id...) {
		if strings.Contains(at.Value("flag"), "--"+t.Name) && strings.TrimPrefix(at.Value("flag"), "--") == t.Name || t.Kind != running.FlagToken && strings.Contains(at.Excerpt(), t.Name) {
			found = &at
		}
	}
	return found
}

func reportUnknownFlag(p *analyze.Pass, t running.Token, v *running.Version, r running.Refusal, said *logs.At, view *cri.View) {
	sev, conf := report.High, report.Certain
	var state *cri.Container
	if view != nil {
		state = view.Newest(t.Component)
	}
	if said == nil && accepts(state, t, v) {
		return // it runs with this very argument: the build knows it
	}
	// Somebody else's build may have flags of its own.
	if v.Vendor && r.Presence != releases.Removed && !r.Locked {
		sev = report.Medium
	}
	what := fmt.Sprintf("%s %s", t.Label(), r.Why)
	switch {
	case v.How == running.ByAssumed:
		what += fmt.Sprintf("; the kubelet is taken to be %s like the API server", v.Version)
		if said == nil {
			sev, conf = report.Medium, report.Possible
		}
	default:
		what += fmt.Sprintf(", and %s is %s", t.Component, v.Version)
	}
	evidence := []analyze.Evidence{analyze.See(t.Ref, t.Text)}
	if said != nil {
		sev, conf = report.High, report.Certain
		evidence = append(evidence, analyze.Context(said.Ref(), said.Excerpt()))
		if state == nil || state.State != cri.Running {
			sev = report.Critical
			what += "; it ends with this error at every start"
		}
	} else if state != nil && state.State == cri.Running && sev != report.Medium {
		what += "; the process that runs was started without it or by another version, the next start fails"
	}
	if r.Hint != "" {
		what += fmt.Sprintf(" (--%s?)", r.Hint)
	}
	if v.Ref != t.Ref && v.How != running.ByAssumed {
		evidence = append(evidence, analyze.Expect(v.Ref, v.Component+" "+v.Text))
	}
	p.Report(analyze.Finding{
		Subject: t.Label(), Severity: sev, Confidence: conf, Message: what, Evidence: evidence, Fix: removeSteps(t, r),
	})
}

// accepts reports whether the running container was started with the token by
// the version the manifest names.
func accepts(c *cri.Container, t running.Token, v *running.Version) bool {
	if c == nil || c.State != cri.Running || !c.Inspected || !strings.HasSuffix(c.Image, v.Text) {
		return false
	}
	return slices.ContainsFunc(c.Command, func(a string) bool {
		name, val, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		return t.Kind == running.FlagToken && name == t.Name || t.Kind != running.FlagToken && strings.Contains(val, t.Name)
	})
}

func removeSteps(t running.Token, r running.Refusal) []report.Step {
	var out []report.Step
	switch t.Source {
	case running.InKubeletFlags, running.InKubeletConfig:
		what := "Remove " + t.Text + " from " + t.Ref.Origin
		if r.Hint != "" {
			what += ", or write --" + r.Hint
		}
		out = append(out, report.Step{Text: what + "."},
			report.Step{Text: "Start the kubelet and see that it stays up.", Command: "systemctl daemon-reload && systemctl restart kubelet && systemctl is-active kubelet"},
			report.Step{Text: "Look for it in the kubelet-config ConfigMap, /etc/default/kubelet and the unit's drop-ins, which bring it back.", Command: "kubectl -n kube-system get configmap kubelet-config -o yaml"})
	default:
		what := "Copy the manifest out of the directory, remove " + t.Text + " in the copy"
		if r.Hint != "" {
			what = "Copy the manifest out of the directory, write --" + r.Hint + " there"
		}
		out = append(out, report.Step{Text: what + ", and move it back in one step."},
			report.Step{Text: "Wait 20 s and see that the container stays up.", Command: "crictl ps -a --name " + t.Component},
			report.Step{Text: "Make the same change in extraArgs of kubeadm-config, else the next upgrade writes it again.", Command: "kubectl -n kube-system edit configmap kubeadm-config"})
	}
	return out
}
