package bun

import (
	"testing"

	"coldplane/analyze/analyzetest"
	"coldplane/analyze/etcdstore/storetest"
)

func TestRules(t *testing.T) {
	analyzetest.Run(t, &Rules, ".", analyzetest.Generator{Kind: "etcd", Make: storetest.Make})
}
