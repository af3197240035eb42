package scan

import (
	"bytes"
	"fmt"
	"testing"

	"coldplane/analyze/logs/signature"
)

// mixedLog builds n bytes of lines as control-plane programs write them, with a
// known text in one line of eight.
func mixedLog(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		switch i % 8 {
		case 0:
			fmt.Fprintf(&b, `2026-01-02T03:04:%02d.%09dZ stderr F {"level":"warn","ts":"2026-01-02T03:04:%02d.%06dZ","caller":"txn/util.go:93","msg":"apply request took too long","took":"%dms","expected-duration":"100ms","prefix":"read-only range ","request":"key:\"/registry/pods/ns-%d/\" range_end:\"/registry/pods/ns-%d0\" ","response":"range_response_count:%d size:%d","error":""}`+"\n", i%60, i, i%60, i%1000000, 100+i%900, i%50, i%50, i%300, i)
		case 1, 2, 3:
			fmt.Fprintf(&b, "2026-01-02T03:04:%02d.%09dZ stderr F I0102 03:04:%02d.%06d       1 httplog.go:134] \"HTTP\" verb=\"LIST\" URI=\"/apis/apps/v1/namespaces/team-%d/deployments?limit=500\" latency=\"%dms\" userAgent=\"kube-controller-manager/v1.37.2 (linux/amd64)\" audit-ID=\"%x\" resp=200\n", i%60, i, i%60, i%1000000, i%90, i%700, i*7919)
		case 4, 5:
			fmt.Fprintf(&b, "2026-01-02T03:04:%02d.%09dZ stderr F {\"level\":\"info\",\"ts\":\"2026-01-02T03:04:%02d.%06dZ\",\"caller\":\"mvcc/index.go:194\",\"msg\":\"compact tree index\",\"revision\":%d}\n", i%60, i, i%60, i%1000000, i)
		default:
			fmt.Fprintf(&b, "time=\"2026-01-02T03:04:%02d.%09dZ\" level=info msg=\"PullImage \\\"registry.example/app-%d:1.%d\\\" returns image reference \\\"sha256:%064x\\\"\"\n", i%60, i, i%40, i%9, i*104729)
		}
	}
	return b.Bytes()
}

// BenchmarkScan reads with all signatures, one line in eight being a hit.
func BenchmarkScan(b *testing.B) {
	s, err := New(signature.Table())
	if err != nil {
		b.Fatal(err)
	}
	log := mixedLog(32 << 20)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Scan(b.Context(), bytes.NewReader(log), Options{Program: signature.Etcd}); err != nil {
			b.Fatal(err)
		}
	}
}
