package walframe_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"coldplane/bundle/decode/walframe"
	"coldplane/bundle/decode/walframe/walframetest"
)

const prealloc = 64 << 10

// sample is a log with two leaders, a joined and a promoted learner, an alarm
// and overwritten entries, in three segments.
func sample() *walframetest.Writer {
	w := walframetest.New(0xa, 0xc, prealloc)
	w.Conf(1, walframe.AddNode, 0xa, &walframe.MemberInfo{PeerURLs: []string{"https://192.0.2.11:2380"}}, false)
	w.State(2, 0xa, 1)
	w.Leader(2)
	w.Entry(2, 3, 0, walframetest.Request(walframe.MemberAttrSet,
		append(walframetest.Uints(1, 0xa), walframetest.Bytes(nil, 2, append(walframetest.Bytes(nil, 1, []byte("cp1")),
			walframetest.Bytes(nil, 2, []byte("https://192.0.2.11:2379"))...))...)))
	w.Entry(2, 4, 0, walframetest.Request(walframe.ClusterVersionSet, walframetest.Bytes(nil, 1, []byte("3.6.0"))))
	for i := range 20 {
		w.Put(2, fmt.Sprintf("/registry/pods/default/p%d", i), 300+i*7)
		w.State(2, 0xa, w.Index())
	}
	w.Cut()
	w.Mark(20, 2, 0xa)
	b := &walframe.MemberInfo{PeerURLs: []string{"https://192.0.2.12:2380"}, IsLearner: true}
	w.Conf(2, walframe.AddLearner, 0xb, b, false)
	w.Conf(2, walframe.AddNode, 0xb, b, true)
	w.State(2, 0xa, w.Index())
	w.Put(2, "/registry/secrets/kube-system/lost", 90) // 27, overwritten
	w.Put(2, "/registry/secrets/kube-system/lost2", 90)
	w.State(3, 0xb, w.Index()-2)
	w.Entry(3, 27, 0, nil)
	w.Alarm(3, 0xa, walframe.AlarmNoSpace, true)
	w.Entry(3, 29, 0, walframetest.Request(walframe.Compaction, walframetest.Uints(1, 777)))
	w.State(3, 0xb, w.Index())
	w.Cut()
	for i := range 12 {
		w.Put(3, fmt.Sprintf("/registry/apps.example.com/widgets/ns/w%d", i), 700)
	}
	w.State(3, 0xb, w.Index())
	return w
}

func segments(files []walframetest.File) []walframe.Segment {
	var out []walframe.Segment
	for _, f := range files {
		out = append(out, walframe.Segment{Name: f.Name, Size: int64(len(f.Data)), R: bytes.NewReader(f.Data)})
	}
	return out
}

