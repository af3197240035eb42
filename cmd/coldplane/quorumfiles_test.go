package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"coldplane/report"
)

// Three real members, a fourth voter that was added and never started, and a
// learner; then one voter dies. What is said of the quorum is right from any
// member's database, from any node that runs, and from all together.
func TestQuorumFromFiles(t *testing.T) {
	tree := t.TempDir()
	ms := map[string]*etcdMember{}
	var initial []string
	for _, name := range []string{"cp1", "cp2", "cp3", "learner"} {
		ms[name] = newEtcdMember(t, tree, name)
		ms[name].manifest(t)
		if name != "learner" {
			initial = append(initial, ms[name].initial())
		}
	}
	for _, name := range []string{"cp1", "cp2", "cp3"} {
		ms[name].start(t, strings.Join(initial, ","), "new")
	}
	for _, name := range []string{"cp1", "cp2", "cp3"} {
		ms[name].ready(t)
	}
	c := ms["cp1"].dial(t)
	if err := putConfigMap(t.Context(), c, "kube-system", "settings", 100); err != nil {
		t.Fatal(err)
	}
	// etcd lets a member be added only once all have been connected for 5 s.
	add := func(f func() error) {
		t.Helper()
		var err error
		for range 60 {
			if err = f(); err == nil {
				return
			}
			time.Sleep(500 * time.Millisecond)
		}
		t.Fatal(err)
	}
	l := ms["learner"]
	add(func() error { _, err := c.MemberAddAsLearner(t.Context(), []string{l.peer.String()}); return err })
	l.start(t, strings.Join(append(initial, l.initial()), ","), "existing")
	l.ready(t)
	never := freeURL(t)
	add(func() error { _, err := c.MemberAdd(t.Context(), []string{never.String()}); return err })
	if err := putConfigMap(t.Context(), c, "kube-system", "settings", 101); err != nil {
		t.Fatal(err)
	}
	dead := fmt.Sprintf("cp3 (%x)", uint64(ms["cp3"].etcd.Server.MemberID()))
	snapshot := func(what string) string {
		t.Helper()
		at := filepath.Join(t.TempDir(), what)
		for _, m := range ms {
			root := filepath.Join(at, "nodes", m.name)
			copyFiles(t, m.root, root)
			m.saveLog(t, root)
		}
		return at
	}
	waitApplied(t, c, ms)

	// All run that ever started: three of four voters, nothing to spare.
	at := snapshot("before")
	f := quorumFinding(t, at)
	want(t, "all nodes", f, report.High, "4 voters, quorum 3: 3 seen alive, 1 not answering; 1 learner beside them", "may lose 0 more", "losing 1 leaves 2 of 4 and nothing is written any more", "never started")

	// One dies: the member that never started has cost the quorum.
	id := fmt.Sprintf("%x", uint64(ms["cp3"].etcd.Server.MemberID()))
	ms["cp3"].stop()
	waitGone(t, id, ms["cp1"], ms["cp2"])
	at = snapshot("after")
	f = quorumFinding(t, filepath.Join(at, "nodes/cp1"), filepath.Join(at, "nodes/cp2"), filepath.Join(at, "nodes/learner"))
	want(t, "all that run", f, report.Critical, "4 voters, quorum 3: 2 seen alive, 2 not answering; 1 learner beside them", dead+" did not answer and ", "never started: quorum is lost")
	f = quorumFinding(t, at)
	want(t, "all nodes, the dead one's disk too", f, report.Critical, "4 voters, quorum 3: 2 seen alive, 2 not answering", "quorum is lost")
	for _, name := range []string{"cp1", "cp2"} {
		f = quorumFinding(t, filepath.Join(at, "nodes", name))
		want(t, name+" alone", f, report.Critical, "4 voters, quorum 3: 1 seen alive, 2 not answering, 1 of unknown state; 1 learner", dead, "quorum is lost")
	}
	for _, m := range ms {
		f = quorumFinding(t, filepath.Join(at, "nodes", m.name, "var/lib/etcd"))
		want(t, "data directory of "+m.name, f, report.High, "4 voters, quorum 3: ", "1 not answering", "1 learner beside them", "may lose 0 more if the unknown ones are up", "never started")
	}
}

func want(t *testing.T, what string, f report.Finding, sev report.Severity, texts ...string) {
	t.Helper()
	if f.Severity != sev {
		t.Errorf("%s: severity %v, want %v: %s", what, f.Severity, sev, f.Message)
	}
	for _, x := range texts {
		if !strings.Contains(f.Message, x) {
			t.Errorf("%s: no %q in %q", what, x, f.Message)
		}
	}
}

func quorumFinding(t *testing.T, inputs ...string) report.Finding {
	t.Helper()
	return one(t, judged(t, inputs...), "QRM101")
}

// waitApplied waits until every member's database holds the newest revision on
// disk: etcd commits ten times a second.
func waitApplied(t *testing.T, c *clientv3.Client, ms map[string]*etcdMember) {
	t.Helper()
	for range 100 {
		low, high := int64(1<<62), int64(0)
		for _, m := range ms {
			s, err := c.Status(t.Context(), m.client.String())
			if err != nil {
				t.Fatal(err)
			}
			low, high = min(low, s.Header.Revision), max(high, s.Header.Revision)
		}
		if low == high {
			time.Sleep(time.Second)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the members do not catch up")
}

// waitGone waits until the members have noticed that a peer is gone.
func waitGone(t *testing.T, id string, ms ...*etcdMember) {
	t.Helper()
	for _, m := range ms {
		for i := 0; !logHas(t, m, "peer became inactive", id); i++ {
			if i == 300 {
				t.Fatalf("%s does not notice that its peer is gone", m.name)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}
