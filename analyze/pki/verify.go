package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	_ "crypto/sha1" // to check signatures Go refuses to check
	"crypto/x509"
	"errors"
	"fmt"

	"coldplane/bundle/decode/spki"
)

// Limits of one chain, so that a hostile set of certificates costs no more
// than a few hundred signature checks.
const (
	maxChain      = 6   // certificates between leaf and trust anchor
	maxCandidates = 20  // issuers tried for one certificate
	maxChecks     = 100 // signatures checked for one chain
	maxRSABits    = 16384
)

// A Chain is the outcome of looking for a path from a certificate to a
// verifier's CAs. Dates are not looked at: they are another question.
type Chain struct {
	OK     bool
	Path   []*x509.Certificate // the leaf first, the trust anchor last; only when OK
	Why    string              // why there is none
	Named  *x509.Certificate   // an anchor that bears the issuer's name or key id but did not sign
	Weak   bool                // a signature on the path uses an algorithm Go refuses
	NoCA   bool                // the verifier's file holds no usable certificate
	checks int
}

// Verify looks for a chain from leaf through intermediates to one of the
// roots: by name and key identifiers first, then by signature.
func Verify(leaf *x509.Certificate, intermediates, roots []*x509.Certificate) *Chain {
	c := &Chain{}
	if len(roots) == 0 {
		c.NoCA, c.Why = true, "the CA file holds no readable certificate"
		return c
	}
	if path := c.build([]*x509.Certificate{leaf}, intermediates, roots); path != nil {
		c.OK, c.Path = true, path
		return c
	}
	if c.Why == "" {
		c.Why = fmt.Sprintf("its issuer %q is not among the CAs trusted there", leaf.Issuer.String())
	}
	return c
}

func (c *Chain) build(path, inter, roots []*x509.Certificate) []*x509.Certificate {
	last := path[len(path)-1]
	for _, r := range roots {
		if r.Equal(last) { // the certificate itself is trusted
			return path
		}
	}
	for i, pool := range [][]*x509.Certificate{roots, inter} {
		for _, p := range candidates(last, pool) {
			if c.checks++; c.checks > maxChecks {
				c.Why = "too many possible issuers"
				return nil
			}
			weak, err := signed(last, p)
			if err != nil {
				if i == 0 && c.Named == nil {
					c.Named = p
					c.Why = fmt.Sprintf("a CA named %q is trusted there, but it did not sign this certificate: %v", p.Subject.String(), err)
				}
				continue
			}
			next := append(append([]*x509.Certificate{}, path...), p)
			if i == 0 {
				c.Weak = c.Weak || weak
				return next
			}
			if len(next) > maxChain || contains(path, p) {
				continue
			}
			if full := c.build(next, inter, roots); full != nil {
				c.Weak = c.Weak || weak
				return full
			}
		}
	}
	return nil
}

func contains(path []*x509.Certificate, c *x509.Certificate) bool {
	for _, p := range path {
		if p.Equal(c) {
			return true
		}
	}
	return false
}

// candidates returns the certificates that could have issued c: those with
// its issuer's name, the ones whose key id agrees first.
func candidates(c *x509.Certificate, pool []*x509.Certificate) []*x509.Certificate {
	var agree, other []*x509.Certificate
	for _, p := range pool {
		if !bytes.Equal(p.RawSubject, c.RawIssuer) {
			continue
		}
		if len(c.AuthorityKeyId) > 0 && bytes.Equal(c.AuthorityKeyId, p.SubjectKeyId) {
			agree = append(agree, p)
		} else {
			other = append(other, p)
		}
	}
	out := append(agree, other...)
	return out[:min(len(out), maxCandidates)]
}

var (
	errOtherKey = errors.New("the signature was made with another key")
	errNotCA    = errors.New("it is not a CA certificate")
)

// signed reports whether p signed c. Signatures with algorithms Go refuses
// (SHA-1) are checked all the same and reported as weak.
func signed(c, p *x509.Certificate) (weak bool, err error) {
	if p.Version == 3 && (!p.BasicConstraintsValid || !p.IsCA) || p.BasicConstraintsValid && !p.IsCA {
		return false, errNotCA
	}
	if k, ok := p.PublicKey.(*rsa.PublicKey); ok && k.N.BitLen() > maxRSABits {
		return false, fmt.Errorf("its key is larger than %d bits and is not tried", maxRSABits)
	}
	err = c.CheckSignatureFrom(p)
	if err == nil {
		return false, nil
	}
	var insecure x509.InsecureAlgorithmError
	if errors.As(err, &insecure) {
		return true, sha1Signed(c, p)
	}
	if errors.As(err, &x509.ConstraintViolationError{}) {
		return false, errors.New("its key usage does not allow signing certificates")
	}
	return false, errOtherKey
}

func sha1Signed(c, p *x509.Certificate) error {
	h := crypto.SHA1.New()
	h.Write(c.RawTBSCertificate)
	sum := h.Sum(nil)
	switch k := p.PublicKey.(type) {
	case *rsa.PublicKey:
		if c.SignatureAlgorithm == x509.SHA1WithRSA && rsa.VerifyPKCS1v15(k, crypto.SHA1, sum, c.Signature) == nil {
			return nil
		}
	case *ecdsa.PublicKey:
		if c.SignatureAlgorithm == x509.ECDSAWithSHA1 && ecdsa.VerifyASN1(k, sum, c.Signature) {
			return nil
		}
	}
	return errOtherKey
}

// Certs returns the parsed certificates of blocks.
func Certs(bs []*spki.Block) []*x509.Certificate {
	var out []*x509.Certificate
	for _, b := range bs {
		if b.Cert != nil {
			out = append(out, b.Cert)
		}
	}
	return out
}
