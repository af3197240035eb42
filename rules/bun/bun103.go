package bun

import (
	"bytes"
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "BUN103", Name: "secrets-in-the-input", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Info},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The input holds secrets, or had them removed",
		Why:   "A raw disk or snapshot holds every private key and every Secret: it must not be attached to a ticket as it is. Where keys were removed before, questions about them are answered from fingerprints or stay open.",
		Fix:   "To share it, let coldplane make a bundle (coldplane collect), or scrub the database (coldplane scrub DB OUT). A bundle that coldplane made and that still holds keys is a defect of coldplane: do not send it on, and report it to those you have coldplane from, with the path of the file and without its content.",
		Links: []string{"https://kubernetes.io/docs/concepts/security/secrets-good-practices/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{objects.OnNode},
	Run:   secretsInside,
})

func secretsInside(p *analyze.Pass) error {
	n := p.Node()
	var keys []*bundle.File
	redacted, files := 0, 0
	for _, pattern := range []string{"/etc/kubernetes/pki/*.key", "/etc/kubernetes/pki/etcd/*.key", "/etc/kubernetes/*.conf", "/root/.kube/config", "/var/lib/kubelet/pki/*.pem", "/etc/ssl/etcd/ssl/*.pem"} {
		for _, f := range n.Glob(pattern) {
			if !f.Mode.IsRegular() {
				continue
			}
			b, err := f.Bytes(1 << 20)
			if err != nil {
				continue
			}
			files++
			switch {
			case bytes.Contains(b, []byte("PRIVATE KEY-----")), bytes.Contains(b, []byte("client-key-data: LS0t")), bytes.Contains(b, []byte(`"client-key-data":"LS0t`)):
				keys = append(keys, f)
			case bytes.Contains(b, []byte("REDACTED")), bytes.Contains(b, []byte("REMOVED")), bytes.Contains(b, []byte("removed")):
				redacted++
			}
		}
	}
	secrets := 0
	var sref bundle.Ref
	if set, err := objects.OnNode.Try(p, n); err == nil {
		l := set.Secrets()
		secrets = int(l.Total) - l.Encrypted
		if len(l.Items) > 0 {
			sref = set.DB.Ref()
		}
	}
	if files == 0 && sref.IsZero() {
		p.Unknown(bundle.KindFiles, n, bundle.NotCollected, "no keys, kubeconfigs or database in the input")
		return nil
	}
	switch {
	case len(keys) > 0:
		sev := report.Info
		if keys[0].Input != nil && keys[0].Input.Format == bundle.FormatBundle {
			sev = report.High
		}
		f := analyze.Finding{Subject: "private keys", Severity: sev, Message: fmt.Sprintf("the input holds %d private keys", len(keys))}
		for _, k := range keys[:min(len(keys), 5)] {
			f.Evidence = append(f.Evidence, analyze.Context(k.Ref(), "holds a private key"))
		}
		f.Evidence[0].Role = report.RoleSubject
		p.Report(f)
	case redacted > 0:
		p.Report(analyze.Finding{Subject: "private keys", Severity: report.Info, Message: fmt.Sprintf("private keys were removed from %d files; pairs are judged by fingerprints where there are any", redacted),
			Evidence: []analyze.Evidence{analyze.See(n.Ref("/etc/kubernetes/pki"), "keys removed")}})
	}
	if secrets > 0 && !sref.IsZero() {
		p.Report(analyze.Finding{Subject: "Secrets", Severity: report.Info, Message: fmt.Sprintf("the database holds %d Secrets that are not encrypted at rest", secrets),
			Evidence: []analyze.Evidence{analyze.See(sref, fmt.Sprintf("%d Secrets", secrets))}})
	}
	return nil
}
