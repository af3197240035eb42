package pki

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/kubeconfig"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI205", Name: "certificate-lacks-name", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "A serving certificate lacks a name or address its clients use",
		Why: "The client checks the host it dialled against the certificate's alternative names and hangs up when it is not there. It happens " +
			"when an address, the endpoint or a load balancer changes after the certificates were made. kubeadm certs renew copies the names of the old " +
			"certificate: it will never add one.",
		Fix: "Add the name to the ClusterConfiguration (apiServer.certSANs, etcd.local.serverCertSANs and peerCertSANs, controlPlaneEndpoint), move the " +
			"old pair away, run kubeadm init phase certs apiserver|etcd-server|etcd-peer --config full.yaml, upload the configuration, repeat per node. " +
			"If the address in the client's file is the wrong one, correct that instead.",
		Links: []string{docCerts}, Since: "v0.1",
	},
	Needs: []analyze.Need{creds.Joined, staticpod.Manifests},
	Wants: []analyze.Need{running.Config, kubeconfig.Files},
	Run:   namesMissing,
})

// A dialled name is one somebody looks for in a certificate.
type dialled struct {
	host string
	who  string
	ref  bundle.Ref
	text string
	sev  report.Severity
}

func namesMissing(p *analyze.Pass) error {
	cl, _ := creds.Joined.In(p)
	cfg, err := running.Config.Try(p, nil)
	if err != nil {
		cfg = nil
	}
	judged := 0
	for _, n := range cl.Nodes {
		d, err := staticpod.Manifests.Try(p, n.Node)
		if err != nil {
			d = nil
		}
		for _, c := range n.Credentials {
			var want []dialled
			switch c.Role {
			case creds.APIServer:
				want = apiNames(p, cl, n, pod(d, staticpod.APIServer), cfg)
			case creds.EtcdServer:
				want = etcdServerNames(p, cl, n, pod(d, staticpod.Etcd), cfg)
			case creds.EtcdPeer:
				want = etcdPeerNames(p, cl, pod(d, staticpod.Etcd), cfg)
			default:
				continue
			}
			if unreadable(p, c) {
				continue
			}
			judged++
			lacking(p, c, sniNames(n, c), want)
		}
	}
	if judged == 0 {
		p.Unknown(bundle.KindPKI, nil, bundle.NotCollected, "no serving certificate of an API server or etcd that can be read")
	}
	return nil
}

func pod(d *staticpod.Dir, name string) *staticpod.Pod {
	if d == nil {
		return nil
	}
	return d.Component(name)
}

// sniNames are further serving certificates that answer for other names.
func sniNames(n *creds.Node, c *creds.Credential) []*creds.Credential {
	if c.Role != creds.APIServer {
		return nil
	}
	return n.ByRole(creds.APIServerSNI)
}

func lacking(p *analyze.Pass, c *creds.Credential, also []*creds.Credential, want []dialled) {
	sev := report.Severity("")
	var names, by []string
	ev := []analyze.Evidence{analyze.See(c.Ref(), "holds "+strings.Join(creds.Names(c.Cert()), ", "))}
	for _, w := range want {
		if creds.Covers(c.Cert(), w.host) || slices.ContainsFunc(also, func(o *creds.Credential) bool { return o.Cert() != nil && creds.Covers(o.Cert(), w.host) }) {
			continue
		}
		if sev == "" || w.sev.Rank() > sev.Rank() {
			sev = w.sev
		}
		if !slices.Contains(names, w.host) {
			names = append(names, w.host)
		}
		if !slices.Contains(by, w.who) {
			by = append(by, w.who)
		}
		if !w.ref.IsZero() && len(ev) < 8 {
			ev = append(ev, analyze.Expect(w.ref, w.text))
		}
	}
	if sev == "" {
		return
	}
	p.Report(analyze.Finding{
		Node: c.Node, Subject: c.Name(), Severity: sev,
		Message:  fmt.Sprintf("%s does not hold %s, used by %s", c.Name(), strings.Join(names, ", "), strings.Join(by, ", ")),
		Evidence: append(ev, users(c)...),
	})
}

// apiNames are the hosts a node's API server is called by.
func apiNames(p *analyze.Pass, cl *creds.Cluster, n *creds.Node, api *staticpod.Pod, cfg *kubeadm.Config) []dialled {
	var out []dialled
	own := map[string]bool{}
	if api != nil {
		if f, ok := api.Flag("advertise-address"); ok && f.Value != "" {
			own[f.Value] = true
			out = append(out, dialled{f.Value, "other components (advertise address)", f.Ref, f.Text(), report.High})
		}
		if f, ok := api.Flag("service-cluster-ip-range"); ok {
			if ip := creds.FirstAddress(f.Value); ip != "" {
				out = append(out, dialled{ip, "pods (Service kubernetes)", f.Ref, f.Text(), report.High})
			}
		}
	}
	endpoint := ""
	if cfg != nil {
		endpoint = hostOf(cfg.ControlPlaneEndpoint)
		if endpoint != "" {
			out = append(out, dialled{endpoint, "the control-plane endpoint", cfg.Ref("/controlPlaneEndpoint"), "controlPlaneEndpoint: " + cfg.ControlPlaneEndpoint, report.High})
		}
		for i, s := range cfg.APIServer.CertSANs {
			ref := cfg.Ref(fmt.Sprintf("/apiServer/certSANs/%d", i))
			if !strings.HasPrefix(s, "*.") {
				out = append(out, dialled{s, "the configuration (certSANs)", ref, "certSANs: " + s, report.Medium})
			}
		}
		out = append(out, dialled{"kubernetes.default.svc." + cfg.Networking.DNSDomain, "pods (Service kubernetes)", cfg.Ref("/networking/dnsDomain"), "dnsDomain: " + cfg.Networking.DNSDomain, report.Medium})
	}
	out = append(out, dialled{host: "kubernetes.default.svc", who: "pods (Service kubernetes)", sev: report.Medium})
	for _, m := range cl.Nodes {
		k, err := kubeconfig.Files.Try(p, m.Node)
		if err != nil {
			continue
		}
		for _, c := range k.Configs {
			host := c.Host()
			if host == "" || c.SkipVerify || !ours(m, c) {
				continue
			}
			here := own[host] || host == endpoint || m == n && len(own) == 0 || m == n && !otherAddress(p, n, host)
			if !here {
				continue
			}
			sev := report.High
			switch c.Role {
			case kubeconfig.Kubelet, kubeconfig.ControllerManager, kubeconfig.Scheduler:
				sev = report.Critical
			}
			out = append(out, dialled{c.VerifiedName(), c.Name, c.ServerRef, "server: " + c.ServerText, sev})
		}
	}
	return out
}

