package pki

import (
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"coldplane/analyze"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/objects"
	creds "coldplane/analyze/pki"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI402", Name: "kubelet-serving-certificate", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "A kubelet's serving certificate is expired or waits for approval",
		Why: "metrics-server and, with --kubelet-certificate-authority, kubectl logs and exec check it. With serverTLSBootstrap the kubelet asks " +
			"for it with a signing request that somebody must approve: nothing in kubeadm does. Without it the certificate is self-signed for a year " +
			"and only tools that skip verification get through anyway.",
		Fix: "With serverTLSBootstrap: approve the pending requests (kubectl get csr; kubectl certificate approve NAME) or install an approver. " +
			"Self-signed: move kubelet.crt and kubelet.key away and restart the kubelet, which makes new ones.",
		Links: []string{docCerts}, Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "pending", Default: 1, Unit: "hours", Source: "an approver answers within seconds"}},
	Needs:  []analyze.Need{creds.Joined},
	Wants:  []analyze.Need{kubelet.File, objects.Cluster},
	Run:    kubeletServing,
})

func kubeletServing(p *analyze.Pass) error {
	cl, _ := creds.Joined.In(p)
	asked := false
	for _, n := range cl.Nodes {
		cfg, err := kubelet.File.Try(p, n.Node)
		bootstrap := err == nil && cfg.ServerTLSBootstrap
		asked = asked || bootstrap
		cs := n.ByRole(creds.KubeletServing)
		if len(cs) == 0 {
			p.Unknown(bundle.KindPKI, n.Node, bundle.NotCollected, "/var/lib/kubelet/pki")
			continue
		}
		now, ok := asOf(p, n.Node)
		if !ok {
			continue
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
			p.Report(analyze.Finding{Node: n.Node, Subject: c.Name(), Severity: sev, Evidence: ev, ObservedAt: c.Cert().NotAfter,
				Message: fmt.Sprintf("the kubelet's serving certificate %s (%s) %s", c.Name(), what, ended(c, now))})
		}
	}
	pending(p, asked)
	return nil
}

// pending reports requests for serving certificates nobody decided on. They
// live in the store; asked says that some kubelet makes them.
func pending(p *analyze.Pass, asked bool) {
	s, err := objects.Cluster.Try(p, nil)
	now, ok := p.AsOf(nil)
	if err != nil || !ok {
		if asked {
			p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "CertificateSigningRequests of signer "+certificatesv1.KubeletServingSignerName)
		}
		return
	}
	l := s.CSRs()
	if !l.Complete() {
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "some CertificateSigningRequests cannot be read")
	}
	var ev []analyze.Evidence
	var nodes []string
	count := 0
	oldest := now
	for _, o := range l.Items {
		r := o.Value
		made := r.CreationTimestamp.Time
		if r.Spec.SignerName != certificatesv1.KubeletServingSignerName || len(r.Status.Conditions) > 0 || len(r.Status.Certificate) > 0 ||
			now.Sub(made) < time.Duration(p.Param("pending")*float64(time.Hour)) {
			continue
		}
		count++
		if made.Before(oldest) {
			oldest = made
		}
		node := strings.TrimPrefix(r.Spec.Username, "system:node:")
		if !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
		if len(ev) < 5 {
			ev = append(ev, analyze.See(o.Ref, fmt.Sprintf("%s by %s, made %s, no condition", r.Name, r.Spec.Username, stamp(made))))
		}
	}
	if count == 0 {
		return
	}
	slices.Sort(nodes)
	p.Report(analyze.Finding{Subject: "kubelet serving requests", Severity: report.Medium, Evidence: ev, ObservedAt: oldest,
		Message: fmt.Sprintf("requests for serving certificates wait for approval: %d, of %s, the oldest for %s; nothing in kubeadm approves them",
			count, strings.Join(nodes[:min(len(nodes), 10)], ", "), span(now.Sub(oldest)))})
}
