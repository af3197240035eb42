// The comparisons with etcd's own packages live apart from the fuzz targets: linked
// into one test binary, etcd's instrumented packages slow fuzzing to a crawl.
package walframetest_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v2store"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"coldplane/bundle/decode/walframe"
)

// figures are what both etcd's reader and ours say about a log.
type figures struct {
	Identity                walframe.Identity
	State                   walframe.HardState
	Entries                 int64
	LastIndex, LastTerm     uint64
	Marks                   []string
	ConfChanges             []string
	Puts, Deletes, Txns, V2 int64
}

func ours(t *testing.T, dir string) (figures, *walframe.Log) {
	t.Helper()
	segs := dirSegments(t, dir)
	l := walframe.Walk(segs)
	g := figures{Identity: l.Identity, State: l.State, Entries: l.Entries, LastIndex: l.LastIndex, LastTerm: l.LastTerm,
		Puts: l.Kinds[walframe.Put].Entries, Deletes: l.Kinds[walframe.DeleteRange].Entries,
		Txns: l.Kinds[walframe.Txn].Entries, V2: l.Kinds[walframe.V2Request].Entries}
	for _, m := range l.Marks.Items {
		g.Marks = append(g.Marks, fmt.Sprint(m.Index, "/", m.Term))
	}
	for _, c := range l.ConfChanges.Items {
		g.ConfChanges = append(g.ConfChanges, fmt.Sprintf("%d %d %x", c.Index, c.Type, c.NodeID))
	}
	return g, l
}

func dirSegments(t *testing.T, dir string) []walframe.Segment {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	var segs []walframe.Segment
	for _, n := range names {
		f, err := os.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		fi, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		segs = append(segs, walframe.Segment{Name: filepath.Base(n), Size: fi.Size(), R: f})
	}
	return segs
}

// theirs reads the same files through etcd's own decoder.
func theirs(t *testing.T, dir string) figures {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(names)
	var readers []fileutil.FileReader
	for _, n := range names {
		f, err := os.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		readers = append(readers, fileutil.NewFileReader(f))
	}
	dec := wal.NewDecoder(readers...)
	var g figures
	var rec walpb.Record
	for {
		err := dec.Decode(&rec)
		if errors.Is(err, io.EOF) {
			return g
		}
		if err != nil {
			t.Fatal(err)
		}
		switch rec.GetType() {
		case wal.MetadataType:
			var m etcdserverpb.Metadata
			unmarshal(t, rec.Data, &m)
			g.Identity = walframe.Identity{Node: m.GetNodeID(), Cluster: m.GetClusterID()}
		case wal.CrcType:
			dec.UpdateCRC(rec.GetCrc())
		case wal.StateType:
			var s raftpb.HardState
			unmarshal(t, rec.Data, &s)
			g.State = walframe.HardState{Term: s.GetTerm(), Vote: s.GetVote(), Commit: s.GetCommit()}
		case wal.SnapshotType:
			var s walpb.Snapshot
			unmarshal(t, rec.Data, &s)
			g.Marks = append(g.Marks, fmt.Sprint(s.GetIndex(), "/", s.GetTerm()))
			if s.GetIndex() > g.LastIndex {
				g.LastIndex, g.LastTerm = s.GetIndex(), s.GetTerm()
			}
		case wal.EntryType:
			var e raftpb.Entry
			unmarshal(t, rec.Data, &e)
			g.Entries++
			g.LastIndex, g.LastTerm = e.GetIndex(), e.GetTerm()
			g.entry(t, &e)
		}
	}
}

func (g *figures) entry(t *testing.T, e *raftpb.Entry) {
	t.Helper()
	if e.GetType() == raftpb.EntryConfChange {
		var c raftpb.ConfChange
		unmarshal(t, e.GetData(), &c)
		g.ConfChanges = append(g.ConfChanges, fmt.Sprintf("%d %d %x", e.GetIndex(), c.GetType(), c.GetNodeId()))
		return
	}
	if len(e.GetData()) == 0 {
		return
	}
	var r etcdserverpb.InternalRaftRequest
	if proto.Unmarshal(e.GetData(), &r) != nil {
		g.V2++
		return
	}
	switch {
	case r.GetPut() != nil:
		g.Puts++
	case r.GetDeleteRange() != nil:
		g.Deletes++
	case r.GetTxn() != nil:
		g.Txns++
	}
}

