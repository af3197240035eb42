package hav

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/kubeconfig"
	"coldplane/analyze/quorum"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV101", Name: "no-stable-control-plane-endpoint", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Latent:     true, Kubeadm: true,
	Doc: analyze.Doc{
		Title: "The cluster has no control-plane endpoint that outlives a node",
		Why: "Kubelets and users keep the control-plane endpoint in their kubeconfigs. When it is one node's own address, all of them lose the API with that node, " +
			"however many others there are; when it is not set at all, kubeadm refuses to join a second control plane, and setting it later means new certificates " +
			"and kubeconfigs.",
		Fix: "Put a load balancer, a virtual IP or at least a DNS name in front of the API servers and make it controlPlaneEndpoint; add the name to the API servers' " +
			"certificates before clients use it.",
		Links: []string{"https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/high-availability/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{running.Config},
	Wants: []analyze.Need{staticpod.Manifests, quorum.Joined, quorum.Nodes, kubeconfig.Files},
	Run:   stableEndpoint,
})

// planes are the control-plane nodes as far as anything names them.
type planes struct {
	names    map[string]bool
	address  map[string]string // address -> name
	evidence []analyze.Evidence
}

// add counts a node once, whatever it is called: by its address, else by name.
func (x *planes) add(name string, see analyze.Evidence, addresses ...string) {
	for _, a := range addresses {
		if known := x.address[endpoint.Host(a)]; known != "" {
			name = known
		}
	}
	if !x.names[name] && len(x.evidence) < 6 {
		x.evidence = append(x.evidence, see)
	}
	x.names[name] = true
	for _, a := range addresses {
		if a = endpoint.Host(a); a != "" && !endpoint.Loopback(a) {
			x.address[a] = name
		}
	}
}

func stableEndpoint(p *analyze.Pass) error {
	cfg, _ := running.Config.In(p)
	x := knownPlanes(p, cfg)
	host, _ := endpoint.SplitHostPort(cfg.ControlPlaneEndpoint)
	ref := cfg.Ref("/controlPlaneEndpoint")
	at := analyze.See(ref, "controlPlaneEndpoint: "+cfg.ControlPlaneEndpoint)
	if cfg.ControlPlaneEndpoint == "" {
		at = analyze.See(cfg.Ref(""), "no controlPlaneEndpoint")
	}
	switch owner := x.address[host]; {
	case host == "" && len(x.names) >= 2:
		p.Report(analyze.Finding{Subject: "controlPlaneEndpoint", Severity: report.High,
			Message:  fmt.Sprintf("controlPlaneEndpoint is not set, though there are %d control-plane nodes: every client depends on the node its kubeconfig names", len(x.names)),
			Evidence: append([]analyze.Evidence{at}, x.evidence...), Fix: introduce()})
	case host == "":
		p.Report(analyze.Finding{Subject: "controlPlaneEndpoint", Severity: report.Medium,
			Message:  "controlPlaneEndpoint is not set: a second control-plane node cannot join before certificates and kubeconfigs are made anew",
			Evidence: append([]analyze.Evidence{at}, x.evidence...), Fix: introduce()})
	case owner != "" && len(x.names) >= 2:
		p.Report(analyze.Finding{Subject: "controlPlaneEndpoint", Severity: report.High,
			Message:  fmt.Sprintf("controlPlaneEndpoint is %s, the address of %s alone, though there are %d control-plane nodes", cfg.ControlPlaneEndpoint, owner, len(x.names)),
			Evidence: append([]analyze.Evidence{at}, x.evidence...), Fix: introduce()})
	case len(x.names) == 0:
		p.Unknown(bundle.KindManifests, nil, bundle.NotCollected, "nothing says how many control-plane nodes there are and which addresses they have")
	default:
		workers(p, host, x)
	}
	return nil
}

