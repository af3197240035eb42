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

// failingLog builds n bytes of what a member and an API server write while
// others do not answer: nearly every line holds a known text.
func failingLog(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		at := fmt.Sprintf("2026-01-02T03:%02d:%02d.%06d", i/60%60, i%60, i%1000000)
		switch i % 5 {
		case 0, 1:
			fmt.Fprintf(&b, `%s000Z stderr F {"level":"warn","ts":"%sZ","caller":"rafthttp/probing_status.go:68","msg":"prober detected unhealthy status","round-tripper-name":"ROUND_TRIPPER_SNAPSHOT","remote-peer-id":"%x","rtt":"%d.%dms","error":"dial tcp 10.0.0.1%d:2380: connect: connection refused"}`+"\n", at, at, 0xa1+i%3, i%9, i%97, i%3)
		case 2, 3:
			fmt.Fprintf(&b, "%s000Z stderr F W0102 03:%02d:%02d.%06d       1 logging.go:55] [core] [Channel #%d SubChannel #%d]grpc: addrConn.createTransport failed to connect to {Addr: \"127.0.0.1:2379\", ServerName: \"127.0.0.1:2379\", }. Err: connection error: desc = \"transport: Error while dialing: dial tcp 127.0.0.1:2379: connect: connection refused\"\n", at, i/60%60, i%60, i%1000000, i/50%30, i/50%31)
		default:
			fmt.Fprintf(&b, `%s000Z stderr F {"level":"info","ts":"%sZ","logger":"raft","caller":"v3@v3.6.0/raft.go:988","msg":"%x is starting a new election at term %d"}`+"\n", at, at, 0xa1, i)
		}
	}
	return b.Bytes()
}

// BenchmarkScan reads with all signatures: logs with a hit in one line of
// eight, and logs of a failing cluster with one in nearly every line.
func BenchmarkScan(b *testing.B) {
	b.Run("mixed", func(b *testing.B) { benchScan(b, mixedLog(32<<20), signature.Etcd) })
	b.Run("failing", func(b *testing.B) { benchScan(b, failingLog(32<<20), signature.Etcd|signature.APIServer) })
}

func benchScan(b *testing.B, log []byte, by signature.Emitter) {
	s, err := New(signature.Table())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Scan(b.Context(), bytes.NewReader(log), Options{Program: by}); err != nil {
			b.Fatal(err)
		}
	}
}
