package objects

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
)

// A Token is a bootstrap token's Secret without the token.
type Token struct {
	Name    string
	Expires time.Time // zero: never, or not readable
}

// BootstrapTokens are the bootstrap tokens of kube-system. Of their data only
// the expiration is read.
func (s *Set) BootstrapTokens() List[Token] {
	return once(s, "bootstrap-tokens", func() List[Token] {
		return Each(s, "secrets", "kube-system", func(v []byte) (*Token, error) {
			b, ok := raw(v)
			if !ok {
				return nil, errFormat
			}
			h, err := protoHead(b)
			if err != nil || h.SecretType != string(corev1.SecretTypeBootstrapToken) {
				return nil, err
			}
			t := &Token{Name: h.Name}
			eachField(b, func(num protowire.Number, entry []byte, _ uint64) {
				if num != 2 { // Secret.data
					return
				}
				if k, _ := field(entry, 1); string(k) != "expiration" {
					return
				}
				v, _ := field(entry, 2)
				if at, err := time.Parse(time.RFC3339, string(v)); err == nil {
					t.Expires = at.UTC()
				}
			})
			return t, nil
		}, func(t *Token) bool { return t != nil })
	})
}
