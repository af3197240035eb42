package hav

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV401", Name: "dns-on-one-node", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Medium, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Cluster DNS depends on one node",
		Why: "When the node with all CoreDNS pods goes, names stop resolving in the whole cluster until they are scheduled elsewhere, which needs a working control plane. " +
			"Being on workers, or not returning to the first node, is normal for a Deployment.",
		Fix:   "kubectl -n kube-system rollout restart deployment coredns spreads the pods when several nodes are there; add topologySpreadConstraints or anti-affinity to keep them apart.",
		Links: []string{"https://kubernetes.io/docs/tasks/administer-cluster/dns-custom-nameservers/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{objects.Cluster},
	Run:   dnsPlacement,
})

func dnsPlacement(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	var pods []objects.Object[corev1.Pod]
	for _, o := range set.Pods().Items {
		if o.Value.Namespace == "kube-system" && o.Value.Labels["k8s-app"] == "kube-dns" && o.Value.DeletionTimestamp == nil {
			pods = append(pods, o)
		}
	}
	if len(pods) == 0 {
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "no CoreDNS pod in the database")
		return nil
	}
	schedulable, control := 0, map[string]bool{}
	for _, n := range set.Nodes().Items {
		if _, ok := n.Value.Labels["node-role.kubernetes.io/control-plane"]; ok {
			control[n.Value.Name] = true
		}
		if !n.Value.Spec.Unschedulable {
			schedulable++
		}
	}
	var on []string
	ev := []analyze.Evidence{}
	running := 0
	for _, o := range pods {
		if o.Value.Status.Phase != corev1.PodRunning || o.Value.Spec.NodeName == "" {
			continue
		}
		running++
		if !slices.Contains(on, o.Value.Spec.NodeName) {
			on = append(on, o.Value.Spec.NodeName)
		}
		ev = append(ev, analyze.Context(o.Ref, o.Value.Name+" on "+o.Value.Spec.NodeName))
	}
	if running == 0 {
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "no CoreDNS pod is Running")
		return nil
	}
	ev[0].Role = report.RoleSubject
	switch {
	case running == 1 && len(pods) == 1:
		p.Report(analyze.Finding{Subject: "coredns", Severity: report.Low, Message: "cluster DNS has one replica, on " + on[0], Evidence: ev})
	case len(on) == 1 && running > 1 && schedulable > 1:
		p.Report(analyze.Finding{Subject: "coredns", Severity: report.Medium, Message: fmt.Sprintf("all %d CoreDNS pods run on %s", running, on[0]), Evidence: ev})
	case !slices.ContainsFunc(on, func(n string) bool { return !control[n] }) && len(control) > 0 && schedulable > len(control):
		p.Report(analyze.Finding{Subject: "coredns", Severity: report.Low, Message: fmt.Sprintf("all CoreDNS pods run on control-plane nodes (%s), though workers are there", strings.Join(on, ", ")), Evidence: ev})
	}
	return nil
}
