package pki

import (
	"fmt"
	"path"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	"coldplane/analyze/logs"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/provenance"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI401", Name: "process-older-than-credential", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Medium, report.Info},
	Doc: analyze.Doc{
		Title: "A process started before its credential was renewed",
		Why: "Renewal changes files only. controller-manager and scheduler read the certificate inside their kubeconfig once and go on with the " +
			"old one until it ends; service-account keys and etcd's CA file are read at start too. The API server's own certificate, its client pairs " +
			"and etcd's pairs are read again by themselves within a minute or at the next handshake: those need no restart.",
		Fix: "Restart that static pod, one node at a time: move its manifest out of the directory, wait until its container is gone (20 s or more), " +
			"move it back.",
		Links: []string{"https://github.com/kubernetes/kubernetes/issues/131298", "https://github.com/kubernetes/kubeadm/issues/2409"}, Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "slack", Default: 60, Unit: "seconds", Source: "file and process times of one node"}},
	Needs:  []analyze.Need{creds.Files, creds.Starts},
	Wants:  []analyze.Need{logs.OnNode, provenance.OfNode},
	Run:    processOlder,
})

func processOlder(p *analyze.Pass) error {
	n, _ := creds.Files.In(p)
	starts, _ := creds.Starts.In(p)
	now, ok := asOf(p, p.Node())
	if !ok {
		return nil
	}
	slack := time.Duration(p.Param("slack") * float64(time.Second))
	files := ownTimes(p, p.Node())
	if !files {
		p.Unknown(bundle.KindPKI, p.Node(), bundle.Undecided, "file times are those of a copy; only the dates inside certificates count")
	}
	for _, c := range n.Credentials {
		if c.Cert() == nil || isCopy(c) {
			continue
		}
		t, backed := c.Changed(now, files)
		for _, u := range c.Users {
			s, ok := starts[u.Process]
			if !ok || t.Before(s.At.Add(slack)) {
				continue
			}
			sev, msg := reload(c, s, now)
			if sev == "" {
				continue
			}
			how := "issued"
			if backed {
				how = "written"
			}
			ev := []analyze.Evidence{analyze.See(c.Ref(), lifetime(c.Leaf)), analyze.Expect(s.Ref, u.Process+": "+s.Text), analyze.Context(u.Ref, u.Flag)}
			if sev == report.Medium {
				if line, ok := refused(p, u.Process, s.At); ok {
					sev, msg, ev = report.High, "it holds the old one and is refused already", append(ev, line)
				}
			}
			p.Report(analyze.Finding{
				Subject: u.Process + " " + c.Name(), Severity: sev, ObservedAt: t, Evidence: ev,
				Message: fmt.Sprintf("%s was %s at %s, %s after %s started: %s", c.Name(), how, stamp(t), span(t.Sub(s.At)), u.Process, msg),
			})
			break
		}
	}
	if files {
		readOnce(p, n, starts, now, slack)
	}
	return nil
}

// reload says how grave a stale process is for a credential, by whether it
// reads the file again on its own.
func reload(c *creds.Credential, s creds.Start, now time.Time) (report.Severity, string) {
	switch c.Role {
	case creds.KubeconfigClient:
		if c.Config.Cert.Inline && (c.Config.Role == kubeconfig.Kubelet) {
			return "", "" // PKI302
		}
		if !c.Config.Cert.Inline {
			return report.Info, "a certificate file that a kubeconfig names is read again by itself"
		}
		// The certificate the process holds was there when it started, so it
		// ended at the latest one lifetime later.
		if life := c.Cert().NotAfter.Sub(c.Cert().NotBefore); now.After(s.At.Add(life)) {
			return report.High, "it read the old one at start, which has ended by now"
		}
		return report.Medium, "it read the old one at start and keeps it"
	case creds.APIServer, creds.APIServerSNI, creds.APIServerEtcd, creds.APIServerKubelet, creds.FrontProxy, creds.EtcdServer, creds.EtcdPeer:
		return report.Info, "it reads the file again by itself, no restart needed"
	}
	return "", ""
}

// readOnce: keys and CA files that are read at start only, by file time.
func readOnce(p *analyze.Pass, n *creds.Node, starts map[string]creds.Start, now time.Time, slack time.Duration) {
	late := func(subject string, use creds.Use, ref bundle.Ref, mtime time.Time, what string) {
		s, ok := starts[use.Process]
		if !ok || mtime.IsZero() || mtime.After(now) || mtime.Before(s.At.Add(slack)) {
			return
		}
		p.Report(analyze.Finding{
			Subject: use.Process + " " + subject, Severity: report.High, ObservedAt: mtime,
			Message:  fmt.Sprintf("%s was written at %s, %s after %s started: %s", subject, stamp(mtime), span(mtime.Sub(s.At)), use.Process, what),
			Evidence: []analyze.Evidence{analyze.See(ref, "modified "+stamp(mtime)), analyze.Expect(s.Ref, use.Process+": "+s.Text), analyze.Context(use.Ref, use.Flag)},
		})
	}
	for _, k := range n.SA {
		if k.Signing {
			if k.Key.State == creds.KeyKnown || k.Key.State == creds.KeyRedacted {
				late(path.Base(k.Key.Path), k.Use, k.Key.Ref, k.Key.ModTime, "service-account keys are read at start only")
			}
			continue
		}
		if k.Source.Err == nil {
			late(k.Source.Name, k.Use, k.Source.Ref, k.Source.ModTime, "service-account keys are read at start only")
		}
	}
	for _, a := range n.CAs {
		if a.Use.Process == staticpod.Etcd && a.Source.Err == nil {
			late(a.Name(), a.Use, a.Source.Ref, a.Source.ModTime, "etcd reads its CA files at start only")
		}
	}
}