func unmarshal(t *testing.T, b []byte, m proto.Message) {
	t.Helper()
	if err := proto.Unmarshal(b, m); err != nil {
		t.Fatal(err)
	}
}

// TestAgainstEtcdWriter lets etcd's wal package write logs and compares what
// its decoder and ours read.
func TestAgainstEtcdWriter(t *testing.T) {
	old := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 32 << 10
	defer func() { wal.SegmentSizeBytes = old }()
	dir := filepath.Join(t.TempDir(), "wal")
	meta, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: proto.Uint64(0x1234), ClusterID: proto.Uint64(0xabcdef)})
	if err != nil {
		t.Fatal(err)
	}
	w, err := wal.Create(zap.NewNop(), dir, meta)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(term, index uint64, typ raftpb.EntryType, m proto.Message) *raftpb.Entry {
		e := &raftpb.Entry{Term: &term, Index: &index, Type: &typ}
		if m != nil {
			if e.Data, err = proto.Marshal(m); err != nil {
				t.Fatal(err)
			}
		}
		return e
	}
	save := func(term, commit uint64, ents ...*raftpb.Entry) {
		if err := w.Save(&raftpb.HardState{Term: &term, Vote: proto.Uint64(0x1234), Commit: &commit}, ents); err != nil {
			t.Fatal(err)
		}
	}
	add := raftpb.ConfChangeAddNode
	save(1, 1, entry(1, 1, raftpb.EntryConfChange, &raftpb.ConfChange{Type: &add, NodeId: proto.Uint64(0x1234), Context: []byte(`{"id":4660}`)}))
	save(2, 2, entry(2, 2, raftpb.EntryNormal, nil))
	for i := uint64(3); i < 200; i++ {
		put := &etcdserverpb.PutRequest{Key: fmt.Appendf(nil, "/registry/pods/ns/%d", i), Value: bytes.Repeat([]byte{byte(i)}, int(i)*5)}
		var r *etcdserverpb.InternalRaftRequest
		switch i % 5 {
		case 0:
			r = &etcdserverpb.InternalRaftRequest{DeleteRange: &etcdserverpb.DeleteRangeRequest{Key: put.Key}}
		case 1:
			r = &etcdserverpb.InternalRaftRequest{Txn: &etcdserverpb.TxnRequest{Success: []*etcdserverpb.RequestOp{
				{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: put}}}}}
		default:
			r = &etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: i}, Put: put}
		}
		save(2, i, entry(2, i, raftpb.EntryNormal, r))
		if i == 120 {
			if err := w.SaveSnapshot(&walpb.Snapshot{Index: proto.Uint64(100), Term: proto.Uint64(2), ConfState: &raftpb.ConfState{Voters: []uint64{0x1234}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, l := ours(t, dir)
	if d := cmp.Diff(theirs(t, dir), got); d != "" {
		t.Errorf("ours differs from etcd's decoder (-etcd +ours):\n%s", d)
	}
	if !l.Whole() || len(l.Segments) < 3 || l.Trimmed {
		t.Errorf("%d segments, trimmed %v, damage %+v", len(l.Segments), l.Trimmed, l.Damage)
	}
	if p := l.Prefixes["/registry/pods"]; p.Puts+p.Deletes != 197 || p.LargestValue != 199*5 {
		t.Errorf("writes by prefix: %+v", p)
	}
	readAll(t, dir, l)
}

// readAll checks the verdict about a start against etcd opening the log.
func readAll(t *testing.T, dir string, l *walframe.Log) {
	t.Helper()
	w, err := wal.OpenForRead(zap.NewNop(), dir, &walpb.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	_, state, ents, err := w.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if state.GetCommit() != l.State.Commit || uint64(len(ents)) != l.LastIndex {
		t.Errorf("etcd reads %d entries and commit %d, we say %d and %d", len(ents), state.GetCommit(), l.LastIndex, l.State.Commit)
	}
}

// TestAgainstEtcdSnapshotter compares .snap files written by etcd.
func TestAgainstEtcdSnapshotter(t *testing.T) {
	dir := t.TempDir()
	store := v2store.New("/0", "/1")
	for id, peer := range map[string]string{"a": "https://192.0.2.11:2380", "b": "https://192.0.2.12:2380"} {
		if _, err := store.Create("/0/members/"+id+"/raftAttributes", false, `{"peerURLs":["`+peer+`"]}`, false, v2store.TTLOptionSet{}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := store.Save()
	if err != nil {
		t.Fatal(err)
	}
	s := &raftpb.Snapshot{Data: data, Metadata: &raftpb.SnapshotMetadata{Index: proto.Uint64(0x77), Term: proto.Uint64(5),
		ConfState: &raftpb.ConfState{Voters: []uint64{0xa, 0xb}}}}
	if err := snap.New(zap.NewNop(), dir).SaveSnap(s); err != nil {
		t.Fatal(err)
	}
	compareSnaps(t, dir, 1)
}

// compareSnaps reads every .snap of dir with etcd's reader and ours.
func compareSnaps(t *testing.T, dir string, want int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.snap"))
	if err != nil || len(names) < want {
		t.Fatalf("%d snapshot files, %v", len(names), err)
	}
	for _, n := range names {
		theirs, err := snap.Read(zap.NewNop(), n)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		got, err := walframe.ReadSnap(filepath.Base(n), bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		m := theirs.GetMetadata()
		if got.Index != m.GetIndex() || got.Term != m.GetTerm() || fmt.Sprint(got.ConfState.Voters) != fmt.Sprint(m.GetConfState().GetVoters()) {
			t.Errorf("%s: got %+v, etcd %v", n, got, m)
		}
		store := v2store.New("/0", "/1")
		if err := store.Recovery(theirs.GetData()); err != nil {
			t.Fatal(err)
		}
		metaOnly, err := membership.IsMetaStoreOnly(store)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := store.Get("/0/members", true, true)
		if err != nil {
			t.Fatal(err)
		}
		if metaOnly != (got.Store.UserKeys == 0) || len(ev.Node.Nodes) != len(got.Store.Members) {
			t.Errorf("%s: members %d, etcd %d; v2 keys %d, etcd says membership only: %v", n, len(got.Store.Members), len(ev.Node.Nodes), got.Store.UserKeys, metaOnly)
		}
	}
}

// TestRealDataDirs reads data directories made by etcd 3.4 to 3.6 where they
// are at hand.
func TestRealDataDirs(t *testing.T) {
	names, err := filepath.Glob("../../../../../shared/real/etcd-versions/*.tar.zst")
	if err != nil || len(names) == 0 {
		t.Skip("no recorded data directories here")
	}
	for _, n := range names {
		t.Run(filepath.Base(n), func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, n, dir)
			wals, err := filepath.Glob(filepath.Join(dir, "*.wal"))
			if err != nil || len(wals) == 0 {
				t.Fatalf("no segments in %s", n)
			}
			got, l := ours(t, dir)
			if d := cmp.Diff(theirs(t, dir), got); d != "" {
				t.Errorf("ours differs from etcd's decoder (-etcd +ours):\n%s", d)
			}
			if !l.Whole() {
				t.Errorf("damage in a real log: %+v %+v", l.Damage, l.Torn)
			}
			compareSnaps(t, dir, 1)
		})
	}
}

// unpack writes the .wal and .snap files of an archive flat into dir.
func unpack(t *testing.T, name, dir string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	tr := tar.NewReader(z)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if base := filepath.Base(h.Name); strings.HasSuffix(base, ".wal") || strings.HasSuffix(base, ".snap") {
			out, err := os.Create(filepath.Join(dir, base))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(out, tr); err != nil {
				t.Fatal(err)
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
