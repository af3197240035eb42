package redact

import (
	"strings"
	"testing"
)

// TestApplicationStatus: of Argo CD's Applications the two words that say how
// they are stay, and nothing of where they come from.
func TestApplicationStatus(t *testing.T) {
	in := `{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":{"name":"shop","namespace":"argocd"},` +
		`"spec":{"source":{"repoURL":"https://git.example/team/secret-shop"}},` +
		`"status":{"sync":{"status":"OutOfSync","revision":"0123abcd"},"health":{"status":"Degraded","message":"pod of customer 4711"}}}`
	for _, l := range []Level{LevelValues, LevelStructure} {
		b := []byte(in)
		NewValues(l, nil).Scrub([]byte("/registry/argoproj.io/applications/argocd/shop"), b)
		for _, word := range []string{"OutOfSync", "Degraded"} {
			if strings.Contains(string(b), word) != (l == LevelValues) {
				t.Errorf("level %v, %s: %s", l, word, b)
			}
		}
		for _, word := range []string{"secret-shop", "0123abcd", "customer"} {
			if strings.Contains(string(b), word) {
				t.Errorf("level %v kept %s: %s", l, word, b)
			}
		}
	}
}
