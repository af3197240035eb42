package etcdwal

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

// open writes files and returns the facts of the only node.
func open(t *testing.T, files map[string][]byte) Dirs {
	t.Helper()
	if err := walframetest.Make(files); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "in")
	for name, b := range files {
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
	e := analyze.New(context.Background(), set, analyze.Options{})
	got, err := OnNode.Get(e.Ctx(set.Nodes[0]))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

const threeMembers = `
node a cluster c
member a name=cp1 peer=https://192.0.2.11:2380 client=https://192.0.2.11:2379
member b name=cp2 peer=https://192.0.2.12:2380
member d peer=https://192.0.2.14:2380 learner
conf add a
leader 2
conf add-learner b
conf promote b
conf add-learner d
put /registry/pods/default/x times=3
state
snap 2 4 version=3.5.0 members=a,b
`

func TestMembershipReplaysBehindTheSnapshot(t *testing.T) {
	ds := open(t, map[string][]byte{"var/lib/etcd!wal": []byte(threeMembers), "var/lib/etcd/member/snap/db": []byte("x")})
	if len(ds) != 1 || ds.Live() == nil {
		t.Fatalf("%d data directories", len(ds))
	}
	m, ok := ds[0].Membership()
	if !ok {
		t.Fatal("no membership")
	}
	var got []string
	for _, x := range m.Members {
		got = append(got, fmt.Sprintf("%x %s learner=%v", x.ID, x.Name, x.IsLearner))
	}
	want := []string{"a cp1 learner=false", "b cp2 learner=false", "d  learner=true"}
	if d := cmp.Diff(want, got); d != "" || m.Voters() != 2 || m.Version != "3.5.0" || len(m.Applied) != 1 {
		t.Errorf("members (-want +got):\n%s%+v", d, m)
	}
}

func TestMembershipFromTheLogAlone(t *testing.T) {
	spec := threeMembers[:len(threeMembers)-len("snap 2 4 version=3.5.0 members=a,b\n")] + "conf remove b\nstate\n"
	ds := open(t, map[string][]byte{"var/lib/etcd!wal": []byte(spec)})
	m, ok := ds[0].Membership()
	if !ok || len(m.Members) != 2 || m.Voters() != 1 || len(m.Removed) != 1 || m.Base.IsZero() {
		t.Errorf("membership out of the log: %v %+v", ok, m)
	}
}

// TestMembershipUnknownBehindDamage: a damaged stretch may have held a conf
// change, so the answer is that nobody knows.
func TestMembershipUnknownBehindDamage(t *testing.T) {
	ds := open(t, map[string][]byte{"var/lib/etcd!wal": []byte(threeMembers + "put /registry/x\nflip 900\n")})
	if ds[0].Log.Whole() {
		t.Fatal("the damage was not seen")
	}
	if _, ok := ds[0].Membership(); ok {
		t.Error("membership is claimed across a damaged stretch")
	}
}

func TestForcedRemovals(t *testing.T) {
	ds := open(t, map[string][]byte{"var/lib/etcd!wal": []byte(threeMembers + "conf remove d\nconf force b\nstate\n")})
	if f := Forced(ds[0].Log); len(f) != 1 || f[0].NodeID != 0xb {
		t.Errorf("forced removals: %+v", f)
	}
}

func TestLeftovers(t *testing.T) {
	ds := open(t, map[string][]byte{
		"var/lib/etcd!wal":                                          []byte("node a cluster c\n"),
		"var/lib/etcd/member/snap/db":                               []byte("x"),
		"var/lib/etcd/member/snap/db.tmp.123":                       []byte("x"),
		"var/lib/etcd/member/snap/tmp0815":                          []byte("xyz"),
		"var/lib/etcd/member/snap/00000000000000ff.snap.db":         []byte("x"),
		"var/lib/etcd/member/snap/0000000000000001-01.snap.broken":  []byte("x"),
		"var/lib/etcd/member/wal/0.tmp":                             []byte("x"),
		"var/lib/etcd/member/wal/notes":                             []byte("x"),
		"var/lib/etcd/member/wal.broken.20260101.101112.000001/old": []byte("x"),
	})
	var got []string
	for _, l := range ds[0].Leftovers {
		got = append(got, fmt.Sprintf("%s %s", l.Kind, l.Name))
	}
	want := []string{"broken 0000000000000001-01.snap.broken", "snap-db 00000000000000ff.snap.db", "defrag db.tmp.123", "temp tmp0815",
		"broken wal.broken.20260101.101112.000001",
		"pipeline 0.tmp", "bad-name notes"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("leftovers (-want +got):\n%s", d)
	}
}

func TestDamagedSnapshotIsKeptWithItsError(t *testing.T) {
	ds := open(t, map[string][]byte{"var/lib/etcd!wal": []byte(threeMembers),
		"var/lib/etcd/member/snap/0000000000000003-0000000000000009.snap": []byte("garbage")})
	if s := ds[0].Snaps; len(s) != 2 || s[0].Err == nil || ds[0].NewestSnap() != &s[1] {
		t.Errorf("snapshots: %+v", s)
	}
}
