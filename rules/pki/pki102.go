package pki

import (
	"fmt"
	"time"

	"coldplane/analyze"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/running"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI102", Name: "certificate-expires-soon", Scope: analyze.PerCluster, Latent: true,
	Severities: []report.Severity{report.Critical, report.High, report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "A certificate expires soon",
		Why: "Nothing renews the certificates kubeadm makes except kubeadm itself: an upgrade, or kubeadm certs renew. A cluster that is not " +
			"upgraded for a year stops on one day, API server and kubelets together. CAs are PKI103, the kubelet's own certificate is PKI302.",
		Fix: "Renew on every control-plane node with kubeadm certs renew all and restart kube-controller-manager and kube-scheduler, or make " +
			"the next kubeadm upgrade before that day: it renews all leaves. With an external CA have new certificates signed from " +
			"kubeadm certs generate-csr.",
		Links: []string{docCerts, "https://github.com/enix/x509-certificate-exporter"}, Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "high", Default: 14, Unit: "days", Source: "enix/x509-certificate-exporter, critical alert"},
		{Name: "medium", Default: 28, Unit: "days", Source: "enix/x509-certificate-exporter, warning alert"},
		{Name: "horizon", Default: 90, Unit: "days", Source: "about one Kubernetes minor release"},
		{Name: "together", Default: 48, Unit: "hours", Source: "nodes that end within this time fail as one"},
	},
	Needs: []analyze.Need{creds.Joined},
	Wants: []analyze.Need{running.Config},
	Run:   expiresSoon,
})

func expiresSoon(p *analyze.Pass) error {
	cl, _ := creds.Joined.In(p)
	days := func(name string) time.Duration { return time.Duration(p.Param(name) * float64(day)) }
	together := time.Duration(p.Param("together") * float64(time.Hour))
	for _, n := range cl.Nodes {
		now, ok := asOf(p, n.Node)
		if !ok {
			continue
		}
		for _, c := range n.Credentials {
			if kubeletOwn(c) || isCopy(c) || byPod(c) || c.Role == creds.SigningCA || unreadable(p, c) {
				continue
			}
			cert := c.Cert()
			left := cert.NotAfter.Sub(now)
			if left < 0 || now.Before(cert.NotBefore) { // PKI101
				continue
			}
			var sev report.Severity
			switch {
			case left < days("high"):
				sev = report.High
			case left < days("medium"):
				sev = report.Medium
			case left < days("horizon"):
				sev = report.Low
			default:
				continue
			}
			msg := fmt.Sprintf("%s%s expires in %s, at %s", c.Name(), usedBy(c), span(left), stamp(cert.NotAfter))
			if life := cert.NotAfter.Sub(cert.NotBefore); life < 300*day {
				msg += fmt.Sprintf("; it was issued for %s", span(life))
			}
			if external := externalCA(n); external && sev == report.Low {
				sev = report.Medium
				msg += "; the CA's key is not on this node, so kubeadm cannot renew it"
			}
			if o := endsWith(cl, c, together); o != nil && sev != report.Low {
				sev = sev.Up()
				msg += fmt.Sprintf("; the same certificate of %s ends %s", o.Node.Name, within(o.Cert().NotAfter.Sub(cert.NotAfter)))
			}
			if p.Target() != "" {
				sev = sev.Up()
			}
			if c.Role == creds.EtcdHealthcheck && sev.AtLeast(report.Medium) {
				sev = report.Medium // no probe uses it any more
			}
			p.Report(analyze.Finding{
				Node: n.Node, Subject: c.Name(), Severity: sev, Message: msg, ObservedAt: cert.NotAfter,
				Evidence: append([]analyze.Evidence{analyze.See(c.Ref(), lifetime(c.Leaf))}, users(c)...),
				Fix:      renewSteps(c),
			})
		}
	}
	return nil
}

func within(d time.Duration) string {
	if d.Abs() < time.Hour {
		return "in the same hour"
	}
	return "within " + span(d)
}

// externalCA reports whether the cluster CA is on the node and its key is
// known not to be.
func externalCA(n *creds.Node) bool {
	return n.CAKey(creds.PKIDir+"/ca.key").State == creds.KeyAbsent && n.CA(creds.ClusterCA) != nil
}

// endsWith finds another node's certificate of the same name that ends at
// nearly the same time.
func endsWith(cl *creds.Cluster, c *creds.Credential, d time.Duration) *creds.Credential {
	for _, n := range cl.Nodes {
		if n.Node == c.Node {
			continue
		}
		for _, o := range n.ByRole(c.Role) {
			if o.Name() == c.Name() && o.Cert() != nil && o.Cert().NotAfter.Sub(c.Cert().NotAfter).Abs() <= d {
				return o
			}
		}
	}
	return nil
}
