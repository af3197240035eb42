package pki

import (
	"crypto/x509"
	"fmt"
	"time"

	"coldplane/analyze"
	creds "coldplane/analyze/pki"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI103", Name: "ca-certificate-ending", Scope: analyze.PerCluster, Latent: true,
	Severities: []report.Severity{report.Critical, report.High, report.Medium, report.Low, report.Info},
	Doc: analyze.Doc{
		Title: "A CA certificate is expired or ends within reach",
		Why: "kubeadm makes CAs for ten years and never renews them. When a CA ends, every certificate below it ends, whatever its own date, " +
			"and every kubeconfig and every pod holds a copy of the old CA: replacing it takes weeks of preparation, not minutes.",
		Fix: "Rotate by hand, in this order: add the new CA beside the old one to every bundle, kubeconfig and ConfigMap; re-issue all leaves; " +
			"restart etcd, API servers, controllers, schedulers and kubelets; only then drop the old CA.",
		Links: []string{"https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/"}, Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "high", Default: 90, Unit: "days", Source: "time a rotation by hand takes to plan and do"},
		{Name: "medium", Default: 365, Unit: "days", Source: "kubeadm's default lifetime of a leaf: new ones begin to outlive the CA"},
	},
	Needs: []analyze.Need{creds.Joined},
	Run:   caEnding,
})

func caEnding(p *analyze.Pass) error {
	cl, _ := creds.Joined.In(p)
	days := func(name string) time.Duration { return time.Duration(p.Param(name) * float64(day)) }
	for _, n := range cl.Nodes {
		now, ok := asOf(p, n.Node)
		if !ok {
			continue
		}
		seen := map[string]bool{}
		for _, a := range n.CAs {
			switch a.Role {
			case creds.ClusterCA, creds.EtcdCA, creds.EtcdPeerCA, creds.EtcdServerCA, creds.FrontProxyCA:
			default:
				continue
			}
			if seen[a.Source.Path] {
				continue
			}
			seen[a.Source.Path] = true
			if a.Source.Err != nil {
				if !bundle.IsAbsent(a.Source.Err) {
					p.UnknownErr(bundle.KindPKI, n.Node, a.Source.Err)
				}
				continue
			}
			issuing := issuers(cl, n, a)
			for _, b := range a.Source.Certificates() {
				if b.Cert == nil {
					p.Unknown(bundle.KindPKI, n.Node, bundle.Damaged, fmt.Sprintf("%s: %v", a.Source.Path, b.Err))
					continue
				}
				caFinding(p, n, a, b, issuing[b], now, days("high"), days("medium"))
			}
		}
	}
	return nil
}

// issuers tells for each certificate of a CA file which leaves end in it.
func issuers(cl *creds.Cluster, n *creds.Node, a *creds.CA) map[*spki.Block][]*creds.Credential {
	out := map[*spki.Block][]*creds.Credential{}
	for _, ch := range cl.Checks {
		if ch.CA.Source != a.Source || !ch.Chain.OK {
			continue
		}
		anchor := ch.Chain.Path[len(ch.Chain.Path)-1]
		for _, b := range a.Source.Certificates() {
			if b.Cert != nil && b.Cert.Equal(anchor) && !has(out[b], ch.Cred) {
				out[b] = append(out[b], ch.Cred)
			}
		}
	}
	if len(out) == 0 {
		if bs := a.Source.Certificates(); len(bs) > 0 {
			out[bs[0]] = nil // the file's first certificate issues, as for kubeadm
		}
	}
	return out
}

func has(cs []*creds.Credential, c *creds.Credential) bool {
	for _, x := range cs {
		if x == c {
			return true
		}
	}
	return false
}

func caFinding(p *analyze.Pass, n *creds.Node, a *creds.CA, b *spki.Block, leaves []*creds.Credential, now time.Time, high, medium time.Duration) {
	c := b.Cert
	left := c.NotAfter.Sub(now)
	issuing := len(leaves) > 0 || len(a.Source.Certificates()) == 1
	sev, msg := report.Severity(""), fmt.Sprintf("the CA %s in %s ends in %s, at %s", c.Subject.CommonName, a.Name(), span(left), stamp(c.NotAfter))
	switch {
	case left < 0:
		sev, msg = report.Critical, fmt.Sprintf("the CA %s in %s expired %s ago, at %s", c.Subject.CommonName, a.Name(), span(left), stamp(c.NotAfter))
	case now.Before(c.NotBefore):
		sev, msg = report.Critical, fmt.Sprintf("the CA %s in %s is not valid before %s; check the clock", c.Subject.CommonName, a.Name(), stamp(c.NotBefore))
	case left < high:
		sev = report.High
	case left < medium:
		sev = report.Medium
	}
	late := outlive(leaves, c)
	switch {
	case sev == "" && late == nil:
		return
	case sev == "":
		sev, msg = report.Info, fmt.Sprintf("%s ends at %s, after its CA in %s (%s)", late.Name(), stamp(late.Cert().NotAfter), a.Name(), stamp(c.NotAfter))
	case !issuing:
		// An old CA kept in a bundle on purpose hurts nobody.
		sev, msg = report.Info, msg+"; nothing that was seen here is issued by it"
	}
	if late != nil && sev != report.Info {
		msg += fmt.Sprintf("; certificates below it (%d seen) are dated longer than the CA itself and end with it", len(leaves))
	}
	ev := []analyze.Evidence{analyze.See(a.Source.Line(b), lifetime(b))}
	if !a.Use.Ref.IsZero() {
		ev = append(ev, analyze.Context(a.Use.Ref, a.Use.Flag))
	}
	for _, l := range leaves[:min(len(leaves), 3)] {
		ev = append(ev, analyze.Context(l.Ref(), "issued by it: "+l.Name()+", ends "+stamp(l.Cert().NotAfter)))
	}
	subject := a.Name()
	if !issuing {
		subject += " (further CA)"
	}
	p.Report(analyze.Finding{Node: n.Node, Subject: subject, Severity: sev, Message: msg, Evidence: ev, ObservedAt: c.NotAfter})
}

// outlive returns a leaf that is dated longer than its CA, or nil.
func outlive(leaves []*creds.Credential, ca *x509.Certificate) *creds.Credential {
	for _, l := range leaves {
		if l.Cert().NotAfter.After(ca.NotAfter) {
			return l
		}
	}
	return nil
}
