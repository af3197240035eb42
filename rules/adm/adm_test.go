package adm

import (
	"testing"

	"coldplane/analyze/analyzetest"
	"coldplane/analyze/etcdstore/storetest"
	"coldplane/analyze/pki/pkitest"
)

func TestRules(t *testing.T) {
	analyzetest.Run(t, &Rules, ".", analyzetest.Generator{Kind: "pki", Make: pkitest.Make},
		analyzetest.Generator{Kind: "etcd", Make: storetest.Make})
}
