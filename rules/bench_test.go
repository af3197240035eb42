package rules

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"coldplane/analyze"
	"coldplane/analyze/analyzetest"
	"coldplane/analyze/etcdstore/storetest"
	"coldplane/analyze/pki/pkitest"
	"coldplane/bundle"
	"coldplane/bundle/decode/walframe/walframetest"
)

// BenchmarkThreeNodes is a whole analysis: three nodes with their files, a store
// of some thousand objects each, and 32 MiB of logs each in which one line of
// twenty holds a known text.
func BenchmarkThreeNodes(b *testing.B) {
	files, err := analyzetest.Base("ha")
	if err != nil {
		b.Fatal(err)
	}
	var members, objects strings.Builder
	for i := 1; i <= 3; i++ {
		fmt.Fprintf(&members, "member a%d name=cp%d peer=https://10.0.0.1%d:2380 client=https://10.0.0.1%[3]d:2379\n", i, i, i)
	}
	for i := range 3000 {
		fmt.Fprintf(&objects, "object\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: team-%d, name: settings-%d}\ndata: {a: %q}\nend\n", i%40, i, strings.Repeat("x", 1000))
	}
	for i := 1; i <= 3; i++ {
		root := fmt.Sprintf("nodes/cp%d/", i)
		files[root+"var/lib/etcd/member/snap/db!etcd"] = []byte(members.String() + "meta consistent_index=20 term=4 storageVersion=3.6.0 clusterVersion=3.6.0\n" + objects.String())
		files[root+"var/lib/etcd!wal"] = fmt.Appendf(nil, "node a%d cluster c1\n%sleader 4\nput /registry/x times=20\nstate\n", i, members.String())
		files[root+fmt.Sprintf("var/log/pods/kube-system_etcd-cp%d_0a1b/etcd/0.log", i)] = benchLog(32 << 20)
	}
	for _, make := range []func(map[string][]byte) error{pkitest.Make, storetest.Make, walframetest.Make} {
		if err := make(files); err != nil {
			b.Fatal(err)
		}
	}
	dir, total := b.TempDir(), int64(0)
	for p, data := range files {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(full, data, 0o600); err != nil {
			b.Fatal(err)
		}
		total += int64(len(data))
	}
	b.SetBytes(total)
	for b.Loop() {
		set, err := bundle.Open(b.Context(), []string{dir}, bundle.Options{SpoolDir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		r, err := Evaluate(b.Context(), set, Options{Options: analyze.Options{AsOf: analyzetest.DefaultAsOf}})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(r.Findings)), "findings")
		set.Close()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapSys>>20), "heapMiB")
}

// benchLog builds n bytes of an etcd container's log.
func benchLog(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		at := fmt.Sprintf("2026-05-31T%02d:%02d:%02d.%06d", i/3600%24, i/60%60, i%60, i%1000000)
		if i%20 == 0 {
			fmt.Fprintf(&b, `%s000Z stderr F {"level":"warn","ts":"%[1]sZ","caller":"txn/util.go:93","msg":"apply request took too long","took":"%dms","expected-duration":"100ms","prefix":"read-only range ","request":"key:\"/registry/pods/ns-%d/\" ","response":"range_response_count:%d size:%d"}`+"\n", at, 100+i%900, i%50, i%300, i)
			continue
		}
		fmt.Fprintf(&b, `%s000Z stderr F {"level":"info","ts":"%[1]sZ","caller":"mvcc/index.go:194","msg":"compact tree index","revision":%d}`+"\n", at, i)
	}
	return b.Bytes()
}
