package pkitest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"time"
)

// A steady key signs without randomness, so that certificates are the same
// in every run.
type steady struct{ *ecdsa.PrivateKey }

func (k steady) Sign(_ io.Reader, digest []byte, o crypto.SignerOpts) ([]byte, error) {
	return k.PrivateKey.Sign(nil, digest, o)
}

// key derives a key from a name. RSA keys cannot be derived; they are made
// anew in every run.
func key(name, alg string) (crypto.Signer, error) {
	sum := sha256.Sum256([]byte("pkitest " + name))
	switch alg {
	case "":
		k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), sum[:])
		return steady{k}, err
	case "ed25519":
		return ed25519.NewKeyFromSeed(sum[:]), nil
	case "rsa1024":
		return rsa.GenerateKey(rand.Reader, 1024)
	case "rsa2048":
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return nil, fmt.Errorf("no key algorithm %q", alg)
}

// An identity is a certificate with its key.
type identity struct {
	cert *x509.Certificate
	der  []byte
	key  crypto.Signer
}

// A request is what a certificate is to be.
type request struct {
	seed     string // for serial and key
	keyName  string
	alg      string
	cn       string
	org      []string
	sans     []string
	usages   []x509.ExtKeyUsage
	ca       bool
	from, to time.Time
	sha1     bool
	negative bool
}

// issue makes a certificate; issuer nil makes it self-signed.
func issue(r request, issuer *identity) (*identity, error) {
	if r.keyName == "" {
		r.keyName = r.seed
	}
	k, err := key(r.keyName, r.alg)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(r.seed))
	serial := new(big.Int).SetUint64(binary.BigEndian.Uint64(sum[:8]) >> 2)
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: r.cn, Organization: r.org},
		NotBefore: r.from, NotAfter: r.to, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: r.usages, BasicConstraintsValid: true,
	}
	if r.ca {
		t.IsCA, t.KeyUsage = true, t.KeyUsage|x509.KeyUsageCertSign
	}
	if r.sha1 {
		t.SignatureAlgorithm = x509.SHA1WithRSA
	}
	for _, s := range r.sans {
		if ip := net.ParseIP(s); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, s)
		}
	}
	parent, signer := t, k
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, k.Public(), signer)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	id := &identity{cert: c, der: der, key: k}
	if r.negative {
		// INTEGER of eight bytes: set the sign bit. The signature no longer fits.
		b := serial.Bytes()
		if i := strings.Index(string(der), string(b)); i > 0 && len(b) == 8 {
			der[i] |= 0x80
		}
	}
	return id, nil
}

func certPEM(ids ...*identity) []byte {
	var out []byte
	for _, id := range ids {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: id.der})...)
	}
	return out
}

func keyPEM(k crypto.Signer) ([]byte, error) {
	var plain any = k
	if s, ok := k.(steady); ok {
		plain = s.PrivateKey
	}
	der, err := x509.MarshalPKCS8PrivateKey(plain)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

func publicPEM(k crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
}