// knownPlanes gathers control-plane nodes from manifests, etcd's members, a
// join in progress, and Node objects.
func knownPlanes(p *analyze.Pass, cfg *kubeadm.Config) *planes {
	x := &planes{names: map[string]bool{}, address: map[string]string{}}
	for _, n := range p.Nodes() {
		d, err := staticpod.Manifests.Try(p, n)
		if err != nil {
			continue
		}
		if api := d.Component(staticpod.APIServer); api != nil {
			f, _ := api.Flag("advertise-address")
			see := analyze.Context(api.File().Ref(), "API server of "+n.Name)
			if !f.Ref.IsZero() {
				see = analyze.Context(f.Ref, f.Text())
			}
			x.add(n.Machine(), see, f.Value)
		}
		etcd := d.Component(staticpod.Etcd)
		if etcd == nil || cfg.External() {
			continue
		}
		initial, _ := etcd.Setting("initial-cluster")
		for _, item := range initial.List() {
			name, u, _ := strings.Cut(item, "=")
			if peer, ok := endpoint.Parse(u); ok {
				x.add(name, analyze.Context(initial.Ref, initial.Text()), peer.Host)
			}
		}
	}
	if v, err := quorum.Joined.Try(p, nil); err == nil && len(v.Clusters) == 1 && !cfg.External() {
		for _, m := range v.Clusters[0].Members {
			if m.Ghost || len(m.Claims) == 0 {
				continue
			}
			var hosts []string
			for _, u := range m.PeerURLs {
				if e, ok := endpoint.Parse(u); ok {
					hosts = append(hosts, e.Host)
				}
			}
			name := m.Name
			if name == "" {
				name = "a member at " + strings.Join(hosts, ", ")
			}
			what := "etcd member " + name
			if m.Learner {
				what = "etcd learner " + name
			}
			x.add(name, analyze.Context(m.Claims[0].Ref, what), hosts...)
		}
	}
	if ns, err := quorum.Nodes.Try(p, nil); err == nil {
		for _, n := range ns.ControlPlanes() {
			x.add(n.Name, analyze.Context(n.Ref, "Node "+n.Name+" is labelled control-plane"), n.Addresses...)
		}
	}
	return x
}

// workers looks for kubelets that were pointed past the endpoint.
func workers(p *analyze.Pass, host string, x *planes) {
	for _, n := range p.Nodes() {
		if x.names[n.Machine()] {
			continue
		}
		ks, err := kubeconfig.Files.Try(p, n)
		if err != nil {
			continue
		}
		c := ks.Role(kubeconfig.Kubelet)
		if c == nil {
			continue
		}
		server, ok := endpoint.Parse(c.ServerText)
		if !ok || server.Host == host || server.Loopback() || x.address[server.Host] == "" {
			continue
		}
		p.Report(analyze.Finding{
			Node: n, Subject: "kubelet API server address", Severity: report.Medium,
			Message:  fmt.Sprintf("the kubelet talks to %s, the address of %s alone, instead of the control-plane endpoint %s", c.ServerText, x.address[server.Host], host),
			Evidence: []analyze.Evidence{analyze.See(c.ServerRef, "server: "+c.ServerText)},
			Fix: []report.Step{{Text: "Set server in the kubelet's kubeconfig to the control-plane endpoint and restart the kubelet.",
				Command: "vi /etc/kubernetes/kubelet.conf && systemctl restart kubelet"}},
		})
	}
}

func introduce() []report.Step {
	return []report.Step{
		{Text: "Make an address that outlives a node: a load balancer that checks /readyz, a virtual IP, or for a start a DNS name for today's node."},
		{Text: "Add the name to the API servers' certificates: apiServer.certSANs and controlPlaneEndpoint in kubeadm-config, then on each control-plane node a new certificate (certs renew copies the old names and adds none). full.yaml: that ClusterConfiguration and an InitConfiguration with this node's name and advertise address.",
			Command: "mkdir -p /root/pki-before && mv /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/apiserver.key /root/pki-before/ && kubeadm init phase certs apiserver --config full.yaml"},
		{Text: "Store the configuration in the cluster.", Command: "kubeadm init phase upload-config kubeadm --config full.yaml"},
		{Text: "Point admin.conf, the kubelets' kubelet.conf, the kube-proxy ConfigMap and the cluster-info ConfigMap (kube-public) at the new endpoint; restart kubelets and kube-proxy.",
			Command: "kubectl -n kube-public edit configmap cluster-info; kubectl -n kube-system edit configmap kube-proxy"},
	}
}
