package pki

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/analyze/kubeconfig"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/objects"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI206", Name: "certificate-wrong-usage-or-identity", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "A certificate has the wrong usage or the wrong identity",
		Why: "A certificate without client usage is refused as a client's, one without server usage as a server's. The name inside is who the " +
			"API server takes the holder for: another common name or organization means other rights, usually none.",
		Fix: "Issue it again with kubeadm init phase certs NAME or kubeadm init phase kubeconfig NAME, both with --config full.yaml. Since 1.29 " +
			"admin.conf gets its rights from the ClusterRoleBinding kubeadm:cluster-admins; when that is missing, create it with super-admin.conf.",
		Links: []string{docPKI, "https://github.com/etcd-io/etcd/issues/9785"}, Since: "v0.1",
	},
	Needs: []analyze.Need{creds.Files},
	Wants: []analyze.Need{staticpod.Manifests, kubelet.CommandLine, host.Machine, objects.Cluster},
	Run:   identityWrong,
})

func identityWrong(p *analyze.Pass) error {
	n, _ := creds.Files.In(p)
	d, err := staticpod.Manifests.Try(p, p.Node())
	if err != nil {
		d = nil
	}
	judged := 0
	for _, c := range n.Credentials {
		if isCopy(c) || c.Role == creds.SigningCA || c.Config != nil && c.Config.Role == kubeconfig.Other || unreadable(p, c) {
			continue
		}
		judged++
		wrongUsage(p, c)
		wrongIdentity(p, c, d)
	}
	if judged == 0 {
		p.Unknown(bundle.KindPKI, p.Node(), bundle.NotCollected, "no certificate that can be read")
	}
	return nil
}

func allows(c *x509.Certificate, u x509.ExtKeyUsage) bool {
	if len(c.ExtKeyUsage) == 0 && len(c.UnknownExtKeyUsage) == 0 {
		return true // no restriction
	}
	return slices.Contains(c.ExtKeyUsage, u) || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny)
}

func wrongUsage(p *analyze.Pass, c *creds.Credential) {
	var lacks []string
	if c.Server && !allows(c.Cert(), x509.ExtKeyUsageServerAuth) {
		lacks = append(lacks, "server")
	}
	if c.Client && !allows(c.Cert(), x509.ExtKeyUsageClientAuth) {
		lacks = append(lacks, "client")
	}
	if c.Cert().IsCA && c.Role != creds.KubeletServing {
		lacks = append(lacks, "leaf (it is a CA certificate)")
	}
	if len(lacks) == 0 {
		return
	}
	sev := report.High
	if c.Role == creds.EtcdHealthcheck || c.Role == creds.KubeletServing {
		sev = report.Medium
	}
	p.Report(analyze.Finding{
		Subject: c.Name(), Severity: sev,
		Message:  fmt.Sprintf("%s%s may not be used as a %s certificate; its extended key usage is %s", c.Name(), usedBy(c), strings.Join(lacks, " and "), usages(c.Cert())),
		Evidence: append([]analyze.Evidence{analyze.See(c.Ref(), fmt.Sprintf("subject %q, extended key usage %s", c.Cert().Subject.String(), usages(c.Cert())))}, users(c)...),
	})
}

