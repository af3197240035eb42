package etcdctl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"coldplane/bundle"
)

func parseText(text string) *Saved {
	out := &Saved{}
	batch := 0
	p := parser{out: out, ref: bundle.Ref{Input: "b1", Path: "etcdctl/x"}, batch: &batch}
	p.parse([]byte(text))
	return out
}

// facts writes down what matters of a Saved, one line each.
func facts(s *Saved) []string {
	var out []string
	add := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	for _, l := range s.Members {
		add("list:%d cluster %x by %x at %q", l.Ref.Line, l.ClusterID, l.MemberID, l.Endpoint)
		for _, m := range l.Members {
			add("member:%d %x %q started=%v learner=%v %v %v", m.Ref.Line, m.ID, m.Name, m.Started, m.Learner, m.PeerURLs, m.ClientURLs)
		}
	}
	for _, x := range s.Status {
		add("status:%d #%d %s %x v%s size %d leader=%v learner=%v rev %d term %d index %d applied %d", x.Ref.Line, x.Batch, x.Endpoint, x.ID, x.Version, x.Size,
			x.IsLeader, x.Learner, x.Revision, x.Term, x.Index, x.Applied)
	}
	for _, h := range s.Health {
		add("health:%d %s %v %q", h.Ref.Line, h.Endpoint, h.Healthy, h.Error)
	}
	for _, h := range s.Hashes {
		add("hash:%d %s %x %d at %d compact %d", h.Ref.Line, h.Endpoint, h.ID, h.Hash, h.HashRevision, h.CompactRevision)
	}
	for _, a := range s.Alarms {
		add("alarm:%d %x %s", a.Ref.Line, a.ID, a.Type)
	}
	for _, f := range s.Failures {
		add("failure:%d %s %s", f.Ref.Line, f.Endpoint, f.Error)
	}
	return out
}