// ours reports whether a kubeconfig is for this cluster: a copy or somebody's
// own file only when its CA is the node's.
func ours(n *creds.Node, c *kubeconfig.Config) bool {
	if c.Role != kubeconfig.Copy && c.Role != kubeconfig.Other {
		return true
	}
	own := n.CA(creds.ClusterCA)
	for _, a := range n.CAs {
		if a.Role == creds.ConfigCA && a.Config == c {
			return own != nil && own.Shares(a)
		}
	}
	return false
}

// otherAddress reports whether a host is the advertised address of another
// node's API server.
func otherAddress(p *analyze.Pass, n *creds.Node, host string) bool {
	for _, m := range p.Nodes() {
		if m == n.Node {
			continue
		}
		d, err := staticpod.Manifests.Try(p, m)
		if err != nil {
			continue
		}
		if api := d.Component(staticpod.APIServer); api != nil {
			if f, ok := api.Flag("advertise-address"); ok && f.Value == host {
				return true
			}
		}
	}
	return false
}

// etcdServerNames are the hosts etcd's clients dial.
func etcdServerNames(p *analyze.Pass, cl *creds.Cluster, n *creds.Node, etcd *staticpod.Pod, cfg *kubeadm.Config) []dialled {
	var out []dialled
	own := map[string]bool{}
	if etcd != nil {
		if f, ok := etcd.Setting("advertise-client-urls"); ok {
			sev := report.Critical
			if cl.Members == 1 {
				sev = report.Medium // only kubeadm and tools dial it
			}
			for _, h := range creds.Hosts(f.List()) {
				own[h] = true
				out = append(out, dialled{h, "other members and kubeadm", f.Ref, f.Text(), sev})
			}
		}
	}
	for _, m := range p.Nodes() {
		d, err := staticpod.Manifests.Try(p, m)
		if err != nil {
			continue
		}
		api := d.Component(staticpod.APIServer)
		if api == nil {
			continue
		}
		f, ok := api.Flag("etcd-servers")
		if !ok {
			continue
		}
		for _, h := range creds.Hosts(f.List()) {
			if m == n.Node && creds.IsLoopback(h) || own[h] {
				out = append(out, dialled{h, "kube-apiserver of " + m.Name, f.Ref, f.Text(), report.Critical})
			}
		}
	}
	if cfg != nil && cfg.Etcd.Local != nil {
		for i, s := range cfg.Etcd.Local.ServerCertSANs {
			if anyCovers(cl, creds.EtcdServer, s) {
				continue
			}
			out = append(out, dialled{s, "the configuration (serverCertSANs)", cfg.Ref(fmt.Sprintf("/etcd/local/serverCertSANs/%d", i)), "serverCertSANs: " + s, report.Medium})
		}
	}
	return out
}

// etcdPeerNames are the hosts the other members dial. Nobody dials the peer
// port of a single member.
func etcdPeerNames(p *analyze.Pass, cl *creds.Cluster, etcd *staticpod.Pod, cfg *kubeadm.Config) []dialled {
	if cl.Members < 2 || etcd == nil {
		return nil
	}
	var out []dialled
	if f, ok := etcd.Setting("initial-advertise-peer-urls"); ok {
		for _, h := range creds.Hosts(f.List()) {
			out = append(out, dialled{h, "the other etcd members", f.Ref, f.Text(), report.Critical})
		}
	}
	if cfg != nil && cfg.Etcd.Local != nil {
		for i, s := range cfg.Etcd.Local.PeerCertSANs {
			if anyCovers(cl, creds.EtcdPeer, s) {
				continue
			}
			out = append(out, dialled{s, "the configuration (peerCertSANs)", cfg.Ref(fmt.Sprintf("/etcd/local/peerCertSANs/%d", i)), "peerCertSANs: " + s, report.Medium})
		}
	}
	return out
}

// anyCovers reports whether some node's certificate of a role holds a name:
// the names for etcd in the one configuration of the cluster are often those
// of a single node.
func anyCovers(cl *creds.Cluster, r creds.Role, host string) bool {
	for _, n := range cl.Nodes {
		for _, c := range n.ByRole(r) {
			if c.Cert() != nil && creds.Covers(c.Cert(), host) {
				return true
			}
		}
	}
	return false
}

// hostOf is the host of an endpoint written as HOST or HOST:PORT.
func hostOf(endpoint string) string {
	if endpoint == "" {
		return ""
	}
	hs := creds.Hosts([]string{"https://" + endpoint})
	if len(hs) == 0 {
		return ""
	}
	return hs[0]
}
