package spki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

func pemOf(t testing.TB, label string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
}

func selfSigned(t testing.TB, k crypto.Signer) []byte {
	t.Helper()
	tpl := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "x"},
		NotBefore: time.Unix(1_700_000_000, 0), NotAfter: time.Unix(1_800_000_000, 0)}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestKeyAndCertificateMeet(t *testing.T) {
	rk, _ := rsa.GenerateKey(rand.Reader, 2048)
	ek, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, dk, _ := ed25519.GenerateKey(rand.Reader)
	for name, k := range map[string]crypto.Signer{"RSA-2048": rk, "ECDSA-P256": ek, "Ed25519": dk} {
		cert := pemOf(t, "CERTIFICATE", selfSigned(t, k), nil)
		der, err := x509.MarshalPKCS8PrivateKey(k)
		forms := []string{pemOf(t, "PRIVATE KEY", der, err)}
		pub, err := x509.MarshalPKIXPublicKey(k.Public())
		forms = append(forms, pemOf(t, "PUBLIC KEY", pub, err))
		switch k := k.(type) {
		case *rsa.PrivateKey:
			forms = append(forms, pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k), nil),
				pemOf(t, "RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&k.PublicKey), nil))
		case *ecdsa.PrivateKey:
			der, err := x509.MarshalECPrivateKey(k)
			forms = append(forms, pemOf(t, "EC PRIVATE KEY", der, err))
		}
		for _, form := range forms {
			f := Parse([]byte("text before\n" + form + "\n" + cert))
			if len(f.Blocks) != 2 || f.Truncated {
				t.Fatalf("%s: %d blocks", name, len(f.Blocks))
			}
			a, b := f.Blocks[0], f.Blocks[1]
			if a.Err != nil || b.Err != nil || a.SPKI != b.SPKI || a.SPKI.IsZero() || a.Algorithm != name || b.Algorithm != name {
				t.Errorf("%s %s: %v %v, %s and %s", name, a.Label, a.Err, b.Err, a.Algorithm, b.Algorithm)
			}
			if a.Line != 2 || b.Line != 2+strings.Count(form, "\n")+1 {
				t.Errorf("%s: lines %d and %d", name, a.Line, b.Line)
			}
			if back, ok := ParseFingerprint(a.SPKI.String()); !ok || back != a.SPKI {
				t.Errorf("%s does not read back", a.SPKI)
			}
		}
	}
}

