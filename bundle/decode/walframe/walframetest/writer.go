// Package walframetest writes write-ahead logs and raft snapshot files for
// tests, byte for byte in etcd's format, from a few readable calls. Only tests
// import it.
package walframetest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/encoding/protowire"

	"coldplane/bundle/decode/walframe"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A File is a finished segment or snapshot.
type File struct {
	Name string
	Data []byte
}

// Writer builds one log.
type Writer struct {
	id       walframe.Identity
	prealloc int
	files    []File
	cur      []byte
	name     string
	seq      uint64
	crc      uint32
	index    uint64
	state    []byte
	// Frames are the offsets of all records of the current segment.
	Frames []int
}

// New starts a log of the given member. Segments that are not cut are filled
// up with zeros to prealloc bytes.
func New(node, cluster uint64, prealloc int) *Writer {
	w := &Writer{id: walframe.Identity{Node: node, Cluster: cluster}, prealloc: prealloc}
	w.open(0)
	w.Mark(0, 0)
	return w
}

func (w *Writer) open(index uint64) {
	w.name = fmt.Sprintf("%016x-%016x.wal", w.seq, index)
	w.cur, w.Frames = nil, nil
	w.record(4, nil)
	w.record(1, Uints(1, w.id.Node, 2, w.id.Cluster))
	if w.state != nil {
		w.record(3, w.state)
	}
}

// Cut closes the segment as etcd does and opens the next one.
func (w *Writer) Cut() {
	w.files = append(w.files, File{w.name, w.cur})
	w.seq++
	w.open(w.index + 1)
}

// Files returns the log as it would lie in a directory.
func (w *Writer) Files() []File {
	last := append([]byte(nil), w.cur...)
	if n := w.prealloc - len(last); n > 0 {
		last = append(last, make([]byte, n)...)
	}
	return append(append([]File(nil), w.files...), File{w.name, last})
}

// Written is how much of the current segment holds records.
func (w *Writer) Written() int { return len(w.cur) }

func (w *Writer) record(typ uint64, data []byte) {
	w.crc = crc32.Update(w.crc, castagnoli, data)
	rec := Uints(1, typ, 2, uint64(w.crc))
	if data != nil {
		rec = Bytes(rec, 3, data)
	}
	w.Frames = append(w.Frames, len(w.cur))
	field := uint64(len(rec))
	pad := (8 - len(rec)%8) % 8
	if pad > 0 {
		field |= uint64(0x80|pad) << 56
	}
	w.cur = binary.LittleEndian.AppendUint64(w.cur, field)
	w.cur = append(append(w.cur, rec...), make([]byte, pad)...)
}

// State writes a hard state.
func (w *Writer) State(term, vote, commit uint64) {
	w.state = Uints(1, term, 2, vote, 3, commit)
	w.record(3, w.state)
}

// Mark writes a snapshot record.
func (w *Writer) Mark(index, term uint64, voters ...uint64) {
	m := Uints(1, index, 2, term)
	if len(voters) > 0 {
		m = Bytes(m, 3, confState(voters, nil))
	}
	w.record(5, m)
	w.index = max(w.index, index)
}

// Entry writes an entry of a type (0 normal, 1 and 2 conf changes) at the index.
func (w *Writer) Entry(term, index, typ uint64, data []byte) {
	e := Uints(1, typ, 2, term, 3, index)
	if data != nil {
		e = Bytes(e, 4, data)
	}
	w.record(2, e)
	w.index = index
}

// Put writes a put with a value of the given size at the next index.
func (w *Writer) Put(term uint64, key string, size int) {
	value := make([]byte, size)
	for i := range value {
		value[i] = byte('a' + i%26)
	}
	w.Entry(term, w.index+1, 0, Request(walframe.Put, Bytes(Bytes(nil, 1, []byte(key)), 2, value)))
}

// Leader writes the empty entry a new leader begins with.
func (w *Writer) Leader(term uint64) { w.Entry(term, w.index+1, 0, nil) }

// Conf writes a conf change; m is nil for one without context.
func (w *Writer) Conf(term uint64, typ walframe.ConfType, id uint64, m *walframe.MemberInfo, promote bool) {
	c := Uints(1, 7000+w.index, 2, uint64(typ), 3, id)
	if m != nil {
		context, err := json.Marshal(map[string]any{"id": id, "peerURLs": m.PeerURLs, "name": m.Name,
			"isLearner": m.IsLearner, "isPromote": promote})
		if err != nil {
			panic(err) // strings only
		}
		c = Bytes(c, 4, context)
	}
	w.Entry(term, w.index+1, 1, c)
}