func usages(c *x509.Certificate) string {
	var out []string
	for _, u := range c.ExtKeyUsage {
		switch u {
		case x509.ExtKeyUsageServerAuth:
			out = append(out, "serverAuth")
		case x509.ExtKeyUsageClientAuth:
			out = append(out, "clientAuth")
		default:
			out = append(out, "usage "+strconv.Itoa(int(u)))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// groups of administrators: cmd/kubeadm/app/constants (ClusterAdminsGroupAndClusterRoleBinding since 1.29).
const (
	adminsGroup  = "kubeadm:cluster-admins"
	mastersGroup = "system:masters"
)

func wrongIdentity(p *analyze.Pass, c *creds.Credential, d *staticpod.Dir) {
	cn, org := c.Cert().Subject.CommonName, c.Cert().Subject.Organization
	bad := func(sev report.Severity, expected string, more ...analyze.Evidence) {
		ev := append([]analyze.Evidence{analyze.See(c.Ref(), fmt.Sprintf("subject %q", c.Cert().Subject.String()))}, more...)
		p.Report(analyze.Finding{
			Subject: c.Name() + " identity", Severity: sev,
			Message:  fmt.Sprintf("%s%s says it is %q, expected %s", c.Name(), usedBy(c), c.Cert().Subject.String(), expected),
			Evidence: append(ev, users(c)...),
		})
	}
	api := pod(d, staticpod.APIServer)
	switch {
	case c.Role == creds.FrontProxy && api != nil:
		f, ok := api.Flag("requestheader-allowed-names")
		if ok && len(f.List()) > 0 && !slices.Contains(f.List(), cn) {
			bad(report.High, "a common name of "+f.Text(), analyze.Expect(f.Ref, f.Text()))
		}
	case kubeletOwn(c) && c.Client:
		name := strings.TrimPrefix(cn, "system:node:")
		switch h, sev := elsewhere(name, nodeNames(p, d)); {
		case name == cn || name == "":
			bad(report.High, "system:node:NAME")
		case !slices.Contains(org, "system:nodes"):
			bad(report.High, "organization system:nodes")
		case sev != "":
			bad(sev, "system:node:"+h.name, analyze.Expect(h.ref, h.text))
		}
	case c.Config == nil:
	case c.Config.Role == kubeconfig.ControllerManager && cn != "system:kube-controller-manager":
		bad(customized(org), "system:kube-controller-manager")
	case c.Config.Role == kubeconfig.Scheduler && cn != "system:kube-scheduler":
		bad(customized(org), "system:kube-scheduler")
	case c.Config.Role == kubeconfig.SuperAdmin && !slices.Contains(org, mastersGroup):
		bad(report.Medium, "organization "+mastersGroup)
	case c.Config.Role == kubeconfig.Admin:
		minor, ok := minorOf(api)
		switch {
		case slices.Contains(org, adminsGroup) && ok && minor < 29:
			bad(report.High, "organization "+mastersGroup+": kubeadm of this version makes no binding for "+adminsGroup, analyze.Expect(api.ImageRef(), api.ImageTag()))
		case slices.Contains(org, adminsGroup) && unbound(p, adminsGroup):
			bad(report.High, "the ClusterRoleBinding "+adminsGroup+", which is not in the cluster: without it this identity has no rights")
		case !slices.Contains(org, adminsGroup) && !slices.Contains(org, mastersGroup):
			bad(report.Medium, "organization "+adminsGroup+" or "+mastersGroup)
		}
	}
}

// unbound reports whether the store is known not to hold a ClusterRoleBinding.
func unbound(p *analyze.Pass, name string) bool {
	s, err := objects.Cluster.Try(p, nil)
	if err != nil || s.Store.Lossy {
		return false
	}
	l := s.ClusterRoleBindings()
	return l.Total > 0 && l.Complete() && !s.Has(s.Store.Prefix+"/clusterrolebindings/"+name)
}

// customized softens an unusual name: in a PKI of one's own it may have its
// rights from other bindings; as system:masters it has them all.
func customized(org []string) report.Severity {
	if len(org) > 0 {
		return report.Medium
	}
	return report.High
}

// A hint says what the node is called.
type hint struct {
	name, text string
	ref        bundle.Ref
}

// nodeNames gathers what says how the node is called: etcd's --name, which
// kubeadm takes from the node, the kubelet's --hostname-override, the machine.
func nodeNames(p *analyze.Pass, d *staticpod.Dir) []hint {
	var out []hint
	if etcd := pod(d, staticpod.Etcd); etcd != nil && pod(d, staticpod.APIServer) != nil {
		if f, ok := etcd.Setting("name"); ok && f.Value != "default" && f.Value != "" {
			out = append(out, hint{f.Value, f.Text(), f.Ref})
		}
	}
	if fs, err := kubelet.CommandLine.Try(p, p.Node()); err == nil {
		if f, ok := fs.Get("hostname-override"); ok {
			return append(out, hint{f.Value, "--hostname-override=" + f.Value, f.Ref})
		}
	}
	if m, err := host.Machine.Try(p, p.Node()); err == nil && m.Hostname != "" {
		out = append(out, hint{strings.ToLower(m.Hostname), "hostname " + m.Hostname, m.Ref})
	}
	return out
}

// elsewhere compares a node name in a certificate with what the node is
// called. One hint alone may be a name somebody chose; two that agree prove it.
func elsewhere(name string, hints []hint) (h hint, sev report.Severity) {
	n := 0
	for _, x := range hints {
		if x.name == name {
			return hint{}, ""
		}
		if n == 0 || x.name == h.name {
			h = x
			n++
		}
	}
	switch n {
	case 0:
		return hint{}, ""
	case 1:
		return h, report.Low
	}
	return h, report.High
}

// minorOf is the Kubernetes minor version of a component's image.
func minorOf(p *staticpod.Pod) (int, bool) {
	if p == nil {
		return 0, false
	}
	parts := strings.Split(strings.TrimPrefix(p.ImageTag(), "v"), ".")
	if len(parts) < 2 {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil && parts[0] == "1"
}
