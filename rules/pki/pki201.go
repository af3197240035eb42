package pki

import (
	"fmt"
	"slices"

	"coldplane/analyze"
	creds "coldplane/analyze/pki"
	"coldplane/analyze/provenance"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "PKI201", Name: "certificate-key-mismatch", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.Medium},
	Doc: analyze.Doc{
		Title: "A certificate and its private key do not belong together",
		Why: "The process that loads the pair fails at its next start or reload with \"private key does not match public key\", or with a PEM " +
			"error when the certificate cannot be read at all. It happens when one of two files is restored, copied from another node or issued twice. " +
			"Keys are compared by the fingerprint of their public half; the key itself is not in the evidence.",
		Fix: "Put the matching file back, or issue the pair again: move both files away, then run kubeadm init phase certs NAME --config full.yaml. " +
			"Do not delete a CA's key or certificate: move them.",
		Links: []string{docPKI}, Since: "v0.1",
	},
	Needs: []analyze.Need{creds.Files},
	Wants: []analyze.Need{provenance.OfNode},
	Run:   pairMismatch,
})

func pairMismatch(p *analyze.Pass) error {
	n, _ := creds.Files.In(p)
	for _, c := range n.Credentials {
		if isCopy(c) || c.Role == creds.SigningCA {
			continue
		}
		onePair(p, c)
	}
	for _, c := range n.CAPairs() {
		onePair(p, c)
	}
	return nil
}

func onePair(p *analyze.Pass, c *creds.Credential) {
	switch {
	case c.Source.Err != nil:
		if !bundle.IsAbsent(c.Source.Err) {
			p.UnknownErr(bundle.KindPKI, c.Node, c.Source.Err)
		}
		return
	case c.Source.PEM.Marker != "":
		p.Unknown(bundle.KindPKI, c.Node, bundle.Redacted, c.Source.Path)
		return
	case c.Cert() == nil:
		unparsable(p, c)
		return
	}
	switch c.Key.State {
	case creds.KeyKnown:
	case creds.KeyAbsent: // an external CA, or STA202
		return
	case creds.KeyRedacted:
		p.Unknown(bundle.KindPKI, c.Node, bundle.Redacted, "the key of "+c.Name())
		return
	case creds.KeyEncrypted:
		p.Unknown(bundle.KindPKI, c.Node, bundle.Undecided, "the key of "+c.Name()+" is under a passphrase")
		return
	case creds.KeyDamaged:
		p.Unknown(bundle.KindPKI, c.Node, bundle.Damaged, "the key of "+c.Name()+": "+c.Key.Detail)
		return
	default:
		p.Unknown(bundle.KindPKI, c.Node, bundle.NotCollected, "the key of "+c.Name())
		return
	}
	if c.Leaf.SPKI == c.Key.SPKI || c.Role == creds.SigningCA && holds(c, c.Key.SPKI) {
		return
	}
	key := analyze.Expect(c.Key.Ref, fmt.Sprintf("key %s, public key %s %s", c.Key.Path, c.Key.Algorithm, c.Key.SPKI.Short()))
	cert := analyze.See(c.Ref(), fmt.Sprintf("certificate, public key %s %s; %s", c.Leaf.Algorithm, c.Leaf.SPKI.Short(), lifetime(c.Leaf)))
	msg := fmt.Sprintf("%s%s holds the public key %s, its private key has %s", c.Name(), usedBy(c), c.Leaf.SPKI.Short(), c.Key.SPKI.Short())
	if a, b := c.Source.ModTime, c.Key.ModTime; !a.IsZero() && !b.IsZero() && a.Sub(b).Abs().Seconds() > 2 && ownTimes(p, c.Node) {
		newer := "certificate"
		if b.After(a) {
			newer = "key"
		}
		msg += fmt.Sprintf("; the %s is newer by %s", newer, span(a.Sub(b)))
	}
	ev := append([]analyze.Evidence{cert, key}, users(c)...)
	if !c.KeyUse.Ref.IsZero() {
		ev = append(ev, analyze.Context(c.KeyUse.Ref, c.KeyUse.Flag))
	}
	p.Report(analyze.Finding{Subject: c.Name(), Severity: report.Critical, Message: msg, Evidence: ev})
}

// ownTimes reports whether a node's files carry the times they had there.
func ownTimes(p *analyze.Pass, n *bundle.Node) bool {
	a, err := provenance.OfNode.Try(p, n)
	return err == nil && a.Times == ""
}

// holds reports whether any certificate of a CA file has the key: while a CA
// is being replaced the file holds the old and the new one.
func holds(c *creds.Credential, k spki.Fingerprint) bool {
	return slices.ContainsFunc(c.Rest, func(b *spki.Block) bool { return b.SPKI == k })
}

// unparsable reports a file in use that holds no certificate Go can read.
func unparsable(p *analyze.Pass, c *creds.Credential) {
	sev := report.Critical
	if c.Role == creds.EtcdHealthcheck {
		sev = report.Medium
	}
	why, ref := "no certificate in it", c.Source.Ref
	switch {
	case c.Leaf != nil:
		why, ref = "it cannot be parsed: "+c.Leaf.Err.Error(), c.Ref()
		if q := c.Leaf.Partial; q != nil {
			why += fmt.Sprintf(" (valid %s to %s, public key %s)", stamp(q.NotBefore), stamp(q.NotAfter), c.Leaf.SPKI.Short())
		}
	case c.Source.PEM.Empty:
		why = "the file is empty"
	}
	p.Report(analyze.Finding{
		Subject: c.Name(), Severity: sev,
		Message:  fmt.Sprintf("%s%s holds no certificate the control plane can load: %s", c.Name(), usedBy(c), why),
		Evidence: append([]analyze.Evidence{analyze.See(ref, why)}, users(c)...),
	})
}
