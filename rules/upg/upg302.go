package upg

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG302", Name: "kubeadm-config-not-usable", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.High, report.Medium},
	Latent:     true, Kubeadm: true,
	Doc: analyze.Doc{
		Title: "The kubeadm configuration is not usable by kubeadm of the target",
		Why: "kubeadm upgrade reads kubeadm-config strictly. An API version it no longer reads, a field or feature gate it does not know ends the upgrade " +
			"before it begins. Where the configuration says something else than what runs, the upgrade brings that back: another version, no pod network.",
		Fix: "With kubeadm of the running minor: kubeadm config migrate --old-config cc.yaml --new-config new.yaml, check with kubeadm config validate, " +
			"and upload it with kubeadm init phase upload-config kubeadm --config new.yaml.",
		Links: []string{"https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/", "https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-config/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{running.Config},
	Wants: []analyze.Need{running.OnNode, staticpod.Manifests},
	Run:   configUsable,
})

// fields are the top-level fields of ClusterConfiguration in v1beta3, v1beta4
// and v1 (k8s.io/kubernetes cmd/kubeadm/app/apis/kubeadm).
var fields = []string{
	"apiVersion", "kind", "etcd", "networking", "kubernetesVersion", "controlPlaneEndpoint", "apiServer", "controllerManager", "scheduler", "dns", "proxy",
	"certificatesDir", "imageRepository", "featureGates", "clusterName", "encryptionAlgorithm", "certificateValidityPeriod", "caCertificateValidityPeriod",
}

func configUsable(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	cfg, _ := running.Config.In(p)
	k, known := releases.KubeadmOf(tabled(p, t))
	api := strings.TrimPrefix(cfg.APIVersion, "kubeadm.k8s.io/")
	if known && !slices.Contains(k.ConfigAPIs, api) {
		p.Report(analyze.Finding{
			Subject: "kubeadm-config apiVersion", Severity: report.High, Evidence: []analyze.Evidence{analyze.See(cfg.Ref("/apiVersion"), "apiVersion: "+cfg.APIVersion)},
			Message: fmt.Sprintf("kubeadm 1.%d reads %s only, kubeadm-config is %s; migrate it with kubeadm of the running minor", k.Version.Minor, strings.Join(k.ConfigAPIs, " and "), api),
		})
	}
	var gates []string
	for g := range cfg.FeatureGates {
		if known && !slices.Contains(k.Gates, g) {
			gates = append(gates, g)
		}
	}
	slices.Sort(gates)
	for _, g := range gates {
		p.Report(analyze.Finding{
			Subject: "kubeadm feature gate " + g, Severity: report.High, Evidence: []analyze.Evidence{analyze.See(cfg.Ref("/featureGates/"+g), fmt.Sprintf("%s: %t", g, cfg.FeatureGates[g]))},
			Message: fmt.Sprintf("kubeadm 1.%d does not know its feature gate %s", k.Version.Minor, g),
			Fix:     steps(report.Step{Text: "Remove " + g + " from featureGates.", Command: "kubectl -n kube-system edit configmap kubeadm-config"}),
		})
	}
	for _, f := range topLevel(cfg) {
		if !slices.Contains(fields, f) {
			p.Report(analyze.Finding{
				Subject: "kubeadm-config field " + f, Severity: report.High, Evidence: []analyze.Evidence{analyze.See(cfg.Ref("/"+f), f)},
				Message: fmt.Sprintf("ClusterConfiguration has no field %s; kubeadm reads it strictly and stops", f),
			})
		}
	}
	configVersion(p, cfg)
	podSubnet(p, cfg)
	return nil
}

// configVersion compares kubernetesVersion with what runs.
func configVersion(p *analyze.Pass, cfg *kubeadm.Config) {
	want, ok := releases.Parse(cfg.KubernetesVersion)
	if !ok {
		return
	}
	for _, n := range p.Nodes() {
		r, err := running.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		a := r.Of(staticpod.APIServer)
		if a == nil || a.Vendor || a.Compare(want) == 0 {
			continue
		}
		p.Report(analyze.Finding{
			Subject: "kubernetesVersion", Severity: report.Medium,
			Evidence: []analyze.Evidence{analyze.See(cfg.Ref("/kubernetesVersion"), "kubernetesVersion: "+cfg.KubernetesVersion), analyze.Expect(a.Ref, a.Text)},
			Message:  fmt.Sprintf("kubeadm-config says %s, the API server of %s runs %s: an upgrade was not finished or an image was set by hand", cfg.KubernetesVersion, n.Name, a.Version),
			Fix:      steps(report.Step{Text: "Finish the upgrade of every control-plane node first (kubeadm upgrade apply, then kubeadm upgrade node).", Command: "kubectl get nodes -o wide"}),
		})
		return
	}
}

// podSubnet finds a pod network that only the manifest knows.
func podSubnet(p *analyze.Pass, cfg *kubeadm.Config) {
	if cfg.Networking.PodSubnet != "" {
		return
	}
	if _, ok := cfg.ControllerManager.ExtraArgs.Get("cluster-cidr"); ok {
		return
	}
	for _, n := range p.Nodes() {
		m, err := staticpod.Manifests.Try(p, n)
		if err != nil {
			continue
		}
		pod := m.Component(staticpod.ControllerManager)
		if pod == nil {
			continue
		}
		f, ok := pod.Flag("cluster-cidr")
		if !ok {
			continue
		}
		p.Report(analyze.Finding{
			Subject: "podSubnet", Severity: report.Medium, Evidence: []analyze.Evidence{analyze.See(f.Ref, f.Text()), analyze.Expect(cfg.Ref("/networking"), "no podSubnet")},
			Message: fmt.Sprintf("the controller manager runs with --cluster-cidr=%s, kubeadm-config has no networking.podSubnet: the upgrade writes the manifest without it and new nodes get no pod range", f.Value),
			Fix:     steps(report.Step{Text: "Set networking.podSubnet to " + f.Value + ".", Command: "kubectl -n kube-system edit configmap kubeadm-config"}),
		})
		return
	}
}

// topLevel lists the fields a configuration is written with.
func topLevel(cfg *kubeadm.Config) []string {
	m := map[string]any{}
	if cfg.Doc.Decode(&m) != nil {
		return nil
	}
	return sortedKeys(m)
}
