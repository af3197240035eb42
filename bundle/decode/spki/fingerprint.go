package spki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
)

// A Fingerprint is the SHA-256 of a DER SubjectPublicKeyInfo. The zero value
// means "not known".
type Fingerprint [sha256.Size]byte

// IsZero reports whether the fingerprint is not known.
func (f Fingerprint) IsZero() bool { return f == Fingerprint{} }

// String returns the fingerprint in hex, "" when it is not known.
func (f Fingerprint) String() string {
	if f.IsZero() {
		return ""
	}
	return hex.EncodeToString(f[:])
}

// Short returns the first 12 hex digits, for messages.
func (f Fingerprint) Short() string {
	if f.IsZero() {
		return "unknown"
	}
	return hex.EncodeToString(f[:6])
}

// ParseFingerprint reads what String wrote.
func ParseFingerprint(s string) (f Fingerprint, ok bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(f) {
		return Fingerprint{}, false
	}
	copy(f[:], b)
	return f, !f.IsZero()
}

// Of returns the fingerprint of a public key of crypto/rsa, crypto/ecdsa,
// crypto/ed25519 or crypto/ecdh.
func Of(pub crypto.PublicKey) (Fingerprint, error) {
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("public key: %w", err)
	}
	return sha256.Sum256(der), nil
}

// OfCertificate returns the fingerprint of a certificate's key, also when Go
// knows no type for that key.
func OfCertificate(c *x509.Certificate) Fingerprint {
	return sha256.Sum256(c.RawSubjectPublicKeyInfo)
}

// Algorithm names a public key's algorithm and size: "RSA-2048", "ECDSA-P256",
// "Ed25519"; "" when the type is not known.
func Algorithm(pub crypto.PublicKey) string {
	switch k := pub.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA-%d", k.N.BitLen())
	case *ecdsa.PublicKey:
		if p := k.Curve.Params(); p != nil {
			return fmt.Sprintf("ECDSA-P%d", p.BitSize)
		}
		return "ECDSA"
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return ""
}