func TestParse(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"member-table", `$ etcdctl --endpoints=https://192.0.2.11:2379 member list -w table
+------------------+-----------+------+-------------------------+-------------------------+------------+
|        ID        |   STATUS  | NAME |       PEER ADDRS        |      CLIENT ADDRS       | IS LEARNER |
+------------------+-----------+------+-------------------------+-------------------------+------------+
| 2bf36f4303b2e4bb | unstarted |      | https://192.0.2.14:2380 |                         |       true |
| 751f383534fac39c |   started |  cp1 | https://192.0.2.11:2380 | https://192.0.2.11:2379 |      false |
+------------------+-----------+------+-------------------------+-------------------------+------------+
`, []string{
			`list:2 cluster 0 by 0 at "https://192.0.2.11:2379"`,
			`member:5 2bf36f4303b2e4bb "" started=false learner=true [https://192.0.2.14:2380] []`,
			`member:6 751f383534fac39c "cp1" started=true learner=false [https://192.0.2.11:2380] [https://192.0.2.11:2379]`,
		}},
		{"member-table-boxes", "┌────┬─────────┬──────┬────────────┬──────────────┬────────────┐\n│ ID │ STATUS  │ NAME │ PEER ADDRS │ CLIENT ADDRS │ IS LEARNER │\n" +
			"├────┼─────────┼──────┼────────────┼──────────────┼────────────┤\n│ 1f │ started │ cp1  │ http://a:1 │ http://a:2   │      false │\n└────┴─────────┴──────┴────────────┴──────────────┴────────────┘\n",
			[]string{`list:1 cluster 0 by 0 at ""`, `member:4 1f "cp1" started=true learner=false [http://a:1] [http://a:2]`}},
		{"member-simple-two-client-urls", "24cf, started, cp3, http://192.0.2.13:2380, http://192.0.2.13:2379,http://127.0.1.1:2379\n25, unstarted, , http://192.0.2.14:2380, , true\n",
			[]string{`list:1 cluster 0 by 0 at ""`, `member:1 24cf "cp3" started=true learner=false [http://192.0.2.13:2380] [http://192.0.2.13:2379 http://127.0.1.1:2379]`,
				`member:2 25 "" started=false learner=true [http://192.0.2.14:2380] []`}},
		{"member-json", `{"header":{"cluster_id":2554,"member_id":31,"raft_term":2},"members":[{"ID":31,"name":"cp1","peerURLs":["https://a:2380"],"clientURLs":["https://a:2379"]},{"ID":32,"peerURLs":["https://b:2380"],"isLearner":true}]}`,
			[]string{`list:1 cluster 9fa by 1f at ""`, `member:1 1f "cp1" started=true learner=false [https://a:2380] [https://a:2379]`,
				`member:1 20 "" started=false learner=true [https://b:2380] []`}},
		{"member-fields", "\"ClusterID\" : 2554\n\"MemberID\" : 31\n\"RaftTerm\" : 7\n\"ID\" : 31\n\"Name\" : \"cp1\"\n\"PeerURL\" : \"https://a:2380\"\n\"ClientURL\" : \"https://a:2379\"\n\"IsLearner\" : false\n\n" +
			"\"ID\" : 32\n\"Name\" : \"\"\n\"PeerURL\" : \"https://b:2380\"\n\"IsLearner\" : true\n",
			[]string{`list:1 cluster 9fa by 1f at ""`, `member:1 1f "cp1" started=true learner=false [https://a:2380] [https://a:2379]`,
				`member:10 20 "" started=false learner=true [https://b:2380] []`}},
		{"status-simple-3.3", "cp1:2379, b9428e2a6571f403, 3.5.0, 103 MB, false, 8048, 65770996\n",
			[]string{"status:1 #1 cp1:2379 b9428e2a6571f403 v3.5.0 size 103000000 leader=false learner=false rev 0 term 8048 index 65770996 applied 0"}},
		{"status-simple-3.5", "127.0.0.1:2379, 1f, 3.5.9, 20 kB, true, false, 3, 9, 8, \n",
			[]string{"status:1 #1 127.0.0.1:2379 1f v3.5.9 size 20000 leader=true learner=false rev 0 term 3 index 9 applied 8"}},
		{"status-simple-3.6", "127.0.0.1:2379, 1f, 3.6.1, 3.6.0, 20 kB, 16 kB, 20%, 2.1 GB, true, false, 3, 9, 8, , , false\n",
			[]string{"status:1 #1 127.0.0.1:2379 1f v3.6.1 size 20000 leader=true learner=false rev 0 term 3 index 9 applied 8"}},
		{"status-json-and-log-lines", `{"level":"warn","ts":"2026-01-01T00:00:00Z","target":"etcd-endpoints://0xc00/127.0.0.13:2379","error":"rpc error: code = DeadlineExceeded"}
Failed to get the status of endpoint https://127.0.0.13:2379 (context deadline exceeded)
[{"Endpoint":"https://127.0.0.11:2379","Status":{"header":{"cluster_id":5,"member_id":31,"revision":1464,"raft_term":3},"version":"3.7.3","dbSize":3215360,"leader":31,"raftIndex":15,"raftTerm":3,"raftAppliedIndex":15}}]`,
			[]string{"status:3 #2 https://127.0.0.11:2379 1f v3.7.3 size 3215360 leader=true learner=false rev 1464 term 3 index 15 applied 15",
				"failure:1 127.0.0.13:2379 rpc error: code = DeadlineExceeded", "failure:2 https://127.0.0.13:2379 context deadline exceeded"}},
		{"status-fields", "\"ClusterID\" : 5\n\"MemberID\" : 31\n\"Revision\" : 9\n\"RaftTerm\" : 3\n\"Version\" : \"3.5.9\"\n\"DBSize\" : 77\n\"Leader\" : 31\n\"IsLearner\" : false\n\"RaftIndex\" : 15\n\"RaftTerm\" : 3\n\"RaftAppliedIndex\" : 14\n\"Errors\" : []\n\"Endpoint\" : \"https://a:2379\"\n",
			[]string{"status:1 #1 https://a:2379 1f v3.5.9 size 77 leader=true learner=false rev 9 term 3 index 15 applied 14"}},
		{"status-null", "null\n", nil},
		{"health", `[{"endpoint":"https://a:2379","health":true,"took":"1ms"},{"endpoint":"https://b:2379","health":false,"took":"5s","error":"context deadline exceeded"}]`,
			[]string{`health:1 https://a:2379 true ""`, `health:1 https://b:2379 false "context deadline exceeded"`}},
		{"health-simple", "https://a:2379 is healthy: successfully committed proposal: took = 2ms\nhttps://b:2379 is unhealthy: failed to commit proposal: context deadline exceeded\nError: unhealthy cluster\n",
			[]string{`health:1 https://a:2379 true ""`, `health:2 https://b:2379 false "failed to commit proposal: context deadline exceeded"`, "failure:3  unhealthy cluster"}},
		{"alarms", "memberID:8630161756594109333 alarm:NOSPACE \nmemberID:31 alarm:CORRUPT\n", []string{"alarm:1 77c47e649ff3fb95 NOSPACE", "alarm:2 1f CORRUPT"}},
		{"alarms-json", `{"header":{"cluster_id":5,"member_id":31},"alarms":[{"memberID":31,"alarm":1}]}`, []string{"alarm:1 1f NOSPACE"}},
		{"hashkv", `[{"Endpoint":"https://a:2379","HashKV":{"header":{"cluster_id":5,"member_id":31,"revision":44},"hash":559277233,"compact_revision":20,"hash_revision":44}}]`,
			[]string{"hash:1 https://a:2379 1f 559277233 at 44 compact 20"}},
		{"hashkv-simple", "https://a:2379, 559277233\nhttps://b:2379, 559277234, 44\n",
			[]string{"hash:1 https://a:2379 0 559277233 at 0 compact 0", "hash:2 https://b:2379 0 559277234 at 44 compact 0"}},
		{"other-text", "OK\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, facts(parseText(tt.in))); d != "" {
				t.Errorf("facts (-want +got):\n%s", d)
			}
		})
	}
}

// FuzzParse: any text ends in a Saved whose rows are bounded and point inside
// the text.
func FuzzParse(f *testing.F) {
	f.Add("1f, started, cp1, https://a:2380, https://a:2379, false\n")
	f.Add("+--+\n| ID | PEER ADDRS |\n| 1 | a |\n")
	f.Add(`[{"Endpoint":"x","Status":{}}]`)
	f.Add("\"ID\" : 1\n\"PeerURL\" : \"x\"\n")
	f.Fuzz(func(t *testing.T, in string) {
		s := parseText(in)
		lines := strings.Count(in, "\n") + 1
		for _, l := range s.Members {
			for _, m := range l.Members {
				if m.Ref.Line < 1 || m.Ref.Line > lines || len(m.Name) > 3*maxText {
					t.Errorf("member outside the text: %+v", m)
				}
			}
		}
		for _, x := range s.Status {
			if x.Ref.Line < 1 || x.Ref.Line > lines {
				t.Errorf("status outside the text: %+v", x)
			}
		}
	})
}
