package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"coldplane/analyze/etcdstore/storetest"
	"coldplane/bundle/decode/walframe/walframetest"
	"coldplane/report"
)

// clean turns the three-node tree into a whole cluster of 1.36.3 with etcd
// 3.6.14: a database, a log, machines and an answer of every member.
func clean(t *testing.T, f map[string][]byte) {
	t.Helper()
	var members, objects strings.Builder
	for i := 1; i <= 3; i++ {
		fmt.Fprintf(&members, "member %d name=cp%d peer=https://10.0.0.1%d:2380 client=https://10.0.0.1%d:2379\n", i, i, i, i)
		fmt.Fprintf(&objects, `object
apiVersion: v1
kind: Node
metadata: {name: cp%d, labels: {node-role.kubernetes.io/control-plane: ""}}
status:
  conditions: [{type: Ready, status: "True", reason: KubeletReady}]
  nodeInfo: {kubeletVersion: v1.36.3, containerRuntimeVersion: "containerd://2.1.4"}
end
`, i)
	}
	for p, b := range f {
		s := strings.ReplaceAll(string(b), "v1.37.2", "v1.36.3")
		f[p] = []byte(strings.ReplaceAll(s, "etcd:3.7.3-0", "etcd:3.6.14-0"))
	}
	for i := 1; i <= 3; i++ {
		n := fmt.Sprintf("nodes/cp%d/", i)
		f[n+"host/node.json"] = []byte(fmt.Sprintf(`{"hostname": "cp%d", "kernel": "6.8.0", "cgroupV2": true, "swaps": []}`, i))
		f[n+"host/mounts.json"] = []byte(`[{"device": "/dev/sda1", "mountPoint": "/", "fsType": "ext4", "size": 107374182400, "available": 85899345920, "free": 85899345920, "inodesFree": 0}]`)
		f[n+"var/lib/etcd!wal"] = []byte(fmt.Sprintf("node %d cluster c\n%ssnap 2 90 version=3.6.0 members=1,2,3\nmark 90 2\nstate\n", i, members.String()))
		f[n+"var/lib/etcd/member/snap/db!etcd"] = []byte("version 3.6\n" + members.String() +
			"meta consistent_index=90 term=2 voters=1,2,3 storageVersion=3.6.0 clusterVersion=3.6.0\n" + objects.String())
	}
	f["etcdctl/health.json"] = []byte(`[{"endpoint":"https://10.0.0.11:2379","health":true},{"endpoint":"https://10.0.0.12:2379","health":true},{"endpoint":"https://10.0.0.13:2379","health":true}]`)
	if err := walframetest.Make(f); err != nil {
		t.Fatal(err)
	}
	if err := storetest.Make(f); err != nil {
		t.Fatal(err)
	}
}

// TestReady: a clean cluster of three on a supported path is ready, with
// nothing of medium or above and every upgrade question answered.
func TestReady(t *testing.T) {
	r := audit(t, "ha", "v1.37.2", func(f map[string][]byte) { clean(t, f) })
	for _, f := range r.Findings {
		if f.Severity.AtLeast(report.Medium) {
			t.Errorf("%s %s %s: %s", f.Rule, f.Severity, f.Subject, f.Message)
		}
	}
	for _, x := range r.Results {
		if x.Outcome == report.Unknown || x.Outcome == report.Errored {
			t.Errorf("%s %s: %s %v", x.Rule, x.Subject, x.Outcome, x.Gaps)
		}
	}
	if r.Plan == nil || r.Plan.State != report.PlanReady || len(r.Plan.Stages) != 1 {
		t.Fatalf("plan %+v", r.Plan)
	}
}

// TestKnownPath: kubeadm 1.36 brings etcd 3.6.8, and from there 1.37 goes to
// 3.7, which wants 3.6.11 first.
func TestKnownPath(t *testing.T) {
	r := audit(t, "ha", "v1.37.2", func(f map[string][]byte) {
		clean(t, f)
		for p, b := range f {
			f[p] = []byte(strings.ReplaceAll(string(b), "etcd:3.6.14-0", "etcd:3.6.8-0"))
		}
	})
	n := 0
	for _, f := range r.Findings {
		if f.Rule == "UPG401" && f.Severity == report.High && strings.Contains(f.Message, "etcd 3.6.8 is below 3.6.11") {
			n++
		} else if f.Severity.AtLeast(report.Medium) {
			t.Errorf("%s %s: %s", f.Rule, f.Severity, f.Message)
		}
	}
	if n != 3 || r.Plan.State == report.PlanReady {
		t.Errorf("%d members named, plan %s", n, r.Plan.State)
	}
}
