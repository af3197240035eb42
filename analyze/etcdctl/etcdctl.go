// Package etcdctl holds facts out of saved etcdctl output: member list,
// endpoint status, endpoint health, endpoint hashkv and alarm list, as tables,
// comma-separated lines, JSON or "fields", in the shapes of etcd 3.3 to 3.7.
//
// What an output is decides its content, not its file name. It knows no rule.
package etcdctl

import (
	"strings"

	"coldplane/bundle"
)

// Saved is every output found on a node (or beside the nodes).
type Saved struct {
	Members  []MemberList
	Status   []Status
	Health   []Health
	Hashes   []Hash
	Alarms   []Alarm
	Failures []Failure
	// NoAlarms are alarm lists that were saved and empty, without an error
	// beside them: the command ran and no alarm was set.
	NoAlarms []bundle.Ref
	// Unread are files that could not be read or whose content is none of
	// these outputs.
	Unread []Unread
}

// A MemberList is one answer to "member list".
type MemberList struct {
	Ref       bundle.Ref // its first line
	ClusterID uint64     // 0 when the format does not give it
	MemberID  uint64     // who answered; 0 when unknown
	RaftTerm  uint64
	Endpoint  string // from a recorded command line, "" otherwise
	Members   []Member
}

// A Member is one row of a member list.
type Member struct {
	ID         uint64
	Name       string
	Started    bool
	PeerURLs   []string
	ClientURLs []string
	Learner    bool
	Ref        bundle.Ref
	Text       string // the row as it stands there, for an excerpt
}

// A Status is one row of "endpoint status": proof that the member answered.
type Status struct {
	Endpoint  string
	ID        uint64
	ClusterID uint64 // 0 when the format does not give it
	Version   string
	Size      int64 // bytes, -1 when not given; rounded in tables
	InUse     int64
	Leader    uint64 // id of the leader; 0 when there is none or it is not given
	IsLeader  bool
	Learner   bool
	Revision  int64 // 0 when the format does not give it
	Term      uint64
	Index     uint64
	Applied   uint64 // 0 before 3.4
	Errors    string
	Exact     bool // JSON or fields: sizes, cluster id, leader and revision are given
	Batch     int  // rows of one answer have the same number: taken within seconds
	Ref       bundle.Ref
	Text      string
}

// A Health is one row of "endpoint health".
type Health struct {
	Endpoint string
	Healthy  bool
	Error    string
	Ref      bundle.Ref
	Text     string
}

// LearnerOnly reports whether the endpoint answered, and was called unhealthy
// only because a learner does not serve reads.
func (h Health) LearnerOnly() bool {
	return !h.Healthy && strings.Contains(h.Error, "rpc not supported for learner")
}

// Answered reports whether the endpoint gave any answer at all.
func (h Health) Answered() bool {
	return h.Healthy || strings.Contains(h.Error, "etcdserver:") || strings.Contains(h.Error, "NOSPACE") || strings.Contains(h.Error, "alarm")
}

// A Hash is one row of "endpoint hashkv".
type Hash struct {
	Endpoint        string
	ClusterID, ID   uint64 // 0 when the format does not give them
	Hash            uint64
	HashRevision    int64 // 0 when not given
	CompactRevision int64 // 0 when not given
	Revision        int64 // of the store at that time; 0 when not given
	Batch           int
	Ref             bundle.Ref
	Text            string
}

// An Alarm is one row of "alarm list".
type Alarm struct {
	ID   uint64
	Type string // NOSPACE, CORRUPT
	Ref  bundle.Ref
	Text string
}

// A Failure is an error that etcdctl printed.
type Failure struct {
	Endpoint string // "" when the line names none
	Error    string
	Ref      bundle.Ref
}

// An Unread is a file that gave nothing, and why.
type Unread struct {
	Ref    bundle.Ref
	Reason bundle.Reason
	Detail string
}

// Empty reports that nothing of use was found.
func (s *Saved) Empty() bool {
	return len(s.Members)+len(s.Status)+len(s.Health)+len(s.Hashes)+len(s.Alarms)+len(s.Failures)+len(s.NoAlarms) == 0
}
