package spki

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

var oidRSA = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}

// errEncrypted says that a private key is protected by a passphrase.
var errEncrypted = errors.New("encrypted private key")

// publicHalf returns the public key of a private key's PEM block. Of an RSA
// key only modulus and exponent are read: validating the primes is neither
// needed nor bounded.
func publicHalf(b *pem.Block) (crypto.PublicKey, error) {
	if b.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(b.Headers["Proc-Type"], "ENCRYPTED") {
		return nil, errEncrypted
	}
	switch b.Type {
	case "RSA PRIVATE KEY":
		return rsaHalf(b.Bytes)
	case "EC PRIVATE KEY":
		k, err := x509.ParseECPrivateKey(b.Bytes)
		if err != nil {
			return nil, err
		}
		return &k.PublicKey, nil
	case "PRIVATE KEY":
		return pkcs8Half(b.Bytes)
	}
	return nil, fmt.Errorf("unsupported key type %q", b.Type)
}

func rsaHalf(der []byte) (crypto.PublicKey, error) {
	var k struct { // PKCS #1; the fields after the exponent are not read
		Version int
		N, E    *big.Int
	}
	if _, err := asn1.Unmarshal(der, &k); err != nil {
		return nil, err
	}
	if k.N.Sign() <= 0 || k.E.Sign() <= 0 || !k.E.IsInt64() || k.E.Int64() > 1<<31-1 {
		return nil, errors.New("RSA modulus or exponent out of range")
	}
	return &rsa.PublicKey{N: k.N, E: int(k.E.Int64())}, nil
}

func pkcs8Half(der []byte) (crypto.PublicKey, error) {
	var k struct {
		Version   int
		Algorithm struct {
			OID    asn1.ObjectIdentifier
			Params asn1.RawValue `asn1:"optional"`
		}
		Key []byte
	}
	if _, err := asn1.Unmarshal(der, &k); err != nil {
		return nil, err
	}
	if k.Algorithm.OID.Equal(oidRSA) {
		return rsaHalf(k.Key)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	p, ok := key.(interface{ Public() crypto.PublicKey })
	if !ok {
		return nil, errors.New("key has no public half")
	}
	return p.Public(), nil
}
