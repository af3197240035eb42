package etcdstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"coldplane/bundle/decode/boltpage"
	"google.golang.org/protobuf/encoding/protowire"
)

// Meta is the meta and the cluster bucket.
type Meta struct {
	ConsistentIndex    uint64
	Term               uint64 // absent before 3.5
	HasConsistentIndex bool
	HasTerm            bool
	ConfState          *ConfState // absent before 3.5
	StorageVersion     string     // since 3.6
	ClusterVersion     string
	Downgrade          *Downgrade
}

// ConfState is raft's membership as of ConsistentIndex. After a restore it still
// names the voters of the cluster the snapshot came from.
type ConfState struct {
	Voters         []uint64 `json:"voters"`
	Learners       []uint64 `json:"learners"`
	VotersOutgoing []uint64 `json:"voters_outgoing"`
	LearnersNext   []uint64 `json:"learners_next"`
	AutoLeave      bool     `json:"auto_leave"`
}

// Downgrade is the state of a cluster downgrade.
type Downgrade struct {
	TargetVersion string `json:"target-version"`
	Enabled       bool   `json:"enabled"`
}

// A Member of the members bucket.
type Member struct {
	ID         uint64
	Name       string // empty: it never started
	PeerURLs   []string
	ClientURLs []string
	Learner    bool
}

// Started reports whether the member has published itself.
func (m Member) Started() bool { return m.Name != "" }

// MemberID writes a member id the way etcdctl does.
func MemberID(id uint64) string { return strconv.FormatUint(id, 16) }

// An Alarm of the alarm bucket.
type Alarm struct {
	MemberID uint64
	Type     string // NOSPACE, CORRUPT, or a number
}

// A Lease of the lease bucket, in seconds.
type Lease struct{ ID, TTL, Remaining int64 }

// Auth is the state of etcd's own authentication.
type Auth struct {
	Enabled      bool
	Revision     uint64
	Users, Roles []string
}

const (
	maxSmall  = 10000  // members, removed members, alarms, users, roles
	maxLeases = 200000 // leases kept; all are counted
)

// small reads one of the buckets beside the key bucket.
func (s *Store) small(ctx context.Context, w *boltpage.Walk, l *boltpage.Leaves) error {
	return w.Scan(ctx, l, boltpage.ScanOptions{InOrder: true, Whole: smallBucket}, func(int) func(*boltpage.Elem) {
		return func(e *boltpage.Elem) {
			if err := s.smallRecord(l.Bucket, e.Key, e.Val); err != nil && len(s.Problems) < 100 {
				s.Problems = append(s.Problems, fmt.Sprintf("bucket %s, key %q: %v", l.Bucket, printable(e.Key), err))
			}
		}
	})
}

func printable(k []byte) string {
	for _, c := range k {
		if c < 0x20 || c > 0x7e {
			return fmt.Sprintf("%x", k[:min(len(k), 64)])
		}
	}
	return string(k[:min(len(k), 64)])
}

func (s *Store) smallRecord(bucket string, k, v []byte) error {
	switch bucket {
	case "meta":
		return s.metaRecord(string(k), v)
	case "cluster":
		return s.clusterRecord(string(k), v)
	case "members":
		return s.memberRecord(k, v)
	case "members_removed":
		id, err := strconv.ParseUint(string(k), 16, 64)
		if err == nil && len(s.Removed) < maxSmall {
			s.Removed = append(s.Removed, id)
		}
		return err
	case "alarm":
		return s.alarmRecord(k)
	case "lease":
		return s.leaseRecord(k, v)
	case "auth":
		switch string(k) {
		case "authEnabled":
			s.Auth.Enabled = len(v) == 1 && v[0] == 1
		case "authRevision":
			if len(v) == 8 {
				s.Auth.Revision = binary.BigEndian.Uint64(v)
			}
		}
	case "authUsers":
		if len(s.Auth.Users) < maxSmall {
			s.Auth.Users = append(s.Auth.Users, string(k))
		}
	case "authRoles":
		if len(s.Auth.Roles) < maxSmall {
			s.Auth.Roles = append(s.Auth.Roles, string(k))
		}
	}
	return nil
}

