package objects

import (
	corev1 "k8s.io/api/core/v1"

	"coldplane/bundle/decode/spki"
)

// A TLSSecret is the public half of a Secret of type kubernetes.io/tls
// (https://kubernetes.io/docs/concepts/configuration/secret/#tls-secrets). The
// private key is read to its fingerprint and forgotten.
type TLSSecret struct {
	Namespace, Name string
	Certificate     spki.File        // tls.crt
	CA              spki.File        // ca.crt; no blocks where the Secret has none
	Key             spki.Fingerprint // of tls.key; zero where it cannot be read
}

// TLSSecrets are the certificates of the Secrets of type kubernetes.io/tls, and
// of those of another type that hold a tls.crt, as many webhooks' do.
func (s *Set) TLSSecrets() List[TLSSecret] {
	return once(s, "tls secrets", func() List[TLSSecret] {
		return Each(s, "secrets", "", tlsSecret, func(t *TLSSecret) bool { return len(t.Certificate.Blocks) > 0 })
	})
}

func tlsSecret(v []byte) (*TLSSecret, error) {
	o, err := typed[corev1.Secret](v)
	if err != nil {
		return nil, err
	}
	t := &TLSSecret{Namespace: o.Namespace, Name: o.Name}
	if crt := o.Data[corev1.TLSCertKey]; len(crt) > 0 {
		t.Certificate, t.CA = spki.Parse(crt), spki.Parse(o.Data["ca.crt"])
		for _, b := range spki.Parse(o.Data[corev1.TLSPrivateKeyKey]).Blocks {
			if b.Kind == spki.PrivateKey {
				t.Key = b.SPKI
			}
		}
	}
	for _, data := range o.Data {
		clear(data)
	}
	return t, nil
}