func TestWholeLog(t *testing.T) {
	files := sample().Files()
	files[0], files[2] = files[2], files[0] // order does not matter
	l := walframe.Walk(append(segments(files), walframe.Segment{Name: "0.tmp"}))
	if !l.Whole() || l.Trimmed || l.Start != walframe.StartOpens || l.Breaks != 0 {
		t.Fatalf("a whole log is reported as damaged: %+v %v", l.Damage, l.Start)
	}
	type figures struct {
		Identity                     walframe.Identity
		State                        walframe.HardState
		First, Last, Term            uint64
		Entries, Replaced            int64
		Odd                          []string
		Compactions                  walframe.CompactionStat
		Alarms                       []walframe.AlarmEvent
		Attrs                        []walframe.AttrEvent
		Versions                     []walframe.VersionEvent
		Terms                        []walframe.TermSpan
		Pods, Secrets, Widgets, Ends string
	}
	got := figures{l.Identity, l.State, l.FirstIndex, l.LastIndex, l.LastTerm, l.Entries, l.Replaced, l.OddNames, l.Compactions,
		l.Alarms.Items, l.Attrs.Items, l.Versions.Items, l.Terms.Items, fmt.Sprint(l.Prefixes["/registry/pods"]),
		fmt.Sprint(l.Prefixes["/registry/secrets"]), fmt.Sprint(l.Prefixes["/registry/apps.example.com/widgets"]),
		fmt.Sprint(l.Segments[0].End, l.Segments[1].End, l.Segments[2].End)}
	want := figures{
		Identity: walframe.Identity{Node: 0xa, Cluster: 0xc}, State: walframe.HardState{Term: 3, Vote: 0xb, Commit: 41},
		First: 1, Last: 41, Term: 3, Entries: 43, Replaced: 2, Odd: []string{"0.tmp"},
		Compactions: walframe.CompactionStat{Count: 1, LastRev: 777, LastIndex: 29},
		Alarms:      []walframe.AlarmEvent{{Index: 28, Member: 0xa, Type: walframe.AlarmNoSpace, Raised: true}},
		Attrs:       []walframe.AttrEvent{{Index: 3, ID: 0xa, Name: "cp1", ClientURLs: []string{"https://192.0.2.11:2379"}}},
		Versions:    []walframe.VersionEvent{{Index: 4, Version: "3.6.0"}},
		Terms: []walframe.TermSpan{{Term: 1, FirstIndex: 1, Entries: 1}, {Term: 2, FirstIndex: 2, Entries: 27},
			{Term: 3, FirstIndex: 27, Entries: 15}},
		Pods: "{20 0 7330 433}", Secrets: "{2 0 180 90}", Widgets: "{12 0 8400 700}", Ends: "exact exact preallocated",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("figures (-want +got):\n%s", d)
	}
	var confs []string
	for _, c := range l.ConfChanges.Items {
		confs = append(confs, fmt.Sprintf("%d %v %x promote=%v learner=%v %v", c.Index, c.Type, c.NodeID, c.Promote, c.Member.IsLearner, c.Member.PeerURLs))
	}
	wantConfs := []string{
		"1 add a promote=false learner=false [https://192.0.2.11:2380]",
		"25 add-learner b promote=false learner=true [https://192.0.2.12:2380]",
		"26 add b promote=true learner=true [https://192.0.2.12:2380]",
	}
	if d := cmp.Diff(wantConfs, confs); d != "" {
		t.Errorf("conf changes (-want +got):\n%s", d)
	}
}

func TestOverwrittenConfChange(t *testing.T) {
	w := walframetest.New(1, 2, prealloc)
	w.Leader(1)
	w.Conf(1, walframe.RemoveNode, 9, nil, false)
	w.Entry(2, 2, 0, nil)
	l := walframe.Walk(segments(w.Files()))
	if c := l.ConfChanges.Items[0]; !c.Replaced || c.Context {
		t.Errorf("conf change at an overwritten index: %+v", c)
	}
}

func TestSnapshotFromLeaderIsNoGap(t *testing.T) {
	w := walframetest.New(1, 2, prealloc)
	w.Leader(1)
	w.Mark(5000, 4, 1, 2, 3)
	w.Entry(4, 5001, 0, nil)
	l := walframe.Walk(segments(w.Files()))
	if !l.Whole() || l.LastIndex != 5001 {
		t.Errorf("entries that go on behind a received snapshot: %+v", l.Damage)
	}
	m := l.Marks.Items[1]
	if m.ConfState == nil || len(m.ConfState.Voters) != 3 {
		t.Errorf("conf state of the mark: %+v", m)
	}
}

func TestV2RequestsAreNoDamage(t *testing.T) {
	w := walframetest.New(1, 2, prealloc)
	v2 := func(method, path, val string) []byte {
		b := walframetest.Uints(1, 99)
		b = walframetest.Bytes(b, 2, []byte(method))
		b = walframetest.Bytes(b, 3, []byte(path))
		return append(walframetest.Bytes(b, 4, []byte(val)), walframetest.Uints(5, 0)...)
	}
	w.Entry(1, 1, 0, v2("PUT", "/0/members/1f/attributes", `{"name":"cp1","clientURLs":["https://192.0.2.11:2379"]}`))
	w.Entry(1, 2, 0, v2("PUT", "/0/version", "3.5.0"))
	w.Entry(1, 3, 0, v2("PUT", "/1/app", "kept by nobody"))
	l := walframe.Walk(segments(w.Files()))
	if !l.Whole() || l.Kinds[walframe.V2Request].Entries != 3 || l.V2UserRequests != 1 {
		t.Errorf("v2 requests: %v %+v", l.Kinds, l.Damage)
	}
	if len(l.Attrs.Items) != 1 || l.Attrs.Items[0].ID != 0x1f || l.Attrs.Items[0].Name != "cp1" || l.Versions.Items[0].Version != "3.5.0" {
		t.Errorf("what v2 requests set: %+v %+v", l.Attrs.Items, l.Versions.Items)
	}
}

