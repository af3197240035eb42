package pki

import (
	"fmt"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	creds "coldplane/analyze/pki"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI301", Name: "stale-admin-kubeconfig-copy", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "A copy of the admin kubeconfig is older than the original",
		Why: "~/.kube/config is a copy. Renewal replaces /etc/kubernetes/admin.conf only, so kubectl goes on with the old certificate and one day " +
			"says Unauthorized or x509: certificate has expired while the cluster is well.",
		Fix:   "Copy the file again: cp -f /etc/kubernetes/admin.conf ~/.kube/config && chown $(id -u):$(id -g) ~/.kube/config",
		Links: []string{docCerts}, Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "low", Default: 30, Unit: "days", Source: "a copy valid for longer is only untidy"}},
	Needs:  []analyze.Need{creds.Files},
	Run:    staleCopy,
})

func staleCopy(p *analyze.Pass) error {
	n, _ := creds.Files.In(p)
	now, ok := asOf(p, p.Node())
	if !ok {
		return nil
	}
	var admin *creds.Credential
	copies := []*creds.Credential{}
	for _, c := range n.Credentials {
		switch {
		case isCopy(c):
			copies = append(copies, c)
		case c.Config != nil && c.Config.Role == kubeconfig.Admin:
			admin = c
		}
	}
	switch {
	case len(copies) == 0 && !p.Node().HasDir("/root"):
		p.Unknown(bundle.KindKubeconfig, p.Node(), bundle.NotCollected, "/root/.kube/config")
		return nil
	case len(copies) == 0:
		return nil
	case admin == nil || admin.Cert() == nil:
		p.Unknown(bundle.KindKubeconfig, p.Node(), bundle.NotCollected, "/etc/kubernetes/admin.conf")
		return nil
	}
	for _, c := range copies {
		if unreadable(p, c) || otherCluster(n, c) {
			continue
		}
		a, b := admin.Cert(), c.Cert()
		if a.SerialNumber.Cmp(b.SerialNumber) == 0 || !b.NotAfter.Before(a.NotAfter) {
			continue
		}
		left := b.NotAfter.Sub(now)
		sev := report.Medium
		what := fmt.Sprintf("ends in %s, at %s", span(left), stamp(b.NotAfter))
		switch {
		case left < 0:
			what = fmt.Sprintf("expired %s ago, at %s", span(left), stamp(b.NotAfter))
		case left > time.Duration(p.Param("low")*float64(day)):
			sev = report.Low
		}
		p.Report(analyze.Finding{
			Subject: c.Name(), Severity: sev, ObservedAt: b.NotAfter,
			Message: fmt.Sprintf("%s is an old copy: its certificate (serial %x) %s; admin.conf has serial %x, valid to %s",
				c.Name(), b.SerialNumber, what, a.SerialNumber, stamp(a.NotAfter)),
			Evidence: []analyze.Evidence{analyze.See(c.Ref(), lifetime(c.Leaf)), analyze.Expect(admin.Ref(), lifetime(admin.Leaf))},
			Fix:      []report.Step{{Text: "Copy the current file over it, and give it back to its owner.", Command: "cp -f /etc/kubernetes/admin.conf " + c.Source.Path}},
		})
	}
	return nil
}

// otherCluster reports whether a copy's CA is none of this cluster's.
func otherCluster(n *creds.Node, c *creds.Credential) bool {
	return !ours(n, c.Config)
}
