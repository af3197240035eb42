package signature

import (
	"bytes"
	"fmt"
	"testing"
)

// mixedLog builds n bytes of lines as control-plane programs write them, with a
// known text in about one line of eight.
func mixedLog(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		switch i % 8 {
		case 0:
			fmt.Fprintf(&b, `2026-01-02T03:04:%02d.%09dZ stderr F {"level":"warn","ts":"2026-01-02T03:04:%02d.%06dZ","caller":"txn/util.go:93","msg":"apply request took too long","took":"%dms","expected-duration":"100ms","prefix":"read-only range ","request":"key:\"/registry/pods/ns-%d/\" range_end:\"/registry/pods/ns-%d0\" ","response":"range_response_count:%d size:%d","error":""}`+"\n", i%60, i, i%60, i%1000000, 100+i%900, i%50, i%50, i%300, i)
		case 1, 2, 3:
			fmt.Fprintf(&b, "2026-01-02T03:04:%02d.%09dZ stderr F I0102 03:04:%02d.%06d       1 httplog.go:134] \"HTTP\" verb=\"LIST\" URI=\"/apis/apps/v1/namespaces/team-%d/deployments?limit=500\" latency=\"%dms\" userAgent=\"kube-controller-manager/v1.37.2 (linux/amd64)\" audit-ID=\"%x\" resp=200\n", i%60, i, i%60, i%1000000, i%90, i%700, i*7919)
		case 4, 5:
			fmt.Fprintf(&b, "Jan 02 03:04:%02d cp1 kubelet[1234]: I0102 03:04:%02d.%06d    1234 reconciler_common.go:251] \"operationExecutor.VerifyControllerAttachedVolume started for volume \\\"config-%d\\\"\" pod=\"team-%d/web-%x\"\n", i%60, i%60, i%1000000, i%10, i%90, i*31)
		default:
			fmt.Fprintf(&b, "time=\"2026-01-02T03:04:%02d.%09dZ\" level=info msg=\"PullImage \\\"registry.example/app-%d:1.%d\\\" returns image reference \\\"sha256:%064x\\\"\"\n", i%60, i, i%40, i%9, i*104729)
		}
	}
	return b.Bytes()
}

func BenchmarkFind(b *testing.B) {
	m, err := NewMatcher(Table())
	if err != nil {
		b.Fatal(err)
	}
	log := mixedLog(16 << 20)
	b.SetBytes(int64(len(log)))
	var hits []Hit
	for b.Loop() {
		hits = m.Find(log, hits[:0])
	}
	b.ReportMetric(float64(len(hits)), "hits")
}