// TestLargeEntry has a value larger than is held in memory.
func TestLargeEntry(t *testing.T) {
	w := walframetest.New(1, 2, 8<<20)
	w.Put(1, "/registry/configmaps/ns/big", 5<<20)
	w.Put(1, "/registry/configmaps/ns/small", 5)
	files := w.Files()
	l := walframe.Walk(segments(files))
	if !l.Whole() || l.LastIndex != 2 {
		t.Fatalf("large entry: %+v", l.Damage)
	}
	if p := l.Prefixes["/registry/configmaps"]; p.Puts != 2 || p.LargestValue != 5<<20 {
		t.Errorf("sizes of a large entry: %+v", p)
	}
	files[0].Data[3<<20] ^= 1
	if l = walframe.Walk(segments(files)); l.Breaks != 1 || l.Damage[0].Kind != walframe.BadChecksum || l.LastIndex != 2 {
		t.Errorf("a bit of a large entry: %+v", l.Damage)
	}
}

func TestTornTailIsNoDamage(t *testing.T) {
	w := walframetest.New(1, 2, prealloc)
	w.Put(1, "/registry/a/b", 100)
	at := w.Written()
	w.Put(1, "/registry/a/c", 3000)
	f := w.Files()
	clear(f[0].Data[(at/512+2)*512 : w.Written()])
	l := walframe.Walk(segments(f))
	if l.Torn == nil || l.Torn.Offset != int64(at) || len(l.Damage) != 0 || l.Start != walframe.StartRepairs || l.Whole() {
		t.Errorf("torn tail: %+v %+v %v", l.Torn, l.Damage, l.Start)
	}
}

