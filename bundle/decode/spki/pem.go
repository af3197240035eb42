package spki

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"time"
)

// Limits of one PEM file.
const (
	MaxBytes  = 1 << 20 // bytes read of a file; what follows is not looked at
	MaxBlocks = 256     // blocks kept of a file
)

// A Kind is what a PEM block holds.
type Kind int

// Kinds of a block.
const (
	Other Kind = iota
	Certificate
	PublicKey
	PrivateKey
)

// A Block is one PEM block. Of a private key it holds the public fingerprint
// only.
type Block struct {
	Kind      Kind
	Label     string // the PEM type, "CERTIFICATE"
	Line      int    // 1-based line of BEGIN
	SPKI      Fingerprint
	Algorithm string // "RSA-2048"; "" when not known
	Encrypted bool   // a private key under a passphrase

	// Cert is set for a certificate Go can parse. When it cannot, Err says
	// why, and Partial holds what could be read all the same.
	Cert    *x509.Certificate
	Partial *Partial
	Err     error
}

// Partial is what can be read of a certificate that crypto/x509 refuses, for
// instance because of a negative serial number.
type Partial struct {
	Serial              *big.Int
	NotBefore, NotAfter time.Time
}

// A File is the content of one PEM file.
type File struct {
	Blocks    []Block
	Truncated bool   // a limit was reached
	Marker    string // the text that stands in place of a removed key; "" otherwise
	Empty     bool   // nothing but white space
}

var (
	beginMark = []byte("-----BEGIN ")
	endMark   = []byte("-----END ")
	dashes    = []byte("-----")
)

// Parse reads a PEM file. It never fails: a block that is not what its label
// says is returned with Err. Private key bytes decoded on the way are wiped.
func Parse(data []byte) File {
	var f File
	if len(data) > MaxBytes {
		data, f.Truncated = data[:MaxBytes], true
	}
	if marker, ok := Marker(data); ok {
		f.Marker = marker
		return f
	}
	f.Empty = len(bytes.TrimSpace(data)) == 0
	line, open := 0, -1 // open: offset of a BEGIN without END
	openLine := 0
	flush := func(end int, closed bool) {
		if open < 0 {
			return
		}
		f.Blocks = append(f.Blocks, block(data[open:end], closed))
		f.Blocks[len(f.Blocks)-1].Line = openLine
		open = -1
	}
	for off := 0; off < len(data); {
		line++
		next := len(data)
		if i := bytes.IndexByte(data[off:], '\n'); i >= 0 {
			next = off + i + 1
		}
		text := bytes.TrimSpace(data[off:next])
		switch {
		case bytes.HasPrefix(text, beginMark):
			flush(off, false)
			if len(f.Blocks) == MaxBlocks {
				f.Truncated = true
				return f
			}
			open, openLine = off, line
		case bytes.HasPrefix(text, endMark):
			flush(next, true)
		}
		off = next
	}
	flush(len(data), false)
	return f
}

func label(raw []byte) string {
	s := bytes.TrimSpace(raw)
	if i := bytes.IndexByte(s, '\n'); i >= 0 {
		s = bytes.TrimSpace(s[:i])
	}
	s = bytes.TrimSuffix(bytes.TrimPrefix(s, beginMark), dashes)
	return string(s[:min(len(s), 64)])
}

// block decodes one BEGIN..END region.
func block(raw []byte, closed bool) Block {
	b := Block{Label: label(raw)}
	switch {
	case b.Label == "CERTIFICATE" || b.Label == "TRUSTED CERTIFICATE" || b.Label == "X509 CERTIFICATE":
		b.Kind = Certificate
	case b.Label == "PUBLIC KEY" || b.Label == "RSA PUBLIC KEY":
		b.Kind = PublicKey
	case strings.HasSuffix(b.Label, "PRIVATE KEY"):
		b.Kind = PrivateKey
	}
	if !closed {
		b.Err = errors.New("PEM block has no END line")
		return b
	}
	p, _ := pem.Decode(raw)
	if p == nil {
		b.Err = errors.New("not valid PEM: base64 or headers are damaged")
		return b
	}
	switch b.Kind {
	case Certificate:
		b.certificate(p.Bytes)
	case PublicKey:
		b.publicKey(p)
	case PrivateKey:
		b.privateKey(p)
	}
	return b
}

func (b *Block) certificate(der []byte) {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		b.Err = err
		b.Partial, b.SPKI = partial(der)
		return
	}
	b.Cert, b.SPKI, b.Algorithm = c, OfCertificate(c), Algorithm(c.PublicKey)
	if b.Algorithm == "" {
		b.Algorithm = c.PublicKeyAlgorithm.String()
	}
}

func (b *Block) publicKey(p *pem.Block) {
	var pub any
	var err error
	if p.Type == "RSA PUBLIC KEY" {
		pub, err = x509.ParsePKCS1PublicKey(p.Bytes)
	} else {
		pub, err = x509.ParsePKIXPublicKey(p.Bytes)
	}
	if err == nil {
		b.SPKI, err = Of(pub)
		b.Algorithm = Algorithm(pub)
	}
	b.Err = err
}

func (b *Block) privateKey(p *pem.Block) {
	pub, err := publicHalf(p)
	clear(p.Bytes)
	switch {
	case errors.Is(err, errEncrypted):
		b.Encrypted = true
		return
	case err == nil:
		b.Algorithm = Algorithm(pub)
		b.SPKI, err = Of(pub)
	}
	if err != nil {
		// The text of a parser may quote what it read: say less.
		b.Err = errors.New("not a readable private key")
	}
}

// partial reads serial, dates and key of a certificate without judging it.
func partial(der []byte) (*Partial, Fingerprint) {
	var c struct {
		TBS struct {
			Version  asn1.RawValue `asn1:"optional,explicit,tag:0"`
			Serial   *big.Int
			SigAlg   asn1.RawValue
			Issuer   asn1.RawValue
			Validity struct{ NotBefore, NotAfter time.Time }
			Subject  asn1.RawValue
			Key      asn1.RawValue
		}
	}
	if _, err := asn1.Unmarshal(der, &c); err != nil {
		return nil, Fingerprint{}
	}
	t := c.TBS
	return &Partial{Serial: t.Serial, NotBefore: t.Validity.NotBefore.UTC(), NotAfter: t.Validity.NotAfter.UTC()},
		sha256.Sum256(t.Key.FullBytes)
}

// maxMarker bounds how long a text in place of a key may be.
const maxMarker = 512

// Marker reports whether data is a short text that stands in place of a
// secret that was taken out before the evidence was handed over, and returns
// it.
func Marker(data []byte) (string, bool) {
	s := strings.TrimSpace(string(data[:min(len(data), maxMarker+1)]))
	if len(s) == 0 || len(s) > maxMarker || strings.Count(s, "\n") > 2 || strings.Contains(s, "-----BEGIN") {
		return "", false
	}
	low := strings.ToLower(s)
	for _, w := range []string{"redact", "removed", "scrubbed", "omitted", "stripped", "<hidden>"} {
		if strings.Contains(low, w) {
			return s, true
		}
	}
	return "", false
}
