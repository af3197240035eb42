package pki

import (
	"testing"

	"coldplane/analyze/analyzetest"
	"coldplane/analyze/pki/pkitest"
)

func TestRules(t *testing.T) {
	analyzetest.Run(t, &Rules, ".", analyzetest.Generator{Kind: "pki", Make: pkitest.Make})
}