func TestDamageKinds(t *testing.T) {
	tests := []struct {
		name    string
		change  func(w *walframetest.Writer, f []walframetest.File) []walframetest.File
		kind    walframe.DamageKind
		start   walframe.Start
		breaks  int
		missing uint64
	}{
		{"two-independent-bytes", func(w *walframetest.Writer, f []walframetest.File) []walframetest.File {
			f[0].Data[1500] ^= 0x10
			f[0].Data[4200] ^= 0x10
			return f
		}, walframe.BadChecksum, walframe.StartRefuses, 2, 1},
		{"zero-gap-with-records-behind", func(w *walframetest.Writer, f []walframetest.File) []walframetest.File {
			a, b := w.Frames[5], w.Frames[7]
			clear(f[2].Data[a:b])
			return f
		}, walframe.ZeroGap, walframe.StartDrops, 1, 2},
		{"cut-inside-record", func(w *walframetest.Writer, f []walframetest.File) []walframetest.File {
			f[2].Data = f[2].Data[:w.Frames[9]+100]
			return f
		}, walframe.CutShort, walframe.StartDrops, 1, 0},
		{"middle-segment-gone", func(w *walframetest.Writer, f []walframetest.File) []walframetest.File {
			return []walframetest.File{f[0], f[2]}
		}, walframe.SequenceGap, walframe.StartRefuses, 1, 5},
		{"segment-cut-at-record", func(w *walframetest.Writer, f []walframetest.File) []walframetest.File {
			f[0].Data = f[0].Data[:len(f[0].Data)-24]
			return f
		}, walframe.BadChain, walframe.StartRefuses, 1, 0},
		{"other-cluster", func(w *walframetest.Writer, f []walframetest.File) []walframetest.File {
			o := walframetest.New(0xa, 0xdd, prealloc)
			o.Cut()
			o.Cut()
			f[2] = walframetest.File{Name: f[2].Name, Data: o.Files()[2].Data}
			return f
		}, walframe.BadChain, walframe.StartRefuses, 2, 0},
		{"empty-newest-file", func(w *walframetest.Writer, f []walframetest.File) []walframetest.File {
			f[2].Data = nil
			return f
		}, walframe.NoHead, walframe.StartDrops, 1, 0},
		{"empty-only-file", func(w *walframetest.Writer, f []walframetest.File) []walframetest.File {
			f[0].Data = nil
			return f[:1]
		}, walframe.NoHead, walframe.StartRefuses, 1, 0},
		{"zeroed-only-file", func(w *walframetest.Writer, f []walframetest.File) []walframetest.File {
			clear(f[0].Data)
			return f[:1]
		}, walframe.NoHead, walframe.StartRefuses, 1, 0},
		{"garbage-at-the-head-of-the-only-file", func(w *walframetest.Writer, f []walframetest.File) []walframetest.File {
			for i := range 48 {
				f[0].Data[i] = 0x7e
			}
			return f[:1]
		}, walframe.BadLength, walframe.StartRefuses, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := sample()
			l := walframe.Walk(segments(tt.change(w, w.Files())))
			if len(l.Damage) == 0 {
				t.Fatal("nothing was found")
			}
			d := l.Damage[0]
			if d.Kind != tt.kind || l.Start != tt.start || l.Breaks != tt.breaks || d.Missing() != tt.missing {
				t.Errorf("got %v, start %v, %d breaks, %d missing: %+v", d.Kind, l.Start, l.Breaks, d.Missing(), l.Damage)
			}
		})
	}
}

// TestCommitBeyond has a log whose end was cut off so cleanly that only the
// state it carries tells.
func TestCommitBeyond(t *testing.T) {
	w := walframetest.New(1, 2, prealloc)
	w.Put(1, "/registry/a/b", 10)
	w.State(1, 1, 4)
	l := walframe.Walk(segments(w.Files()))
	if len(l.Damage) != 1 || l.Damage[0].Kind != walframe.CommitBeyond || l.Damage[0].Missing() != 3 {
		t.Errorf("commit beyond the log: %+v", l.Damage)
	}
}

// TestSearchIsBounded has a segment full of places that look like records with
// a long one behind each: the search must give up, and say so.
func TestSearchIsBounded(t *testing.T) {
	for _, forged := range []bool{false, true} {
		searchHostile(t, forged)
	}
}

func searchHostile(t *testing.T, forged bool) {
	t.Helper()
	head := sample().Files()[0]
	data := append([]byte(nil), head.Data[:64]...)
	size := 4 << 20
	for len(data) < size {
		// A believable record of 24 bytes, and behind it a length that reaches far.
		frame := binary.LittleEndian.AppendUint64(nil, 8)
		frame = append(frame, 0x08, 0x02, 0x10, 0x01, 0x1a, 0x02, 0x00, 0x00)
		if far := (size - len(data) - 64) / 8 * 8; far > 32 {
			frame = binary.LittleEndian.AppendUint64(frame, uint64(far))
			if forged { // and it begins as a record of that length does
				frame = append(frame, 0x08, 0x02, 0x10, 0x01, 0x1a)
				frame = binary.AppendUvarint(frame, uint64(far-5-len(binary.AppendUvarint(nil, uint64(far-8)))))
				frame = append(frame, make([]byte, (8-len(frame)%8)%8)...)
			}
		}
		data = append(data, frame...)
	}
	start := time.Now()
	l := walframe.Walk([]walframe.Segment{{Name: head.Name, Size: int64(len(data)), R: bytes.NewReader(data)}})
	if l.Whole() || time.Since(start) > 20*time.Second {
		t.Errorf("%v for %d bytes, damage %d", time.Since(start), len(data), len(l.Damage))
	}
}
