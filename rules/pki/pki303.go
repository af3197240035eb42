package pki

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"path"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
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
		for _, b := range k.Broken {
			brokenConfig(p, n.Node, k, b)
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

// brokenConfig reports a file that is no kubeconfig where one is needed. One that
// is not there is STA202's.
func brokenConfig(p *analyze.Pass, n *bundle.Node, k *kubeconfig.Node, b *kubeconfig.Broken) {
	var m *bundle.MissingError
	if bundle.IsAbsent(b.Err) {
		return
	}
	if !errors.As(b.Err, &m) || m.Reason != bundle.Damaged && m.Reason != bundle.NotRegular {
		p.UnknownErr(bundle.KindKubeconfig, n, b.Err)
		return
	}
	if withoutContent(n, b.Path) {
		p.Unknown(bundle.KindKubeconfig, n, bundle.Redacted, b.Path)
		return
	}
	ref := m.Ref
	if ref.IsZero() {
		ref = n.Ref(b.Path)
	}
	sev, who := report.Medium, ""
	evidence := []analyze.Evidence{analyze.See(ref, m.Detail)}
	if us := k.UsesOf(b.Path); len(us) > 0 {
		sev, who = report.Critical, "; "+us[0].Process+" does not start with it"
		evidence = append(evidence, analyze.Expect(us[0].Ref, us[0].Text))
	} else if b.Path == "/etc/kubernetes/kubelet.conf" {
		sev, who = report.Critical, "; the kubelet does not start with it"
	}
	p.Report(analyze.Finding{Node: n, Subject: path.Base(b.Path), Severity: sev, Evidence: evidence,
		Message: fmt.Sprintf("%s cannot be read as a kubeconfig: %s%s", b.Path, m.Detail, who)})
}

// withoutContent reports that somebody replaced the file by a word before it was
// handed over.
func withoutContent(n *bundle.Node, name string) bool {
	f, err := n.Stat(name)
	if err != nil {
		return false
	}
	b, err := f.Bytes(spki.MaxBytes)
	if err != nil {
		return false
	}
	defer clear(b)
	_, marked := spki.Marker(b)
	return marked || bytes.Contains(bytes.ToUpper(b), []byte("REDACTED"))
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
		if _, marked := spki.Marker([]byte(c.ServerText)); marked {
			p.Unknown(bundle.KindKubeconfig, n.Node, bundle.Redacted, c.Name+": server")
			return
		}
		sev := report.High
		switch c.Role {
		case kubeconfig.ControllerManager, kubeconfig.Scheduler, kubeconfig.Kubelet:
			sev = report.Critical
		}
		ref := c.ServerRef
		if ref.IsZero() {
			ref = c.File.Ref()
		}
		p.Report(analyze.Finding{Node: n.Node, Subject: c.Name + " server", Severity: sev, Evidence: []analyze.Evidence{analyze.See(ref, "server: "+c.ServerText)},
			Message: fmt.Sprintf("server of the current context of %s is no URL (%q): whoever uses the file reaches no API server", c.Name, c.ServerText)})
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