func TestDamagedBlocksAreReported(t *testing.T) {
	_, dk, _ := ed25519.GenerateKey(rand.Reader)
	good := pemOf(t, "CERTIFICATE", selfSigned(t, dk), nil)
	lines := strings.SplitAfter(good, "\n")
	for name, c := range map[string]struct {
		data string
		want []bool // per block: readable
	}{
		"base64":       {lines[0] + "!!!!\n" + strings.Join(lines[1:], ""), []bool{false}},
		"no end":       {strings.Join(lines[:3], ""), []bool{false}},
		"begin inside": {strings.Join(lines[:3], "") + good, []bool{false, true}},
		"cut DER":      {pemOf(t, "CERTIFICATE", selfSigned(t, dk)[:60], nil), []bool{false}},
		"good, bad":    {good + "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", []bool{true, false}},
		"other end":    {strings.Replace(good, "END CERTIFICATE", "END X", 1), []bool{false}},
		"CRLF":         {strings.ReplaceAll(good, "\n", "\r\n"), []bool{true}},
	} {
		f := Parse([]byte(c.data))
		var got []bool
		for _, b := range f.Blocks {
			got = append(got, b.Cert != nil)
			if (b.Cert != nil) == (b.Err != nil) {
				t.Errorf("%s: certificate %v, error %v", name, b.Cert != nil, b.Err)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
}

// A certificate with a negative serial number is refused by crypto/x509 and
// accepted by others: its dates and key must still be shown.
func TestPartial(t *testing.T) {
	_, dk, _ := ed25519.GenerateKey(rand.Reader)
	der := selfSigned(t, dk)
	i := strings.Index(string(der), "\x02\x01\x07") // INTEGER 7
	der[i+2] = 0xf9
	f := Parse([]byte(pemOf(t, "CERTIFICATE", der, nil)))
	b := f.Blocks[0]
	want, _ := Of(dk.Public())
	if b.Cert != nil || b.Err == nil || b.Partial == nil || b.SPKI != want || b.Partial.NotAfter.Unix() != 1_800_000_000 || b.Partial.Serial.Sign() >= 0 {
		t.Errorf("%+v", b)
	}
}

func TestPrivateKeysAreForgotten(t *testing.T) {
	rk, _ := rsa.GenerateKey(rand.Reader, 1024)
	p := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rk)}
	var b Block
	b.privateKey(p)
	if b.SPKI.IsZero() {
		t.Fatal(b.Err)
	}
	for _, x := range p.Bytes {
		if x != 0 {
			t.Fatal("the decoded key was left in memory")
		}
	}
	for _, label := range []string{"ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY"} {
		data := pem.EncodeToMemory(&pem.Block{Type: label, Bytes: []byte("secret-text"), Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}})
		if f := Parse(data); !f.Blocks[0].Encrypted || f.Blocks[0].Err != nil {
			t.Errorf("%s: %+v", label, f.Blocks[0])
		}
	}
	bad, _ := asn1.Marshal("hunter2")
	if f := Parse(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bad})); f.Blocks[0].Err == nil || strings.Contains(f.Blocks[0].Err.Error(), "hunter2") {
		t.Errorf("%v", f.Blocks[0].Err)
	}
}

func TestMarker(t *testing.T) {
	for s, want := range map[string]bool{
		"REDACTED\n": true, "# private key removed by the operator\n": true, "": false, "hello\n": false,
		"-----BEGIN PRIVATE KEY-----\nREDACTED\n": false, strings.Repeat("removed ", 100): false,
	} {
		f := Parse([]byte(s))
		if (f.Marker != "") != want {
			t.Errorf("%.30q: marker %q", s, f.Marker)
		}
	}
	if !Parse([]byte(" \n")).Empty {
		t.Error("white space is not empty")
	}
}

func TestLimits(t *testing.T) {
	f := Parse([]byte(strings.Repeat("-----BEGIN CERTIFICATE-----\n", 40_000)))
	if len(f.Blocks) != MaxBlocks || !f.Truncated {
		t.Errorf("%d blocks, truncated %v", len(f.Blocks), f.Truncated)
	}
}

// FuzzParse: no panic on any input, at most MaxBlocks blocks, every block
// either readable or with a reason, every fingerprint of a certificate that
// of its key, and lines that ascend within the file.
func FuzzParse(f *testing.F) {
	_, dk, _ := ed25519.GenerateKey(rand.Reader)
	f.Add([]byte(pemOf(f, "CERTIFICATE", selfSigned(f, dk), nil)))
	der, err := x509.MarshalPKCS8PrivateKey(dk)
	f.Add([]byte(pemOf(f, "PRIVATE KEY", der, err)))
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"))
	f.Add([]byte("REMOVED\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := Parse(data)
		if len(x.Blocks) > MaxBlocks {
			t.Fatalf("%d blocks", len(x.Blocks))
		}
		last := 0
		for _, b := range x.Blocks {
			if b.Line <= last || b.Line > strings.Count(string(data), "\n")+1 {
				t.Fatalf("line %d after %d", b.Line, last)
			}
			last = b.Line
			if b.Kind != Other && b.Err == nil && !b.Encrypted && b.SPKI.IsZero() {
				t.Fatalf("%s without fingerprint and reason", b.Label)
			}
			if b.Cert != nil && b.SPKI != OfCertificate(b.Cert) {
				t.Fatal("fingerprint of another key")
			}
		}
	})
}
