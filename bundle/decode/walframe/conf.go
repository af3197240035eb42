package walframe

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	maxText    = 4 << 10  // bytes of one name, URL or path
	maxURLs    = 64       // URLs of one member
	maxContext = 16 << 10 // bytes of a conf change's context that are decoded
)

// ConfType is the kind of a membership change.
type ConfType uint8

// The kinds of raftpb.ConfChangeType.
const (
	AddNode ConfType = iota
	RemoveNode
	UpdateNode
	AddLearner
)

func (t ConfType) String() string {
	switch t {
	case AddNode:
		return "add"
	case RemoveNode:
		return "remove"
	case UpdateNode:
		return "update"
	case AddLearner:
		return "add-learner"
	}
	return "unknown"
}

// A ConfChange is one membership change of the log, in log order.
type ConfChange struct {
	Index, Term uint64
	Type        ConfType
	NodeID      uint64
	// Proposal is the id under which a server proposed the change; 0 for the
	// ones written without a proposal: at bootstrap and by --force-new-cluster.
	Proposal uint64
	Context  bool       // the change carries the member's description; removals do not
	Member   MemberInfo // from the context
	Promote  bool       // an add that turns a learner into a voter
	V2       bool       // part of a ConfChangeV2
	Segment  string
	Offset   int64
	// Replaced is set when a later leader wrote another entry at this index.
	Replaced bool
	// Unverified is set when a damaged place lies right before it.
	Unverified bool
}

// MemberInfo describes a member as conf changes and v2 stores do.
type MemberInfo struct {
	ID         uint64
	Name       string // empty until the member has started once
	PeerURLs   []string
	ClientURLs []string
	IsLearner  bool
}

// memberJSON is etcd's JSON of a member, with isPromote of ConfigChangeContext.
type memberJSON struct {
	ID         uint64   `json:"id"`
	PeerURLs   []string `json:"peerURLs"`
	IsLearner  bool     `json:"isLearner"`
	Name       string   `json:"name"`
	ClientURLs []string `json:"clientURLs"`
	IsPromote  bool     `json:"isPromote"`
}

func parseMemberJSON(b []byte) (memberJSON, bool) {
	var m memberJSON
	if len(b) > maxContext || json.Unmarshal(b, &m) != nil {
		return memberJSON{}, false
	}
	m.Name = boundedString([]byte(m.Name), maxText)
	m.PeerURLs, m.ClientURLs = boundedList(m.PeerURLs), boundedList(m.ClientURLs)
	return m, true
}

func boundedList(in []string) []string {
	if len(in) > maxURLs {
		in = in[:maxURLs]
	}
	for i, s := range in {
		in[i] = boundedString([]byte(s), maxText)
	}
	return in
}

func (m memberJSON) info() MemberInfo {
	return MemberInfo{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, IsLearner: m.IsLearner}
}

// parseConfChange reads a raftpb.ConfChange.
func parseConfChange(b []byte) (c ConfChange, ok bool) {
	var context []byte
	ok = fields(b, func(num protowire.Number, wt protowire.Type, v uint64, p []byte) bool {
		switch {
		case num == 1 && wt == protowire.VarintType:
			c.Proposal = v
		case num == 2 && wt == protowire.VarintType && v <= uint64(AddLearner):
			c.Type = ConfType(v)
		case num == 3 && wt == protowire.VarintType:
			c.NodeID = v
		case num == 4 && wt == protowire.BytesType:
			context = p
		default:
			return false
		}
		return true
	})
	c.setContext(context)
	return c, ok
}

// parseConfChangeV2 reads a raftpb.ConfChangeV2 into single changes.
func parseConfChangeV2(b []byte) (out []ConfChange, ok bool) {
	var context []byte
	ok = fields(b, func(num protowire.Number, wt protowire.Type, _ uint64, p []byte) bool {
		switch {
		case num == 1 && wt == protowire.VarintType:
		case num == 2 && wt == protowire.BytesType && len(out) < maxConfIDs:
			c := ConfChange{V2: true}
			good := fields(p, func(num protowire.Number, wt protowire.Type, v uint64, _ []byte) bool {
				switch {
				case num == 1 && wt == protowire.VarintType && v <= uint64(AddLearner):
					c.Type = ConfType(v)
				case num == 2 && wt == protowire.VarintType:
					c.NodeID = v
				default:
					return false
				}
				return true
			})
			out = append(out, c)
			return good
		case num == 3 && wt == protowire.BytesType:
			context = p
		default:
			return false
		}
		return true
	})
	for i := range out {
		out[i].setContext(context)
	}
	return out, ok
}

func (c *ConfChange) setContext(b []byte) {
	if len(bytes.TrimSpace(b)) == 0 {
		return
	}
	m, ok := parseMemberJSON(b)
	if !ok {
		return
	}
	c.Context, c.Member, c.Promote = true, m.info(), m.IsPromote
}
