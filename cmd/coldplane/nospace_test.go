package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"coldplane/report"
)

var roomRE = regexp.MustCompile(`(\d+) bytes live, (\d+) reclaimable by compaction, (\d+) by defragmentation`)

// room reads the three sizes out of a message.
func room(t *testing.T, f report.Finding) (live, compaction, defrag int64) {
	t.Helper()
	m := roomRE.FindStringSubmatch(f.Message)
	if m == nil {
		t.Fatalf("no sizes in %q", f.Message)
	}
	var n [3]int64
	for i := range n {
		n[i], _ = strconv.ParseInt(m[i+1], 10, 64)
	}
	return n[0], n[1], n[2]
}

// inOrder checks that the commands of a remedy come in an order.
func inOrder(t *testing.T, f report.Finding, want ...string) {
	t.Helper()
	at := 0
	for _, w := range want {
		i := slices.IndexFunc(f.Fix[at:], func(s report.Step) bool { return strings.Contains(s.Command, w) })
		if i < 0 {
			t.Fatalf("%s: no %q after step %d of %+v", f.Rule, w, at, f.Fix)
		}
		at += i
	}
}

// fill writes what fills a store: ConfigMaps of one namespace, each written
// twice, until etcd refuses; returns how many it took.
func fill(t *testing.T, c *clientv3.Client) int {
	t.Helper()
	for i := range 10000 {
		for range 2 {
			err := putConfigMap(t.Context(), c, "logs", fmt.Sprintf("build-%04d", i), 10<<10)
			if errors.Is(err, rpctypes.ErrNoSpace) {
				return i
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatal("etcd never refused")
	return 0
}

// near checks an estimate against what etcd did: within a share of it, and a
// floor for half-filled pages.
func near(t *testing.T, what string, got, want int64) {
	t.Helper()
	if d := max(got-want, want-got); d > want/6+200<<10 {
		t.Errorf("%s: %d, etcd made it %d", what, got, want)
	}
}

// A real etcd filled until it refuses writes, told from its files; the sizes
// are held against what etcd's own compaction and defragmentation then do. The
// same after its snapshot was restored: the alarm is of a member that is gone.
func TestNoSpace(t *testing.T) {
	tree := t.TempDir()
	m := newEtcdMember(t, tree, "cp1")
	m.quota = 8 << 20
	m.manifest(t)
	m.start(t, m.initial(), "new")
	m.ready(t)
	c := m.dial(t)
	ctx := t.Context()
	for _, ns := range []string{"kube-system", "default"} {
		if err := putConfigMap(ctx, c, ns, "settings", 4<<10); err != nil {
			t.Fatal(err)
		}
	}
	n := fill(t, c)
	// Deletes and compactions pass under the alarm: a third goes, is compacted,
	// and leaves free pages; another third goes and stays as history.
	drop := func(from, to int) int64 {
		r, err := c.Delete(ctx, fmt.Sprintf("/registry/configmaps/logs/build-%04d", from), clientv3.WithRange(fmt.Sprintf("/registry/configmaps/logs/build-%04d", to)))
		if err != nil {
			t.Fatal(err)
		}
		return r.Header.Revision
	}
	if _, err := c.Compact(ctx, drop(0, n/3), clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	newest := drop(n/3, 2*n/3)
	status := func() *clientv3.StatusResponse {
		s, err := c.Status(ctx, m.client.String())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := status()
	snap := filepath.Join(t.TempDir(), "backup.db")
	saveSnapshot(t, c, snap)

	// The alarm, what filled it, and what each step would give back.
	copied := filepath.Join(t.TempDir(), "nodes/cp1")
	copyFiles(t, m.root, copied)
	r := judged(t, filepath.Dir(filepath.Dir(copied)))
	f := one(t, r, "CAP101")
	id := fmt.Sprintf("%x", uint64(m.etcd.Server.MemberID()))
	for _, want := range []string{"NOSPACE", id, fmt.Sprintf("database of %d bytes", before.DbSize), "quota 8388608", "configmaps fills most of it"} {
		if !strings.Contains(f.Message, want) {
			t.Errorf("no %q in %q", want, f.Message)
		}
	}
	if f.Severity != report.Critical || len(findings(r, "RST104")) != 0 {
		t.Errorf("severity %v, RST104 %v", f.Severity, findings(r, "RST104"))
	}
	inOrder(t, f, "snapshot save", "etcdctl compact", "defrag", "alarm list", "alarm disarm")
	_, compaction, defrag := room(t, f)
	near(t, "free pages", defrag, before.DbSize-before.DbSizeInUse)

	// etcd does what the report says.
	if _, err := c.Compact(ctx, newest, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	compacted := status()
	near(t, "freed by compaction", compaction, before.DbSizeInUse-compacted.DbSizeInUse)
	if err := putConfigMap(ctx, c, "default", "again", 100); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("after compaction a write gives %v", err)
	}
	if _, err := c.Defragment(ctx, m.client.String()); err != nil {
		t.Fatal(err)
	}
	after := status()
	near(t, "given back in all", compaction+defrag, before.DbSize-after.DbSize)
	if _, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	if err := putConfigMap(ctx, c, "default", "again", 100); err != nil {
		t.Errorf("after the whole remedy a write gives %v", err)
	}
	m.stop()
	if fs := findings(judged(t, tree), "CAP101"); len(fs) != 0 {
		t.Errorf("repaired, and still %q", fs[0].Message)
	}

	t.Run("restored", func(t *testing.T) { restoredAlarm(t, snap, id) })
}

// restoredAlarm restores a snapshot that carries an alarm with etcdutl, under a
// name and an address of its own.
func restoredAlarm(t *testing.T, snap, id string) {
	f := one(t, judged(t, snap), "RST104")
	if f.Severity != report.High || !strings.Contains(f.Message, id) {
		t.Errorf("snapshot: %v %q", f.Severity, f.Message)
	}
	etcdutl := peerTool(t, "etcdutl", "go.etcd.io/etcd/etcdutl/v3")
	tree := t.TempDir()
	m := newEtcdMember(t, tree, "cp9")
	m.quota = 64 << 20 // a larger quota does not help
	m.manifest(t)
	if err := os.MkdirAll(filepath.Dir(m.dir()), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(etcdutl, "snapshot", "restore", snap, "--data-dir", m.dir(), "--name", m.name, "--initial-cluster", m.initial(),
		"--initial-advertise-peer-urls", m.peer.String(), "--initial-cluster-token", "restored").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	check := func(when string) {
		t.Helper()
		r := judged(t, tree)
		f := one(t, r, "RST104")
		for _, want := range []string{"NOSPACE", id, "no member here", "configmaps fills most of it"} {
			if !strings.Contains(f.Message, want) {
				t.Errorf("%s: no %q in %q", when, want, f.Message)
			}
		}
		if f.Severity != report.Critical || len(findings(r, "CAP101")) != 0 {
			t.Errorf("%s: severity %v, CAP101 %v", when, f.Severity, findings(r, "CAP101"))
		}
		room(t, f)
		inOrder(t, f, "etcdctl compact", "defrag", "alarm list", "alarm disarm")
	}
	check("restored")
	m.start(t, m.initial(), "existing")
	m.ready(t)
	c := m.dial(t)
	if err := putConfigMap(context.Background(), c, "default", "again", 100); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Errorf("restored, and a write gives %v", err)
	}
	m.stop()
	check("started")
}
