package pki

import (
	"crypto/dsa" //nolint:staticcheck // only to name the type
	"crypto/rsa"
	"crypto/x509"
	"fmt"

	"coldplane/analyze"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI207", Name: "ca-separation-and-strength", Scope: analyze.PerNode, Latent: true,
	Severities: []report.Severity{report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "CAs are shared between purposes, or a key or signature is weak",
		Why: "The API server believes whatever user name a holder of a front-proxy certificate writes into a header. If that CA also signs " +
			"ordinary clients and no names are required, every client can be anybody. etcd under the cluster's CA lets every holder of a client " +
			"certificate read all Secrets. Short RSA keys and SHA-1 signatures are refused by newer releases of Go.",
		Fix:   "Set --requestheader-allowed-names now. Plan separate CAs, and longer keys, for the next rotation of certificates.",
		Links: []string{"https://www.cisecurity.org/benchmark/kubernetes"}, Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "rsaBits", Default: 2048, Unit: "bits", Source: "NIST SP 800-131A; kubeadm's own default"}},
	Needs:  []analyze.Need{creds.Files},
	Wants:  []analyze.Need{staticpod.Manifests},
	Run:    weakPKI,
})

func weakPKI(p *analyze.Pass) error {
	n, _ := creds.Files.In(p)
	d, err := staticpod.Manifests.Try(p, p.Node())
	if err != nil {
		d = nil
	}
	client, front, etcd := n.CA(creds.ClusterCA), n.CA(creds.FrontProxyCA), n.CA(creds.EtcdCA)
	if client != nil && front != nil && client.Shares(front) {
		api := pod(d, staticpod.APIServer)
		named := false
		if api != nil {
			f, ok := api.Flag("requestheader-allowed-names")
			named = ok && len(f.List()) > 0
		}
		if !named && api != nil {
			p.Report(analyze.Finding{
				Subject: "front-proxy CA", Severity: report.Medium,
				Message: fmt.Sprintf("%s and %s share a CA and no --requestheader-allowed-names is set: every client certificate can name any user in a header", client.Name(), front.Name()),
				Evidence: []analyze.Evidence{analyze.See(front.Source.Ref, describe(front)), analyze.Expect(client.Source.Ref, describe(client)),
					analyze.Context(front.Use.Ref, front.Use.Flag)},
			})
		}
	}
	if client != nil && etcd != nil && client.Shares(etcd) {
		p.Report(analyze.Finding{
			Subject: "etcd CA", Severity: report.Low,
			Message:  fmt.Sprintf("etcd trusts the cluster CA (%s): every client certificate of the cluster opens etcd", etcd.Name()),
			Evidence: []analyze.Evidence{analyze.See(etcd.Source.Ref, describe(etcd)), analyze.Expect(client.Source.Ref, describe(client))},
		})
	}
	judged := 0
	seen := map[string]bool{}
	check := func(s *creds.Source, b *spki.Block) {
		if b.Cert == nil {
			p.Unknown(bundle.KindPKI, p.Node(), bundle.Damaged, s.Path)
			return
		}
		judged++
		if why := weak(b.Cert, int(p.Param("rsaBits"))); why != "" && !seen[s.Name] {
			seen[s.Name] = true
			p.Report(analyze.Finding{
				Subject: s.Name, Severity: report.Low, Message: fmt.Sprintf("%s %s", s.Name, why),
				Evidence: []analyze.Evidence{analyze.See(s.Line(b), lifetime(b))},
			})
		}
	}
	for _, c := range n.Credentials {
		if c.Leaf != nil && !isCopy(c) && c.Role != creds.SigningCA {
			check(c.Source, c.Leaf)
		}
	}
	for _, a := range n.CAs {
		if a.Config == nil {
			for _, b := range a.Source.Certificates() {
				check(a.Source, b)
			}
		}
	}
	if judged == 0 {
		p.Unknown(bundle.KindPKI, p.Node(), bundle.NotCollected, "no certificate that can be read")
	}
	return nil
}

// weak says what is weak about a certificate, or "". The signature of a
// self-signed CA protects nothing and is not judged.
func weak(c *x509.Certificate, bits int) string {
	switch k := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < bits {
			return fmt.Sprintf("has an RSA key of %d bits", k.N.BitLen())
		}
	case *dsa.PublicKey:
		return "has a DSA key, which Go's TLS does not support"
	}
	switch c.SignatureAlgorithm {
	case x509.MD5WithRSA, x509.MD2WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.DSAWithSHA1:
		if string(c.RawSubject) != string(c.RawIssuer) {
			return fmt.Sprintf("is signed with %s, which Go refuses since 1.18", c.SignatureAlgorithm)
		}
	}
	return ""
}
