package upg

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/releases"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG503", Name: "host-not-ready-for-target", Scope: analyze.PerNode, Audit: true,
	Severities: []report.Severity{report.Critical, report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The machine does not meet what the target needs",
		Why: "From 1.35 on the kubelet does not start on a host with cgroup v1 unless failCgroupV1 is false. With swap on it does not start unless " +
			"failSwapOn is false. A kubelet that does not start takes the whole control plane of the node with it.",
		Fix: "Boot the host with cgroup v2 (systemd.unified_cgroup_hierarchy=1, or a newer distribution) before the upgrade; failCgroupV1: false in the " +
			"KubeletConfiguration only puts it off. Switch swap off, or set failSwapOn: false on purpose.",
		Links: []string{"https://kubernetes.io/docs/concepts/architecture/cgroups/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{host.Machine},
	Wants: []analyze.Need{kubelet.File},
	Run:   hostReady,
})

func hostReady(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	m, _ := host.Machine.In(p)
	cfg, err := kubelet.File.Try(p, p.Node())
	if err != nil {
		cfg = nil
	}
	ref := func(ptr string) bundle.Ref { return m.Ref.At(0, ptr) }
	switch {
	case t.Minor < 35:
	case m.CgroupV2 == nil:
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "which version of cgroups the host has")
	case !*m.CgroupV2 && (cfg == nil || cfg.FailCgroupV1 == nil || *cfg.FailCgroupV1):
		p.Report(analyze.Finding{Subject: "cgroups", Severity: report.Critical, Evidence: []analyze.Evidence{analyze.See(ref("/cgroupV2"), "cgroupV2: false")},
			Message: fmt.Sprintf("%s has cgroup v1; the kubelet of 1.%d does not start there unless failCgroupV1 is false", p.Node().Name, t.Minor)})
	}
	if len(m.Swaps) > 0 && (cfg == nil || cfg.FailSwapOn == nil || *cfg.FailSwapOn) {
		p.Report(analyze.Finding{Subject: "swap", Severity: report.Medium, Evidence: []analyze.Evidence{analyze.See(ref("/swaps/0"), "swap on "+m.Swaps[0].Device)},
			Message: fmt.Sprintf("swap is on (%s) and failSwapOn is not false: the kubelet does not start again after the upgrade", m.Swaps[0].Device)})
	}
	if v, ok := releases.Parse(m.Kernel); ok && !supportedKernel(v) {
		p.Report(analyze.Finding{Subject: "kernel", Severity: report.Medium, Evidence: []analyze.Evidence{analyze.See(ref("/kernel"), m.Kernel)},
			Message: fmt.Sprintf("kernel %s is none of the long-term series Kubernetes is validated with (5.4, 5.10, 5.15, 6.x); a distribution's own kernel may be fine", m.Kernel)})
	}
	return nil
}

// supportedKernel is the list of k8s.io/system-validators (types_unix.go).
func supportedKernel(v releases.Version) bool {
	if v.Major >= 6 {
		return true
	}
	return v.Major == 5 && (v.Minor == 4 || v.Minor == 10 || v.Minor == 15)
}
