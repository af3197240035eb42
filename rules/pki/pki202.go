package pki

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	creds "coldplane/analyze/pki"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI202", Name: "certificate-not-trusted-by-verifier", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "A certificate is not signed by the CA its verifier trusts",
		Why: "The verifier's own flag decides whom it believes, not the file beside the certificate. CAs made twice have the same name and " +
			"another key, so that every subject and issuer looks right while each handshake fails. The server's log may say that the client gave no " +
			"certificate although it holds one; the files decide.",
		Fix: "Find out which of the two is the cluster's real CA (the one most nodes and kubeconfigs hold). Then either put that CA back at the " +
			"verifier's path, or issue the certificate again from it with kubeadm init phase certs NAME --config full.yaml. Keep the old files.",
		Links: []string{docPKI}, Since: "v0.1",
	},
	Needs: []analyze.Need{creds.Joined},
	Run:   notTrusted,
})

func notTrusted(p *analyze.Pass) error {
	cl, _ := creds.Joined.In(p)
	seen := map[string]bool{}
	for _, n := range cl.Nodes {
		for _, a := range n.CAs {
			unreadableCA(p, a, seen)
		}
	}
	failed := map[*creds.Credential][]*creds.Check{}
	var order []*creds.Credential
	for _, ch := range cl.Checks {
		if ch.Chain.OK || ch.Chain.NoCA {
			continue
		}
		if failed[ch.Cred] == nil {
			order = append(order, ch.Cred)
		}
		failed[ch.Cred] = append(failed[ch.Cred], ch)
	}
	for _, c := range order {
		p.Report(untrusted(c, failed[c]))
	}
	for _, c := range cl.Without {
		p.Unknown(bundle.KindPKI, c.Node, bundle.NotCollected, "the CA with which "+c.Name()+" is verified")
	}
	for _, n := range cl.Nodes {
		for _, c := range n.Credentials {
			if c.Source.Err != nil && !bundle.IsAbsent(c.Source.Err) {
				p.UnknownErr(bundle.KindPKI, n.Node, c.Source.Err)
			}
		}
	}
	return nil
}

func untrusted(c *creds.Credential, checks []*creds.Check) analyze.Finding {
	sev := report.Critical
	switch {
	case c.Role == creds.EtcdHealthcheck:
		sev = report.Medium
	case isCopy(c), c.Config != nil && (c.Config.Role == kubeconfig.Admin || c.Config.Role == kubeconfig.SuperAdmin || c.Config.Role == kubeconfig.Other):
		sev = report.High
	}
	ch := checks[0]
	conf := report.Certain
	if ch.Assumed {
		conf = report.Probable
	}
	ev := []analyze.Evidence{analyze.See(c.Ref(), fmt.Sprintf("issuer %q, authority key id %x", c.Cert().Issuer.String(), c.Cert().AuthorityKeyId))}
	var who []string
	for _, x := range checks {
		w := x.CA.Use.Process
		if w == "" {
			w = x.CA.Name()
		}
		if slices.Contains(who, w) {
			continue
		}
		who = append(who, w)
		text := "no certificate"
		if cs := x.CA.Certs(); len(cs) > 0 {
			text = fmt.Sprintf("trusts %q, key id %x", cs[0].Subject.String(), cs[0].SubjectKeyId)
		}
		if len(ev) < 6 {
			ev = append(ev, analyze.Expect(x.CA.Source.Ref, text))
			if !x.CA.Use.Ref.IsZero() && x.CA.Use.Ref != x.CA.Source.Ref {
				ev = append(ev, analyze.Context(x.CA.Use.Ref, x.CA.Use.Flag))
			}
		}
	}
	ev = append(ev, users(c)...)
	return analyze.Finding{
		Node: c.Node, Subject: c.Name(), Severity: sev, Confidence: conf,
		Message:  fmt.Sprintf("%s%s is not accepted by %s: %s", c.Name(), usedBy(c), strings.Join(who, ", "), ch.Chain.Why),
		Evidence: ev,
	}
}

// unreadableCA reports a CA file in use that holds no readable certificate.
func unreadableCA(p *analyze.Pass, a *creds.CA, seen map[string]bool) {
	key := a.Node.Name + "\x00" + a.Source.Path + "\x00" + a.Source.Name
	switch {
	case seen[key] || a.Config != nil && (a.Config.Role == kubeconfig.Copy || a.Config.Role == kubeconfig.Other):
		return
	case a.Source.Err != nil:
		if !bundle.IsAbsent(a.Source.Err) {
			p.UnknownErr(bundle.KindPKI, a.Node, a.Source.Err)
		}
		return
	case a.Source.PEM.Marker != "":
		p.Unknown(bundle.KindPKI, a.Node, bundle.Redacted, a.Source.Path)
		return
	case len(a.Certs()) > 0:
		return
	}
	seen[key] = true
	why, ref := "no certificate in it", a.Source.Ref
	if bs := a.Source.Certificates(); len(bs) > 0 {
		why, ref = bs[0].Err.Error(), a.Source.Line(bs[0])
	}
	ev := []analyze.Evidence{analyze.See(ref, why)}
	if !a.Use.Ref.IsZero() && a.Use.Ref != ref {
		ev = append(ev, analyze.Context(a.Use.Ref, a.Use.Flag))
	}
	p.Report(analyze.Finding{
		Node: a.Node, Subject: a.Name(), Severity: report.Critical,
		Message:  fmt.Sprintf("the CA file %s holds no certificate that can be read, so nothing it should vouch for is accepted: %s", a.Name(), why),
		Evidence: ev,
	})
}
