package upg

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG504", Name: "container-runtime-too-old", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The container runtime is too old for the target",
		Why: "The kubelet speaks CRI v1 only since 1.26, which containerd has from 1.6 on. From 1.38 on it asks the runtime for its cgroup driver " +
			"(RuntimeConfig), which containerd 1.x does not answer; until then kubeadm warns. dockershim is gone since 1.24.",
		Fix:   "Upgrade the runtime of these nodes first, one node at a time and drained: containerd to 2.x, or CRI-O to 1.28 or newer.",
		Links: []string{"https://kubernetes.io/docs/setup/production-environment/container-runtimes/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{running.Nodes},
	Run:   oldRuntime,
})

func oldRuntime(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	nodes, _ := running.Nodes.In(p)
	type group struct {
		sev   report.Severity
		why   string
		names []string
		ev    []analyze.Evidence
	}
	groups := map[string]*group{}
	for _, o := range nodes {
		name, text, _ := strings.Cut(o.Runtime, "://")
		v, ok := releases.Parse(text)
		sev, why := report.Severity(""), ""
		switch {
		case name == "docker" && t.Minor >= 24:
			sev, why = report.Critical, "the kubelet has no dockershim since 1.24"
		case name == "containerd" && ok && !v.AtLeast(1, 6, 0) && t.Minor >= 26:
			sev, why = report.Critical, "it does not speak CRI v1, which the kubelet needs since 1.26"
		case name == "containerd" && ok && !v.AtLeast(2, 0, 0) && t.Minor >= 38:
			sev, why = report.High, "it does not answer RuntimeConfig, which the kubelet needs from 1.38 on"
		case name == "containerd" && ok && !v.AtLeast(2, 0, 0) && t.Minor >= 35:
			sev, why = report.Medium, "it does not answer RuntimeConfig; 1.37 is the last release that falls back"
		case name == "cri-o" && ok && !v.AtLeast(1, 28, 0) && t.Minor >= 38:
			sev, why = report.High, "it does not answer RuntimeConfig, which the kubelet needs from 1.38 on"
		default:
			continue
		}
		g := groups[o.Runtime]
		if g == nil {
			g = &group{sev: sev, why: why}
			groups[o.Runtime] = g
		}
		g.names = append(g.names, o.Name)
		if len(g.ev) < 5 {
			g.ev = append(g.ev, analyze.See(o.Ref, "containerRuntimeVersion: "+o.Runtime))
		}
	}
	for _, r := range sortedKeys(groups) {
		g := groups[r]
		p.Report(analyze.Finding{Subject: r, Severity: g.sev, Evidence: g.ev, Message: fmt.Sprintf("%s run %s: %s", list(g.names, 8), r, g.why)})
	}
	return nil
}
