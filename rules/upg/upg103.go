package upg

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/running"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG103", Name: "kubelets-too-old-after-upgrade", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.High, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Kubelets would be too old for the API server after the upgrade",
		Why: "A kubelet may be up to three minors older than the API server. kubeadm upgrade checks it and stops; forced past that, the old kubelets " +
			"run without support: their status, leases or pod updates may no longer be understood.",
		Fix:   "Upgrade the kubelets of these nodes first, one minor at a time, or remove the nodes. Then upgrade the control plane.",
		Links: []string{"https://kubernetes.io/releases/version-skew-policy/#kubelet"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "kubelet", Default: 3, Unit: "minors", Source: "version skew policy"}},
	Needs:  []analyze.Need{running.Nodes},
	Run:    kubeletsAfter,
})

func kubeletsAfter(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	nodes, _ := running.Nodes.In(p)
	limit := int(p.Param("kubelet"))
	for _, o := range nodes {
		if o.Kubelet.IsZero() || t.Minor-o.Kubelet.Minor <= limit {
			continue
		}
		sev, more := report.High, ""
		if o.Unschedulable && o.Ready != corev1.ConditionTrue {
			sev, more = report.Low, "; the node is cordoned and not ready, so delete it if it is gone"
		}
		p.Report(analyze.Finding{
			Subject: "node " + o.Name, Severity: sev, Evidence: []analyze.Evidence{analyze.See(o.Ref, "kubeletVersion: "+o.KubeletText)},
			Message: fmt.Sprintf("the kubelet of %s is %s, %d minors older than the target %s; %d are allowed%s", o.Name, o.Kubelet, t.Minor-o.Kubelet.Minor, t, limit, more),
		})
	}
	return nil
}
