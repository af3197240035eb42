package bun

import (
	"testing"

	"coldplane/analyze/analyzetest"
	"coldplane/analyze/etcdstore/storetest"
	"coldplane/analyze/pki/pkitest"
	"coldplane/bundle/decode/walframe/walframetest"
)

func TestRules(t *testing.T) {
	analyzetest.Run(t, &Rules, ".", analyzetest.Generator{Kind: "pki", Make: pkitest.Make}, analyzetest.Generator{Kind: "wal", Make: walframetest.Make}, analyzetest.Generator{Kind: "etcd", Make: storetest.Make})
}
