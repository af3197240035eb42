package qrm

import (
	"testing"

	"coldplane/analyze/analyzetest"
	"coldplane/bundle/decode/walframe/walframetest"
)

func TestRules(t *testing.T) {
	analyzetest.Run(t, &Rules, ".", analyzetest.Generator{Kind: "wal", Make: walframetest.Make})
}
