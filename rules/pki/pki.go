// Package pki holds the rules about certificates, keys and kubeconfigs (family PKI).
package pki

import (
	"fmt"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
	"coldplane/report"
)

// Rules is the family.
var Rules analyze.Catalogue

const day = 24 * time.Hour

const (
	docCerts = "https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-certs/"
	docPKI   = "https://kubernetes.io/docs/setup/best-practices/certificates/"
)

// stamp writes a time as all messages of the family do.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// span writes a duration by its two largest units.
func span(d time.Duration) string {
	switch d = d.Abs(); {
	case d >= 2*day:
		return fmt.Sprintf("%d days", int(d/day))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", int(d/time.Hour))
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", int(d/time.Minute))
	}
	return fmt.Sprintf("%d seconds", int(d/time.Second))
}

// lifetime describes a certificate in an excerpt.
func lifetime(b *spki.Block) string {
	c := b.Cert
	return fmt.Sprintf("subject %q, issuer %q, serial %x, valid %s to %s", c.Subject.String(), c.Issuer.String(), c.SerialNumber, stamp(c.NotBefore), stamp(c.NotAfter))
}

// users is evidence of who uses a credential.
func users(c *creds.Credential) []analyze.Evidence {
	var out []analyze.Evidence
	for _, u := range c.Users {
		if !u.Ref.IsZero() && u.Ref != c.Source.Ref {
			out = append(out, analyze.Context(u.Ref, u.Flag))
		}
	}
	return out
}

// usedBy is a part of a sentence: " (kube-apiserver, --tls-cert-file=…)".
func usedBy(c *creds.Credential) string {
	if len(c.Users) == 0 {
		return ""
	}
	return " (used by " + c.Users[0].Process + ")"
}

// renewSteps is how certificates are renewed, also when the API server is down.
func renewSteps(cs ...*creds.Credential) []report.Step {
	steps := []report.Step{
		{Text: "See what kubeadm would renew; with the API server down give it the cluster's configuration, else it falls back to defaults.", Command: "kubeadm certs check-expiration --config full.yaml"},
		{Text: "Copy /etc/kubernetes/pki and /etc/kubernetes/*.conf off the node."},
		{Text: "Renew on every control-plane node, not only on this one.", Command: "kubeadm certs renew all --config full.yaml"},
		{Text: "Restart kube-controller-manager and kube-scheduler: they read their kubeconfig once. The API server and etcd pick up their own pairs."},
	}
	for _, c := range cs {
		if c.Role == creds.KubeconfigClient && c.Config != nil && c.Config.Role == kubeconfig.Admin {
			return append(steps, report.Step{Text: "Copy the new admin.conf over every copy of it.", Command: "cp /etc/kubernetes/admin.conf ~/.kube/config"})
		}
	}
	return steps
}

// asOf returns the node's time; without one the question stays open.
func asOf(p *analyze.Pass, n *bundle.Node) (time.Time, bool) {
	t, ok := p.AsOf(n)
	if !ok {
		p.Unknown(bundle.KindPKI, n, bundle.Undecided, "no time is known to judge the dates against; give --as-of")
	}
	return t, ok
}

// unreadable records a source that cannot be judged. It reports true when
// there is nothing more to look at.
func unreadable(p *analyze.Pass, c *creds.Credential) bool {
	switch {
	case c.Source.Err != nil:
		if !bundle.IsAbsent(c.Source.Err) { // an absent file is STA202's
			p.UnknownErr(bundle.KindPKI, c.Node, c.Source.Err)
		}
	case c.Source.PEM.Marker != "":
		p.Unknown(bundle.KindPKI, c.Node, bundle.Redacted, c.Source.Path)
	case c.Cert() == nil: // PKI201 reports it
		p.Unknown(bundle.KindPKI, c.Node, bundle.Damaged, c.Source.Path+" holds no certificate that can be read")
	default:
		return false
	}
	return true
}

// kubeletOwn reports whether the kubelet renews a certificate by itself, or
// made it for itself.
func kubeletOwn(c *creds.Credential) bool {
	return c.Role == creds.KubeletClient || c.Role == creds.KubeletServing ||
		c.Config != nil && (c.Config.Role == kubeconfig.Kubelet || c.Config.Role == kubeconfig.Bootstrap)
}

// isCopy reports whether a credential stands in a kubeconfig of a home directory.
func isCopy(c *creds.Credential) bool {
	return c.Config != nil && c.Config.Role == kubeconfig.Copy
}

// byPod reports whether a kubeconfig is mounted by a static pod that is no
// component of the control plane.
func byPod(c *creds.Credential) bool {
	for _, u := range c.Users {
		if strings.HasPrefix(u.Flag, "hostPath ") {
			return true
		}
	}
	return false
}

// weight is how grave it is when a credential does not work.
func weight(c *creds.Credential, members int, external bool) report.Severity {
	switch c.Role {
	case creds.APIServer, creds.APIServerKubelet, creds.EtcdServer:
		return report.Critical
	case creds.APIServerEtcd:
		if external {
			return report.High
		}
		return report.Critical
	case creds.EtcdPeer:
		if members == 1 {
			return report.Medium // nobody dials the peer port of a single member
		}
		return report.Critical
	case creds.FrontProxy, creds.APIServerSNI:
		return report.High
	case creds.KubeconfigClient:
		switch c.Config.Role {
		case kubeconfig.ControllerManager, kubeconfig.Scheduler, kubeconfig.Kubelet:
			return report.Critical
		case kubeconfig.Admin, kubeconfig.SuperAdmin:
			return report.High
		}
		for _, u := range c.Users {
			if u.Process == staticpod.ControllerManager || u.Process == staticpod.Scheduler || u.Process == "kubelet" {
				return report.Critical
			}
		}
		return report.Medium
	case creds.KubeletClient:
		return report.Critical
	}
	return report.Medium
}