// Force writes the removal of a member as --force-new-cluster does: without a
// proposal.
func (w *Writer) Force(term, id uint64) {
	w.Entry(term, w.index+1, 1, Uints(1, 0, 2, uint64(walframe.RemoveNode), 3, id))
}

// Alarm writes an alarm request.
func (w *Writer) Alarm(term, member uint64, typ walframe.AlarmType, raise bool) {
	action := uint64(2)
	if raise {
		action = 1
	}
	w.Entry(term, w.index+1, 0, Request(walframe.Alarm, Uints(1, action, 2, member, 3, uint64(typ))))
}

// Index is the last index written.
func (w *Writer) Index() uint64 { return w.index }

// Request wraps a request of the given kind into an InternalRaftRequest.
func Request(kind walframe.Kind, body []byte) []byte {
	b := Bytes(nil, protowire.Number(kind), body)
	return Bytes(b, 100, Uints(1, 7587))
}

// Uints encodes varint fields given as number, value pairs.
func Uints(pairs ...uint64) []byte {
	var b []byte
	for i := 0; i+1 < len(pairs); i += 2 {
		b = protowire.AppendTag(b, protowire.Number(pairs[i]), protowire.VarintType)
		b = protowire.AppendVarint(b, pairs[i+1])
	}
	return b
}

// Bytes appends a length-delimited field.
func Bytes(b []byte, num protowire.Number, p []byte) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendBytes(b, p)
}

func confState(voters, learners []uint64) []byte {
	var b []byte
	for _, v := range voters {
		b = append(b, Uints(1, v)...)
	}
	for _, v := range learners {
		b = append(b, Uints(2, v)...)
	}
	return append(b, Uints(5, 0)...)
}

// Snap makes a raft snapshot file with the given members, and with keys as
// somebody writes them over the v2 API.
func Snap(term, index uint64, members []walframe.MemberInfo, removed []uint64, version string, v2keys ...string) File {
	var voters, learners []uint64
	kids := map[string]any{}
	for _, m := range members {
		if m.IsLearner {
			learners = append(learners, m.ID)
		} else {
			voters = append(voters, m.ID)
		}
		path := fmt.Sprintf("/0/members/%x", m.ID)
		children := map[string]any{"raftAttributes": leaf(path+"/raftAttributes", map[string]any{"peerURLs": m.PeerURLs, "isLearner": m.IsLearner})}
		if m.Name != "" {
			children["attributes"] = leaf(path+"/attributes", map[string]any{"name": m.Name, "clientURLs": m.ClientURLs})
		}
		kids[fmt.Sprintf("%x", m.ID)] = dir(path, children)
	}
	gone := map[string]any{}
	for _, id := range removed {
		gone[fmt.Sprintf("%x", id)] = map[string]any{"Path": fmt.Sprintf("/0/removed_members/%x", id), "Value": "", "Children": nil}
	}
	keys := map[string]any{}
	for _, k := range v2keys {
		keys[k] = map[string]any{"Path": "/1/" + k, "Value": "x", "Children": nil}
	}
	root := dir("/", map[string]any{
		"0": dir("/0", map[string]any{
			"members": dir("/0/members", kids), "removed_members": dir("/0/removed_members", gone),
			"version": map[string]any{"Path": "/0/version", "Value": version, "Children": nil}}),
		"1": dir("/1", keys),
	})
	store, err := json.Marshal(map[string]any{"Root": root, "CurrentIndex": index, "CurrentVersion": 2})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return SnapOf(term, index, voters, learners, store)
}

// SnapOf makes a raft snapshot file around any v2 store text.
func SnapOf(term, index uint64, voters, learners []uint64, store []byte) File {
	meta := Bytes(nil, 1, confState(voters, learners))
	meta = append(meta, Uints(2, index, 3, term)...)
	data := Bytes(Bytes(nil, 1, store), 2, meta)
	return File{
		Name: fmt.Sprintf("%016x-%016x.snap", term, index),
		Data: Bytes(Uints(1, uint64(crc32.Checksum(data, castagnoli))), 2, data),
	}
}

func dir(path string, children map[string]any) map[string]any {
	return map[string]any{"Path": path, "Value": "", "Children": children}
}

func leaf(path string, v any) map[string]any {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return map[string]any{"Path": path, "Value": string(b), "Children": nil}
}
