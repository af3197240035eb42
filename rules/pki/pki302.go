package pki

import (
	"errors"
	"fmt"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/logs"
	"coldplane/analyze/objects"
	creds "coldplane/analyze/pki"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI302", Name: "kubelet-client-credential-broken", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium, report.Info},
	Doc: analyze.Doc{
		Title: "The kubelet's client credential is broken or will not be renewed",
		Why: "The kubelet rotates kubelet-client-current.pem by itself. A kubelet.conf that holds the certificate inline is read at every start " +
			"and never renewed: when it ends, the next kubelet start fails with \"bootstrap client certificate is expired\" although the rotated one " +
			"is good. kubeadm does not renew either of them.",
		Fix: "On a node whose API server works: kubeadm kubeconfig user --org system:nodes --client-name system:node:NODE --config full.yaml > " +
			"kubelet.conf; check server: in it; copy it to the node, restart the kubelet, wait for a new kubelet-client-current.pem, then let " +
			"client-certificate and client-key of kubelet.conf name that file. If the rotated file is still good, only the last step is needed.",
		Links: []string{docCerts, "https://github.com/kubernetes/kubeadm/issues/1753"}, Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "left", Default: 0.10, Unit: "share of lifetime", Source: "client-go certificate manager renews at 70-90 %"},
		{Name: "fresh", Default: 30, Unit: "days", Source: "kubeadm init leaves the inline certificate until its last phase"},
	},
	Needs: []analyze.Need{kubeconfig.Files},
	Wants: []analyze.Need{creds.Files, kubelet.File, logs.OnNode, objects.Cluster},
	Run:   kubeletClient,
})

func kubeletClient(p *analyze.Pass) error {
	k, _ := kubeconfig.Files.In(p)
	n, _ := creds.Files.In(p)
	var conf *kubeconfig.Config
	for _, c := range k.Configs {
		if c.Role == kubeconfig.Kubelet {
			conf = c
		}
	}
	if conf == nil {
		for _, b := range k.Broken {
			if b.Path == "/etc/kubernetes/kubelet.conf" {
				p.UnknownErr(bundle.KindKubeconfig, p.Node(), b.Err)
				return nil
			}
		}
		if k.Role(kubeconfig.Admin) == nil && k.Role(kubeconfig.Bootstrap) == nil {
			p.Unknown(bundle.KindKubeconfig, p.Node(), bundle.NotCollected, "/etc/kubernetes/kubelet.conf")
			return nil
		}
		return p.NotApplicable("no kubelet.conf on this node")
	}
	rotation(p)
	if n == nil || conf.Auth != kubeconfig.AuthCert {
		return nil
	}
	now, ok := asOf(p, p.Node())
	for _, c := range n.Credentials {
		if c.Config == conf {
			kubeletConf(p, n, c, k.Role(kubeconfig.Bootstrap), now, ok)
		}
	}
	return nil
}

// rotation: somebody switched the renewal off.
func rotation(p *analyze.Pass) {
	cfg, ok := kubelet.File.In(p)
	if ok && cfg.RotateCertificates != nil && !*cfg.RotateCertificates {
		p.Report(analyze.Finding{
			Subject: "certificate rotation", Severity: report.High,
			Message:  "rotateCertificates is false: the kubelet will not renew its client certificate, and nothing else does",
			Evidence: []analyze.Evidence{analyze.See(cfg.Doc.Ref("/rotateCertificates"), "rotateCertificates: false")},
		})
	}
}

