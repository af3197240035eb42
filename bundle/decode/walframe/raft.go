package walframe

import "google.golang.org/protobuf/encoding/protowire"

// HardState is raft's own durable state: the newest term the member has seen,
// whom it voted for in it, and the highest index it knows to be committed.
type HardState struct {
	Term, Vote, Commit uint64
}

// ConfState is a raft membership: ids of those who vote and those who only
// learn. Outgoing and Next are set only during a joint change.
type ConfState struct {
	Voters, Learners, Outgoing, Next []uint64
	AutoLeave                        bool
}

// An Identity is what the first record of every segment names: the member the
// log belongs to and its cluster. It is the only place of a data directory
// that holds the cluster id.
type Identity struct {
	Node, Cluster uint64
}

// fields calls f for every field of a protobuf message, with v for varints and
// b for length-delimited fields, until f returns false. It returns false when
// the message is malformed or f said stop. Fixed and group fields are
// malformed here: none of the messages read has one.
func fields(msg []byte, f func(num protowire.Number, wt protowire.Type, v uint64, b []byte) bool) bool {
	for len(msg) > 0 {
		num, wt, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return false
		}
		msg = msg[n:]
		var v uint64
		var b []byte
		switch wt {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(msg)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(msg)
		default:
			return false
		}
		if n < 0 {
			return false
		}
		msg = msg[n:]
		if !f(num, wt, v, b) {
			return false
		}
	}
	return true
}

func parseIdentity(b []byte) (id Identity, ok bool) {
	ok = fields(b, func(num protowire.Number, wt protowire.Type, v uint64, _ []byte) bool {
		if wt != protowire.VarintType {
			return false
		}
		switch num {
		case 1:
			id.Node = v
		case 2:
			id.Cluster = v
		default:
			return false
		}
		return true
	})
	return id, ok
}

func parseHardState(b []byte) (s HardState, ok bool) {
	ok = fields(b, func(num protowire.Number, wt protowire.Type, v uint64, _ []byte) bool {
		if wt != protowire.VarintType {
			return false
		}
		switch num {
		case 1:
			s.Term = v
		case 2:
			s.Vote = v
		case 3:
			s.Commit = v
		default:
			return false
		}
		return true
	})
	return s, ok
}

// maxConfIDs bounds the ids kept of one ConfState; etcd clusters have a dozen.
const maxConfIDs = 1024

func parseConfState(b []byte) (c ConfState, ok bool) {
	add := func(list *[]uint64, wt protowire.Type, v uint64, p []byte) bool {
		if wt == protowire.VarintType {
			if len(*list) < maxConfIDs {
				*list = append(*list, v)
			}
			return true
		}
		for len(p) > 0 { // packed
			v, n := protowire.ConsumeVarint(p)
			if n < 0 {
				return false
			}
			p = p[n:]
			if len(*list) < maxConfIDs {
				*list = append(*list, v)
			}
		}
		return true
	}
	ok = fields(b, func(num protowire.Number, wt protowire.Type, v uint64, p []byte) bool {
		switch num {
		case 1:
			return add(&c.Voters, wt, v, p)
		case 2:
			return add(&c.Learners, wt, v, p)
		case 3:
			return add(&c.Outgoing, wt, v, p)
		case 4:
			return add(&c.Next, wt, v, p)
		case 5:
			c.AutoLeave = v != 0
			return wt == protowire.VarintType
		}
		return false
	})
	return c, ok
}

// A SnapshotMark is a log's record that the store was saved up to Index.
// ConfState is nil before etcd 3.5.
type SnapshotMark struct {
	Index, Term uint64
	ConfState   *ConfState
	Segment     string
	Offset      int64
}

func parseSnapshotMark(b []byte) (s SnapshotMark, ok bool) {
	ok = fields(b, func(num protowire.Number, wt protowire.Type, v uint64, p []byte) bool {
		switch {
		case num == 1 && wt == protowire.VarintType:
			s.Index = v
		case num == 2 && wt == protowire.VarintType:
			s.Term = v
		case num == 3 && wt == protowire.BytesType:
			c, good := parseConfState(p)
			s.ConfState = &c
			return good
		default:
			return false
		}
		return true
	})
	return s, ok
}

// rawEntry is a raftpb.Entry whose data is still encoded.
type rawEntry struct {
	typ         uint64
	term, index uint64
	data        []byte
	dataLen     int64
}

const (
	entryNormal       = 0
	entryConfChange   = 1
	entryConfChangeV2 = 2
)

// parseEntry reads a raftpb.Entry. When cut is set b is only the beginning of
// length bytes and the entry's data with it.
func parseEntry(b []byte, length int64, cut bool) (e rawEntry, ok bool) {
	used := int64(0)
	for len(b) > 0 {
		num, wt, n := protowire.ConsumeTag(b)
		if n < 0 || num < 1 || num > 4 {
			return e, false
		}
		b, used = b[n:], used+int64(n)
		if num == 4 {
			if wt != protowire.BytesType {
				return e, false
			}
			l, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return e, false
			}
			b, used = b[n:], used+int64(n)
			if l > 1<<56 || int64(l) > length-used || !cut && int64(l) > int64(len(b)) {
				return e, false
			}
			e.dataLen = int64(l)
			have := min(int64(len(b)), e.dataLen)
			e.data = b[:have]
			b, used = b[have:], used+e.dataLen
			continue
		}
		if wt != protowire.VarintType {
			return e, false
		}
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return e, false
		}
		b, used = b[n:], used+int64(n)
		switch num {
		case 1:
			e.typ = v
		case 2:
			e.term = v
		case 3:
			e.index = v
		}
	}
	return e, e.typ <= entryConfChangeV2 && e.index != 0
}
