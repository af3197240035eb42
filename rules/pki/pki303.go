package pki

import (
	"fmt"
	"net"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI303", Name: "kubeconfig-wrong-endpoint-or-ca", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "A kubeconfig points to a wrong endpoint or embeds a wrong CA",
		Why: "The holder then refuses the API server's certificate (wrong CA), or depends on another machine (wrong address). kubeadm lets " +
			"controller-manager and scheduler talk to the API server of their own node, and since 1.33 the kubelets of control-plane nodes too; " +
			"administrators and workers use the endpoint. Through a load balancer they may meet an older API server during an upgrade.",
		Fix: "Write the file again with kubeadm init phase kubeconfig NAME --config full.yaml, or correct its server: line; then restart the " +
			"component that uses it.",
		Links: []string{docCerts}, Since: "v0.1",
	},
	Needs: []analyze.Need{creds.Joined, kubeconfig.Files},
	Wants: []analyze.Need{staticpod.Manifests, running.Config},
	Run:   wrongEndpoint,
})

func wrongEndpoint(p *analyze.Pass) error {
	cl, _ := creds.Joined.In(p)
	cfg, err := running.Config.Try(p, nil)
	endpoint := ""
	if err == nil {
		endpoint = hostOf(cfg.ControlPlaneEndpoint)
	}
	addr := advertised(p)
	for _, n := range cl.Nodes {
		k, err := kubeconfig.Files.Try(p, n.Node)
		if err != nil {
			continue
		}
		for _, c := range k.Configs {
			switch c.Role {
			case kubeconfig.Copy, kubeconfig.Other, kubeconfig.Bootstrap:
				continue
			}
			wrongCA(p, cl, n, c)
			wrongHost(p, n, c, endpoint, addr)
		}
	}
	return nil
}

// advertised maps the addresses API servers advertise to their nodes.
func advertised(p *analyze.Pass) map[string]*staticpod.Pod {
	out := map[string]*staticpod.Pod{}
	for _, n := range p.Nodes() {
		d, err := staticpod.Manifests.Try(p, n)
		if err != nil {
			continue
		}
		if api := d.Component(staticpod.APIServer); api != nil {
			if f, ok := api.Flag("advertise-address"); ok && f.Value != "" {
				out[f.Value] = api
			}
		}
	}
	return out
}

func wrongCA(p *analyze.Pass, cl *creds.Cluster, n *creds.Node, c *kubeconfig.Config) {
	var ca *creds.CA
	for _, a := range n.CAs {
		if a.Role == creds.ConfigCA && a.Config == c {
			ca = a
		}
	}
	own := n.CA(creds.ClusterCA)
	for _, m := range cl.Nodes {
		if own == nil {
			own = m.CA(creds.ClusterCA)
		}
	}
	switch {
	case ca == nil && !c.CA.Set, c.SkipVerify:
		return
	case ca == nil || ca.Source.Err != nil || ca.Source.PEM.Marker != "" || len(ca.Certs()) == 0:
		p.Unknown(bundle.KindKubeconfig, n.Node, bundle.Damaged, "the CA in "+c.Name)
		return
	case own == nil || len(own.Certs()) == 0:
		p.Unknown(bundle.KindPKI, n.Node, bundle.NotCollected, "the cluster CA")
		return
	case ca.Shares(own):
		return
	}
	for _, m := range cl.Nodes {
		for _, s := range append(m.ByRole(creds.APIServer), m.ByRole(creds.APIServerSNI)...) {
			if s.Cert() != nil && creds.Verify(s.Cert(), creds.Certs(s.Rest), ca.Certs()).OK {
				return // a serving certificate from elsewhere, rightly trusted
			}
		}
	}
	p.Report(analyze.Finding{
		Node: n.Node, Subject: c.Name + " CA", Severity: report.Critical,
		Message:  fmt.Sprintf("%s trusts the CA %s, which is not the cluster's (%s) and signed no API server's certificate", c.Name, describe(ca), describe(own)),
		Evidence: []analyze.Evidence{analyze.See(c.CA.Line, describe(ca)), analyze.Expect(own.Source.Ref, describe(own))},
	})
}

func wrongHost(p *analyze.Pass, n *creds.Node, c *kubeconfig.Config, endpoint string, addr map[string]*staticpod.Pod) {
	switch c.Role {
	case kubeconfig.ControllerManager, kubeconfig.Scheduler, kubeconfig.Kubelet:
	default:
		return
	}
	var own *staticpod.Pod
	if d, err := staticpod.Manifests.Try(p, n.Node); err == nil {
		own = d.Component(staticpod.APIServer)
	}
	host := c.Host()
	if host == "" {
		p.Unknown(bundle.KindKubeconfig, n.Node, bundle.Damaged, c.Name+": server is no URL")
		return
	}
	if own == nil || creds.IsLoopback(host) {
		return // a worker, or the node itself
	}
	mine, ok := own.Flag("advertise-address")
	if !ok || host == mine.Value {
		return
	}
	finding := func(sev report.Severity, conf report.Confidence, msg string, ev ...analyze.Evidence) {
		p.Report(analyze.Finding{Node: n.Node, Subject: c.Name + " server", Severity: sev, Confidence: conf, Message: msg,
			Evidence: append([]analyze.Evidence{analyze.See(c.ServerRef, "server: "+c.ServerText)}, ev...)})
	}
	other := addr[host]
	switch {
	case host == endpoint:
		if c.Role == kubeconfig.Kubelet {
			return
		}
		for _, o := range addr {
			if o.ImageTag() != own.ImageTag() && o.ImageTag() != "" && own.ImageTag() != "" {
				finding(report.Medium, report.Certain,
					fmt.Sprintf("%s goes through the endpoint %s while API servers run %s and %s: it may meet the older one", c.Name, host, own.ImageTag(), o.ImageTag()),
					analyze.Expect(o.ImageRef(), o.ImageTag()), analyze.Context(own.ImageRef(), own.ImageTag()))
				return
			}
		}
	case other != nil:
		finding(report.High, report.Certain,
			fmt.Sprintf("%s of this node talks to %s, the API server of another node (own address %s)", c.Name, host, mine.Value),
			analyze.Expect(mine.Ref, mine.Text()))
	case net.ParseIP(host) == nil:
		return // a name: nothing here says where it leads
	case endpoint == "":
		p.Unknown(bundle.KindKubeadmConfig, nil, bundle.NotCollected, "whether "+host+" in "+c.Name+" is the control-plane endpoint")
	case net.ParseIP(endpoint) == nil:
		p.Unknown(bundle.KindKubeconfig, n.Node, bundle.Undecided, fmt.Sprintf("whether %s in %s is an address of the endpoint %s", host, c.Name, endpoint))
	default:
		finding(report.High, report.Probable,
			fmt.Sprintf("%s talks to %s, which is neither this node's API server (%s) nor the endpoint (%s): an address of former times", c.Name, host, mine.Value, endpoint),
			analyze.Expect(mine.Ref, mine.Text()))
	}
}