func (s *Store) metaRecord(k string, v []byte) error {
	number := func() (uint64, error) {
		if len(v) != 8 {
			return 0, fmt.Errorf("%d bytes, want 8", len(v))
		}
		return binary.BigEndian.Uint64(v), nil
	}
	rev := func() (int64, error) {
		main, _, _, ok := parseRevKey(v)
		if !ok {
			return -1, fmt.Errorf("not a revision")
		}
		return main, nil
	}
	var err error
	switch k {
	case "consistent_index":
		s.Meta.ConsistentIndex, err = number()
		s.Meta.HasConsistentIndex = err == nil
	case "term":
		s.Meta.Term, err = number()
		s.Meta.HasTerm = err == nil
	case "confState":
		var c ConfState
		if err = json.Unmarshal(v, &c); err == nil {
			s.Meta.ConfState = &c
		}
	case "storageVersion":
		s.Meta.StorageVersion = string(v)
	case "finishedCompactRev":
		s.Finished, err = rev()
	case "scheduledCompactRev":
		s.Scheduled, err = rev()
	}
	return err
}

func (s *Store) clusterRecord(k string, v []byte) error {
	switch k {
	case "clusterVersion":
		s.Meta.ClusterVersion = string(v)
	case "downgrade":
		var d Downgrade
		if err := json.Unmarshal(v, &d); err != nil {
			return err
		}
		s.Meta.Downgrade = &d
	}
	return nil
}

func (s *Store) memberRecord(k, v []byte) error {
	var m struct {
		ID         uint64   `json:"id"`
		PeerURLs   []string `json:"peerURLs"`
		IsLearner  bool     `json:"isLearner"`
		Name       string   `json:"name"`
		ClientURLs []string `json:"clientURLs"`
	}
	if err := json.Unmarshal(v, &m); err != nil {
		return err
	}
	if id, err := strconv.ParseUint(string(k), 16, 64); err != nil || id != m.ID {
		return fmt.Errorf("key and id %x differ", m.ID)
	}
	if len(s.Members) < maxSmall {
		s.Members = append(s.Members, Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.IsLearner})
	}
	return nil
}

// alarmRecord decodes etcdserverpb.AlarmMember {1 memberID, 2 alarm}, which is
// the key of an alarm.
func (s *Store) alarmRecord(b []byte) error {
	var a Alarm
	kind := uint64(0)
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || typ != protowire.VarintType {
			return fmt.Errorf("not an alarm record")
		}
		v, m := protowire.ConsumeVarint(b[n:])
		if m < 0 {
			return fmt.Errorf("not an alarm record")
		}
		switch num {
		case 1:
			a.MemberID = v
		case 2:
			kind = v
		}
		b = b[n+m:]
	}
	switch kind {
	case 1:
		a.Type = "NOSPACE"
	case 2:
		a.Type = "CORRUPT"
	default:
		a.Type = strconv.FormatUint(kind, 10)
	}
	if len(s.Alarms) < maxSmall {
		s.Alarms = append(s.Alarms, a)
	}
	return nil
}

// leaseRecord decodes leasepb.Lease {1 ID, 2 TTL, 3 RemainingTTL}.
func (s *Store) leaseRecord(k, b []byte) error {
	s.LeaseTotal++
	if len(k) != 8 {
		return fmt.Errorf("lease id of %d bytes", len(k))
	}
	l := Lease{ID: int64(binary.BigEndian.Uint64(k))}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || typ != protowire.VarintType {
			return fmt.Errorf("not a lease record")
		}
		v, m := protowire.ConsumeVarint(b[n:])
		if m < 0 {
			return fmt.Errorf("not a lease record")
		}
		switch num {
		case 2:
			l.TTL = int64(v)
		case 3:
			l.Remaining = int64(v)
		}
		b = b[n+m:]
	}
	if len(s.Leases) < maxLeases {
		s.Leases = append(s.Leases, l)
	}
	return nil
}

func (s *Store) sortSmall() {
	slices.SortFunc(s.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	slices.Sort(s.Removed)
	slices.SortFunc(s.Alarms, func(a, b Alarm) int {
		return cmp.Or(cmp.Compare(a.MemberID, b.MemberID), cmp.Compare(a.Type, b.Type))
	})
}