func kubeletConf(p *analyze.Pass, n *creds.Node, c *creds.Credential, boot *kubeconfig.Config, now time.Time, timed bool) {
	line := c.Config.Cert.Line
	if c.Source.Err != nil {
		dangling(p, c, bootstrap(p, boot))
		return
	}
	if c.Source.PEM.Marker != "" {
		p.Unknown(bundle.KindKubeconfig, p.Node(), bundle.Redacted, c.Source.Path)
		return
	}
	if c.Cert() == nil || !timed { // an unreadable one is PKI201's
		return
	}
	cert := c.Cert()
	rotated := current(n, now)
	inline := c.Config.Cert.Inline
	past := now.After(cert.NotAfter) || now.Before(cert.NotBefore)
	ev := []analyze.Evidence{analyze.See(line, c.Config.Name+": "+lifetime(c.Leaf))}
	if !inline {
		ev = []analyze.Evidence{analyze.See(c.Ref(), lifetime(c.Leaf)), analyze.Context(line, "client-certificate: "+c.Config.Cert.Path)}
	}
	bare := ev
	if rotated != nil && rotated != c {
		ev = append(ev, analyze.Expect(rotated.Ref(), "the rotated certificate: "+lifetime(rotated.Leaf)))
	}
	name := c.Config.Name
	if line, ok := kubeletLine(p); ok && past {
		ev = append(ev, line)
	}
	switch {
	case past && inline && rotated != nil:
		p.Report(analyze.Finding{Subject: name, Severity: report.Critical, Evidence: ev, ObservedAt: cert.NotAfter,
			Message: fmt.Sprintf("%s holds a client certificate inline that %s; the kubelet will not start with it, although %s is valid to %s",
				name, ended(c, now), rotated.Name(), stamp(rotated.Cert().NotAfter)),
			Fix: []report.Step{
				{Text: "Let client-certificate and client-key in " + name + " name the rotated file, in place of the inline data."},
				{Text: "Restart the kubelet.", Command: "systemctl restart kubelet"},
			}})
	case past:
		again := bootstrap(p, boot)
		p.Report(analyze.Finding{Subject: c.Name(), Severity: again.severity, Evidence: append(ev, again.evidence...), ObservedAt: cert.NotAfter,
			Message: fmt.Sprintf("the kubelet's client certificate in %s %s; the node cannot talk to the API server%s", c.Name(), ended(c, now), again.says)})
	case inline:
		sev, why := report.Info, "as kubeadm leaves it until the last phase of init"
		if now.Sub(cert.NotBefore) > time.Duration(p.Param("fresh")*float64(day)) {
			sev, why, bare = report.High, "nothing renews it", ev
		}
		p.Report(analyze.Finding{Subject: name, Severity: sev, Evidence: bare, ObservedAt: cert.NotAfter,
			Message: fmt.Sprintf("%s holds the client certificate inline (valid to %s) instead of naming kubelet-client-current.pem: %s", name, stamp(cert.NotAfter), why)})
	default:
		life, left := cert.NotAfter.Sub(cert.NotBefore), cert.NotAfter.Sub(now)
		if float64(left) < p.Param("left")*float64(life) {
			p.Report(analyze.Finding{Subject: c.Name(), Severity: report.Medium, Evidence: ev, ObservedAt: cert.NotAfter,
				Message: fmt.Sprintf("%s has %s of %s left: the kubelet should have rotated it by now", c.Name(), span(left), span(life))})
		}
	}
}

func ended(c *creds.Credential, now time.Time) string {
	if now.Before(c.Cert().NotBefore) {
		return "is not valid before " + stamp(c.Cert().NotBefore)
	}
	return fmt.Sprintf("expired %s ago, at %s", span(now.Sub(c.Cert().NotAfter)), stamp(c.Cert().NotAfter))
}

// A second chance is what a kubelet without a good certificate can do about it.
type secondChance struct {
	severity report.Severity
	says     string
	evidence []analyze.Evidence
}

// bootstrap judges whether the kubelet can ask for a new certificate: with a
// bootstrap-kubelet.conf whose token the cluster still knows. A token's Secret
// is removed when it expires.
func bootstrap(p *analyze.Pass, boot *kubeconfig.Config) secondChance {
	out := secondChance{severity: report.Critical}
	if boot == nil || boot.TokenID == "" {
		return out
	}
	s, err := objects.Cluster.Try(p, nil)
	if err != nil || s.Store.Lossy {
		return out
	}
	key := s.Store.Prefix + "/secrets/kube-system/bootstrap-token-" + boot.TokenID
	see := analyze.Context(boot.Ref("/users/0/user/token"), "bootstrap token "+boot.TokenID)
	if !s.Has(key) {
		out.says = fmt.Sprintf(", and the bootstrap token %s of %s is no longer in the cluster", boot.TokenID, boot.Name)
		out.evidence = []analyze.Evidence{see}
		return out
	}
	out.severity = report.High
	out.says = fmt.Sprintf(" until it has a new one, which it can ask for with the bootstrap token %s of %s", boot.TokenID, boot.Name)
	out.evidence = []analyze.Evidence{see}
	return out
}

// dangling: kubelet.conf names a file that is not there.
func dangling(p *analyze.Pass, c *creds.Credential, again secondChance) {
	if !bundle.IsAbsent(c.Source.Err) {
		p.UnknownErr(bundle.KindPKI, p.Node(), c.Source.Err)
		return
	}
	ev := []analyze.Evidence{analyze.See(c.Config.Cert.Line, "client-certificate: "+c.Config.Cert.Path)}
	what := "which is not there"
	if l, err := p.Node().Lstat(c.Config.Cert.Path); err == nil && l.Link != "" {
		ev = append(ev, analyze.Expect(l.Ref(), "link to "+l.Link))
		what = "a link to " + l.Link + ", which is not there"
	}
	var m *bundle.MissingError
	if errors.As(c.Source.Err, &m) && !m.Ref.IsZero() {
		ev = append(ev, analyze.Context(m.Ref, "absent"))
	}
	p.Report(analyze.Finding{Subject: c.Config.Name, Severity: again.severity, Evidence: append(ev, again.evidence...),
		Message: fmt.Sprintf("%s names the client certificate %s, %s: the node cannot talk to the API server%s", c.Config.Name, c.Config.Cert.Path, what, again.says)})
}

// current is the rotated client certificate when it is good, or nil.
func current(n *creds.Node, now time.Time) *creds.Credential {
	for _, c := range n.ByRole(creds.KubeletClient) {
		if x := c.Cert(); x != nil && !now.After(x.NotAfter) && !now.Before(x.NotBefore) {
			return c
		}
	}
	return nil
}
