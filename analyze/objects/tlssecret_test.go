package objects

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"coldplane/bundle/decode/spki"
)

// pair makes a self-signed certificate and its key, both PEM in base64.
func pair(t *testing.T) (crt, key string, fp spki.Fingerprint) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "hook.policy.svc"},
		NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	kd, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	if fp, err = spki.Of(k.Public()); err != nil {
		t.Fatal(err)
	}
	b64 := func(label string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
	}
	return b64("CERTIFICATE", der), b64("PRIVATE KEY", kd), fp
}

func TestTLSSecrets(t *testing.T) {
	crt, key, fp := pair(t)
	_, other, _ := pair(t)
	secret := func(name, typ, crt, key string) string {
		return fmt.Sprintf(`
object
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: policy}
type: %s
data: {tls.crt: %s, tls.key: %s, ca.crt: %s}
end
`, name, typ, crt, key, crt)
	}
	l := set(t, secret("hook", "kubernetes.io/tls", crt, key)+secret("opaque", "Opaque", crt, other)+secret("bare", "Opaque", `""`, `""`)).TLSSecrets()
	if len(l.Items) != 2 || l.Total != 3 {
		t.Fatalf("%d of %d Secrets: %+v", len(l.Items), l.Total, l)
	}
	a, b := l.Items[0].Value, l.Items[1].Value
	if a.Namespace != "policy" || a.Name != "hook" || a.Key != fp || len(a.CA.Blocks) != 1 || a.Certificate.Blocks[0].Cert.Subject.CommonName != "hook.policy.svc" {
		t.Errorf("%+v", a)
	}
	if b.Name != "opaque" || b.Key == fp || b.Certificate.Blocks[0].SPKI != fp {
		t.Errorf("a key that is not the certificate's: %+v", b)
	}
}
