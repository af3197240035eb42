package quorum

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"coldplane/analyze"
	"coldplane/bundle"
	"coldplane/bundle/decode/walframe/walframetest"
)

func view(t *testing.T, files map[string]string) *View {
	t.Helper()
	raw := map[string][]byte{}
	for name, s := range files {
		raw[name] = []byte(s)
	}
	if err := walframetest.Make(raw); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "in")
	for name, b := range raw {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := bundle.Open(t.Context(), []string{dir}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	v, err := Joined.Get(analyze.New(context.Background(), set, analyze.Options{}).Ctx(nil))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// facts writes a view down.
func facts(v *View) []string {
	var out []string
	for _, c := range v.Clusters {
		s := c.Sum()
		worst, best := s.Tolerance()
		out = append(out, fmt.Sprintf("cluster %x: %d voters, quorum %d, %d alive, %d silent, may lose %d..%d", c.ID, s.Voters, s.Quorum, s.Alive, s.Silent, worst, best))
		for _, m := range c.Members {
			out = append(out, fmt.Sprintf("  %x %s learner=%v ghost=%v %v", m.ID, m.Name, m.Learner, m.Ghost, m.Life))
		}
	}
	return out
}

const list3 = "a, started, cp1, https://192.0.2.11:2380, https://192.0.2.11:2379, false\nb, started, cp2, https://192.0.2.12:2380, https://192.0.2.12:2379, false\n" +
	"c, started, cp3, https://192.0.2.13:2380, https://192.0.2.13:2379, false\n"

func TestView(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"one-down", map[string]string{
			"etcdctl/member-list.txt": list3,
			"etcdctl/health.txt":      "https://192.0.2.11:2379 is healthy: successfully committed proposal: took = 2ms\nhttps://192.0.2.12:2379 is healthy: took = 2ms\nhttps://192.0.2.13:2379 is unhealthy: failed to commit proposal: context deadline exceeded\n",
		}, []string{"cluster 0: 3 voters, quorum 2, 2 alive, 1 silent, may lose 0..0", "  a cp1 learner=false ghost=false alive", "  b cp2 learner=false ghost=false alive", "  c cp3 learner=false ghost=false not answering"}},
		{"nobody-answers-the-observer", map[string]string{
			"etcdctl/member-list.txt": list3,
			"etcdctl/health.json":     `[{"endpoint":"https://192.0.2.11:2379","health":false,"error":"context deadline exceeded"},{"endpoint":"https://192.0.2.12:2379","health":false,"error":"context deadline exceeded"}]`,
		}, []string{"cluster 0: 3 voters, quorum 2, 0 alive, 0 silent, may lose -2..1", "  a cp1 learner=false ghost=false unknown", "  b cp2 learner=false ghost=false unknown", "  c cp3 learner=false ghost=false unknown"}},
		{"expired-certificate-is-no-death", map[string]string{
			"etcdctl/member-list.txt": list3,
			"etcdctl/health.json":     `[{"endpoint":"https://192.0.2.11:2379","health":true},{"endpoint":"https://192.0.2.12:2379","health":false,"error":"x509: certificate has expired"}]`,
		}, []string{"cluster 0: 3 voters, quorum 2, 1 alive, 0 silent, may lose -1..1", "  a cp1 learner=false ghost=false alive", "  b cp2 learner=false ghost=false unknown", "  c cp3 learner=false ghost=false unknown"}},
		{"twins-by-who-answered", map[string]string{
			"etcdctl/member-list.txt": list3 + "d, started, cp3, https://192.0.2.13:2380, https://192.0.2.13:2379, false\n",
			"etcdctl/status.txt":      "x:2379, a, 3.5.0, 1 MB, true, 3, 9\ny:2379, b, 3.5.0, 1 MB, false, 3, 9\nz:2379, d, 3.5.0, 1 MB, false, 3, 9\n",
		}, []string{"cluster 0: 3 voters, quorum 2, 3 alive, 0 silent, may lose 1..1", "  a cp1 learner=false ghost=false alive", "  b cp2 learner=false ghost=false alive", "  c cp3 learner=false ghost=true unknown", "  d cp3 learner=false ghost=false alive"}},
		{"v2-store-overrules-a-learner-flag-up-to-3.5", map[string]string{
			"etcdctl/member-list.txt": "a, started, cp1, https://192.0.2.11:2380, https://192.0.2.11:2379, true\n",
			"etcdctl/status.txt":      "x:2379, a, 3.5.9, 1 MB, true, false, 3, 9, 9\n",
			"var/lib/etcd!wal":        "node a cluster c\nmember a name=cp1 peer=https://192.0.2.11:2380 client=https://192.0.2.11:2379\nsnap 2 9 version=3.5.0 members=a\nmark 9 2\nstate\n",
		}, []string{"cluster c: 1 voters, quorum 1, 1 alive, 0 silent, may lose 0..0", "  a cp1 learner=false ghost=false alive"}},
		{"status-alone", map[string]string{
			"etcdctl/status.json": `[{"Endpoint":"x","Status":{"header":{"cluster_id":9,"member_id":1,"revision":5},"version":"3.5.1","leader":1}},{"Endpoint":"y","Status":{"header":{"cluster_id":9,"member_id":2,"revision":5},"version":"3.5.1","leader":1}}]`,
		}, []string{"cluster 9: 2 voters, quorum 2, 2 alive, 0 silent, may lose 0..0", "  1  learner=false ghost=false alive", "  2  learner=false ghost=false alive"}},
		{"two-clusters", map[string]string{
			"nodes/cp1/var/lib/etcd!wal": "node a cluster c1\nmember a name=cp1 peer=https://192.0.2.11:2380\nconf add a\nstate\n",
			"nodes/cp2/var/lib/etcd!wal": "node b cluster c2\nmember b name=cp2 peer=https://192.0.2.12:2380\nconf add b\nstate\n",
		}, []string{"cluster c1: 1 voters, quorum 1, 0 alive, 0 silent, may lose -1..0", "  a cp1 learner=false ghost=false unknown", "cluster c2: 1 voters, quorum 1, 0 alive, 0 silent, may lose -1..0", "  b cp2 learner=false ghost=false unknown"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, facts(view(t, tt.files))); d != "" {
				t.Errorf("view (-want +got):\n%s", d)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		s    string
		want bool
	}{{"3.5.21-0", true}, {"v3.5.23", false}, {"3.6.0", false}, {"3.4.99", true}, {"latest", false}} {
		if got := Before(tt.s, 3, 5, 23); got != tt.want {
			t.Errorf("Before(%s, 3.5.23) = %v", tt.s, got)
		}
	}
}
