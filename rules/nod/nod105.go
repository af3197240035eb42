package nod

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/host"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD105", Name: "cgroup-driver-mismatch", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High},
	Doc: analyze.Doc{
		Title: "kubelet and runtime use different cgroup drivers",
		Why: "With two managers of the same control groups, systemd removes what the other made: sandboxes change or vanish, and control-plane containers " +
			"are stopped cleanly every few minutes without any error of their own. Newer pairs agree by themselves: a kubelet of 1.31 or newer with " +
			"containerd 2 or CRI-O 1.28 takes the runtime's driver.",
		Fix:   "Set SystemdCgroup = true in the runc options of containerd's configuration (or cgroupDriver: cgroupfs in the kubelet's, to match), restart containerd, then the kubelet.",
		Links: []string{"https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/configure-cgroup-driver/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{kubelet.File, host.Containerd, cri.OnNode, logs.OnNode},
	Run:   cgroupDriver,
})

func cgroupDriver(p *analyze.Pass) error {
	n, lerr := logs.OnNode.Try(p, p.Node())
	if lerr == nil {
		if at, ok := n.Last(0, "Q01"); ok {
			p.Report(analyze.Finding{Subject: "cgroup driver", Severity: report.High, Message: "runc refuses the kubelet's control-group paths: the runtime uses systemd, the kubelet cgroupfs",
				Evidence: []analyze.Evidence{at.See()}, ObservedAt: at.Time})
			return nil
		}
		if at, ok := n.Last(signature.Kubelet, "K60"); ok {
			p.Report(analyze.Finding{Subject: "cgroup driver", Severity: report.High,
				Message:  fmt.Sprintf("the kubelet ends: its cgroup driver is %s, the runtime's %s", orUnknown(at.Value("kubelet")), orUnknown(at.Value("runtime"))),
				Evidence: []analyze.Evidence{at.See()}, ObservedAt: at.Time})
			return nil
		}
		if n.Count(signature.Kubelet, "K37") > 0 {
			return nil // the kubelet took the runtime's
		}
	}
	cfg, err := kubelet.File.Try(p, p.Node())
	if err != nil {
		p.UnknownErr(bundle.KindKubelet, p.Node(), err)
		return nil
	}
	want := cfg.CgroupDriver
	if want == "" {
		want = "cgroupfs" // the kubelet's own default; kubeadm writes systemd
	}
	systemd, ref, excerpt, ok := runtimeDriver(p)
	if !ok {
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "the runtime's configuration (/etc/containerd/config.toml or crictl info)")
		return nil
	}
	have := "cgroupfs"
	if systemd {
		have = "systemd"
	}
	if have == want || agreeByThemselves(p) {
		return nil
	}
	p.Report(analyze.Finding{Subject: "cgroup driver", Severity: report.High, Confidence: report.Probable,
		Message:  fmt.Sprintf("the kubelet uses the cgroup driver %s, containerd %s (SystemdCgroup = %v)", want, have, systemd),
		Evidence: []analyze.Evidence{analyze.See(ref, excerpt), analyze.Expect(cfg.Doc.Ref("/cgroupDriver"), "cgroupDriver: "+want)}})
	return nil
}

func orUnknown(s string) string { return cmp.Or(s, "unknown") }

// runtimeDriver reports whether the runtime lets systemd manage control groups.
func runtimeDriver(p *analyze.Pass) (systemd bool, ref bundle.Ref, excerpt string, ok bool) {
	if c, err := host.Containerd.Try(p, p.Node()); err == nil && c.SystemdCgroup != nil {
		return *c.SystemdCgroup, c.Ref, c.Excerpt, true
	}
	if v, err := cri.OnNode.Try(p, p.Node()); err == nil && v.SystemdCgroup != nil {
		return *v.SystemdCgroup, v.InfoRef, fmt.Sprintf("SystemdCgroup: %v", *v.SystemdCgroup), true
	}
	return false, bundle.Ref{}, "", false
}

var majorRE = regexp.MustCompile(`^v?(\d+)\.(\d+)`)

// agreeByThemselves reports whether the runtime tells the kubelet its driver:
// containerd 2 and CRI-O 1.28. The kubelet's side says so in its log.
func agreeByThemselves(p *analyze.Pass) bool {
	v, err := cri.OnNode.Try(p, p.Node())
	if err != nil {
		return false
	}
	m := majorRE.FindStringSubmatch(v.Version)
	if m == nil {
		return false
	}
	return strings.Contains(v.Runtime, "containerd") && m[1] != "0" && m[1] != "1" || strings.Contains(v.Runtime, "cri-o") && (len(m[2]) > 2 || m[2] >= "28")
}
