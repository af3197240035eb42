package pki

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/kubelet"
	creds "coldplane/analyze/pki"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI402", Name: "kubelet-serving-certificate", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "The kubelet's serving certificate is expired",
		Why: "metrics-server and, with --kubelet-certificate-authority, kubectl logs and exec check it. With serverTLSBootstrap the kubelet asks " +
			"for it with a signing request that somebody must approve: nothing in kubeadm does. Without it the certificate is self-signed for a year " +
			"and only tools that skip verification get through anyway.",
		Fix: "With serverTLSBootstrap: approve the pending requests (kubectl get csr; kubectl certificate approve NAME) or install an approver. " +
			"Self-signed: move kubelet.crt and kubelet.key away and restart the kubelet, which makes new ones.",
		Links: []string{docCerts}, Since: "v0.1",
	},
	Needs: []analyze.Need{creds.Files},
	Wants: []analyze.Need{kubelet.File},
	Run:   kubeletServing,
})

func kubeletServing(p *analyze.Pass) error {
	n, _ := creds.Files.In(p)
	cfg, err := kubelet.File.Try(p, p.Node())
	bootstrap := err == nil && cfg.ServerTLSBootstrap
	cs := n.ByRole(creds.KubeletServing)
	if len(cs) == 0 {
		p.Unknown(bundle.KindPKI, p.Node(), bundle.NotCollected, "/var/lib/kubelet/pki")
		return nil
	}
	now, ok := asOf(p, p.Node())
	if !ok {
		return nil
	}
	for _, c := range cs {
		if unreadable(p, c) {
			continue
		}
		if out := outside(c, now); out == nil || out != c.Leaf {
			continue
		}
		sev, what := report.Low, "self-signed"
		if bootstrap || c.Source.Path != creds.SelfSigned {
			sev, what = report.Medium, "issued by "+c.Cert().Issuer.CommonName
		}
		ev := []analyze.Evidence{analyze.See(c.Ref(), lifetime(c.Leaf))}
		if bootstrap {
			ev = append(ev, analyze.Context(cfg.Doc.Ref("/serverTLSBootstrap"), "serverTLSBootstrap: true"))
		}
		p.Report(analyze.Finding{Subject: c.Name(), Severity: sev, Evidence: ev, ObservedAt: c.Cert().NotAfter,
			Message: fmt.Sprintf("the kubelet's serving certificate %s (%s) %s", c.Name(), what, ended(c, now))})
	}
	if bootstrap {
		// Pending signing requests live in the store.
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "CertificateSigningRequests of signer kubernetes.io/kubelet-serving")
	}
	return nil
}
