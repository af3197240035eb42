package pki

import (
	"fmt"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/running"
	"coldplane/bundle/decode/spki"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI101", Name: "certificate-expired", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "A certificate is expired or not yet valid",
		Why: "TLS refuses it: the server logs that the certificate has expired or is not yet valid, the other side sees only " +
			"\"tls: expired certificate\". Established connections live on, so the failure shows at the next reconnect or restart, not at the minute " +
			"of expiry. kubeadm gives all leaves one year from the last init, renewal or upgrade, which is why they usually end together.",
		Fix: "Check the node's clock first: a wrong clock makes good certificates look expired. Then renew on every control-plane node with " +
			"kubeadm certs renew all, restart kube-controller-manager and kube-scheduler, and replace copies of admin.conf. " +
			"Renewal works while the API server is down. It does not renew CAs and not the kubelet's own certificate.",
		Links: []string{docCerts}, Since: "v0.1",
	},
	Needs: []analyze.Need{creds.Joined},
	Wants: []analyze.Need{running.Config, logs.OnNode},
	Run:   expired,
})

func expired(p *analyze.Pass) error {
	cl, _ := creds.Joined.In(p)
	cfg, err := running.Config.Try(p, nil)
	external := err == nil && cfg.External()
	for _, n := range cl.Nodes {
		now, ok := asOf(p, n.Node)
		if !ok {
			continue
		}
		told := map[*creds.Credential]bool{}
		for _, c := range n.Credentials {
			if told[c] || kubeletOwn(c) || isCopy(c) || c.Role == creds.SigningCA || unreadable(p, c) {
				continue
			}
			out := outside(c, now)
			if out == nil {
				continue
			}
			with := companions(n, c, now)
			for _, w := range with {
				told[w] = true
			}
			f := expiredFinding(c, out, with, now, weight(c, cl.Members, external))
			if line, ok := expiryLine(p, p.Nodes(), f.ObservedAt); ok {
				f.Evidence = append(f.Evidence, line)
			}
			p.Report(f)
		}
	}
	return nil
}

// outside returns the first certificate of a source that a TLS peer would
// refuse for its dates: the leaf, or an intermediate sent with it.
func outside(c *creds.Credential, now time.Time) *spki.Block {
	blocks := []*spki.Block{c.Leaf}
	if c.Server || c.Client {
		blocks = append(blocks, c.Rest...)
	}
	for _, b := range blocks {
		if b.Cert != nil && (now.After(b.Cert.NotAfter) || now.Before(b.Cert.NotBefore)) {
			return b
		}
	}
	return nil
}

// companions are the API server's client certificates for kubelets and
// extension servers when they ended together with its serving certificate.
// They belong to one process and one renewal, and what they break is out of
// reach anyway while the API server itself cannot be reached: one finding
// tells of all of them.
func companions(n *creds.Node, c *creds.Credential, now time.Time) []*creds.Credential {
	if c.Role != creds.APIServer || c.Cert() == nil {
		return nil
	}
	var out []*creds.Credential
	for _, r := range []creds.Role{creds.APIServerKubelet, creds.FrontProxy} {
		for _, o := range n.ByRole(r) {
			if o.Cert() == nil || outside(o, now) == nil || len(o.Users) == 0 {
				continue
			}
			if d := o.Cert().NotAfter.Sub(c.Cert().NotAfter).Abs(); d <= time.Hour {
				out = append(out, o)
			}
		}
	}
	return out
}

func expiredFinding(c *creds.Credential, b *spki.Block, with []*creds.Credential, now time.Time, sev report.Severity) analyze.Finding {
	what := c.Name()
	if b != c.Leaf {
		what = fmt.Sprintf("an intermediate certificate (%s) in %s", b.Cert.Subject.CommonName, c.Name())
	}
	at := b.Cert.NotAfter
	msg := fmt.Sprintf("%s%s expired %s ago, at %s", what, usedBy(c), span(now.Sub(b.Cert.NotAfter)), stamp(b.Cert.NotAfter))
	if now.Before(b.Cert.NotBefore) {
		at = b.Cert.NotBefore
		msg = fmt.Sprintf("%s%s is not valid before %s, %s after the node's time; check the clock", what, usedBy(c), stamp(b.Cert.NotBefore), span(b.Cert.NotBefore.Sub(now)))
	}
	ev := append([]analyze.Evidence{analyze.See(c.Source.Line(b), lifetime(b))}, users(c)...)
	if len(with) > 0 {
		var names []string
		for _, w := range with {
			names = append(names, w.Name())
			for _, u := range w.Users {
				ev = append(ev, analyze.Context(u.Ref, u.Flag+" (ended "+stamp(w.Cert().NotAfter)+")"))
			}
		}
		msg += "; the same process's " + strings.Join(names, " and ") + " ended with it"
	}
	return analyze.Finding{
		Node: c.Node, Subject: c.Name(), Severity: sev, Message: msg, Evidence: ev,
		Fix: renewSteps(c), ObservedAt: at,
	}
}
