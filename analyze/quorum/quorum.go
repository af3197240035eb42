// Package quorum joins what all evidence says about the members of an etcd
// cluster: who is listed where, who votes, who was seen alive or silent, and
// what follows for the next failures. It knows no rule.
//
// Its sources are the databases, the write-ahead logs and raft snapshots of the
// data directories in use, and saved etcdctl output. None of them is believed
// alone: a restored database names members that never started, etcd up to 3.5
// decides membership in the v2 store and not in the database, and a member
// list may hold members that are long gone.
package quorum

import (
	"cmp"
	"coldplane/analyze/etcdctl"
	"net/url"
	"slices"
	"strings"
	"time"

	"coldplane/bundle"
)

// A View is the clusters found; usually one.
type View struct {
	Clusters []*Cluster // the one with most sources first

	// Refusing holds the rows of "endpoint health" when several endpoints were
	// asked and none was healthy, for no fault of the one who asked.
	Refusing []etcdctl.Health
}

// SourceKind says what a source is.
type SourceKind string

// The kinds of sources.
const (
	List  SourceKind = "member list" // etcdctl's
	Store SourceKind = "database"    // members bucket
	V2    SourceKind = "v2 store"    // .snap and log: what decides up to 3.5
)

// A Source is one record of a membership.
type Source struct {
	Kind    SourceKind
	Node    *bundle.Node
	Ref     bundle.Ref // of the record as a whole
	Cluster uint64     // cluster id, 0 when the source does not hold it
	Self    uint64     // member the source belongs to, 0 when unknown
	Members []Claim
	Removed []uint64
	Index   uint64 // raft index it stands for; 0 when unknown
	Term    uint64
	Version string // cluster version it names, "" without
	// Snapshot marks a saved file: not a data directory in use.
	Snapshot bool
	// Restored marks a database whose members a restore wrote and no member has
	// published itself since.
	Restored bool
}

// A Claim is what one source says about one member.
type Claim struct {
	ID         uint64
	Name       string
	PeerURLs   []string
	ClientURLs []string
	Learner    bool
	Started    bool
	Ref        bundle.Ref
	Text       string // for an excerpt
}

// Find returns the claim about a member, or nil.
func (s *Source) Find(id uint64) *Claim {
	for i := range s.Members {
		if s.Members[i].ID == id {
			return &s.Members[i]
		}
	}
	return nil
}

// Life is whether a member was seen alive when the evidence was taken.
type Life int

// The states of life.
const (
	Unknown Life = iota // nothing says so: not dead
	Silent              // did not answer, or peers call it gone
	Alive
)

func (l Life) String() string {
	return [...]string{"unknown", "not answering", "alive"}[l]
}

// A Proof is one observation about a member's life.
type Proof struct {
	Life Life
	Ref  bundle.Ref
	Text string
	At   time.Time // when it was seen; zero: when the evidence was taken
}

// A Member is one member of a cluster, by all its sources.
type Member struct {
	ID         uint64
	Name       string
	PeerURLs   []string
	ClientURLs []string
	Learner    bool // does not vote, by the source that decides
	Started    bool
	// Ghost says that the record is there and the member is not: removed, or
	// replaced by another id at the same address. Ghosts do not vote.
	Ghost  bool
	Why    string // why it is taken for a ghost
	Twin   uint64 // the id that lives at its address, 0 without
	Life   Life
	Proofs []Proof
	Claims []Seen
}

// Seen is a claim with its source.
type Seen struct {
	Source *Source
	*Claim
}

// Home is the node of the evidence that holds the member's data, or nil.
func (m *Member) Home() *bundle.Node {
	for _, s := range m.Claims {
		if s.Source.Self == m.ID && s.Source.Node != nil && !s.Source.Snapshot {
			return s.Source.Node
		}
	}
	return nil
}

// Label names a member for a message: name and id.
func (m *Member) Label() string {
	if m.Name == "" {
		if len(m.PeerURLs) > 0 {
			return "the member at " + Host(m.PeerURLs[0]) + " (" + ID(m.ID) + ")"
		}
		return ID(m.ID)
	}
	return m.Name + " (" + ID(m.ID) + ")"
}

// NeverStarted reports whether no source knows the member's name: it publishes
// it when it starts for the first time, and a restore writes it.
func (m *Member) NeverStarted() bool { return m.Name == "" && !m.Started && !m.Ghost }

// Voter reports whether the member counts for the quorum.
func (m *Member) Voter() bool { return !m.Learner && !m.Ghost }

// Claim returns what a kind of source says about the member, the first of it.
func (m *Member) Claim(k SourceKind) *Seen {
	for i := range m.Claims {
		if m.Claims[i].Source.Kind == k {
			return &m.Claims[i]
		}
	}
	return nil
}

// A Cluster is one etcd cluster.
type Cluster struct {
	ID      uint64 // 0 when no source holds it
	Members []*Member
	Sources []*Source // the one that decides first
	// V2Decides says that the servers take their members from the v2 store: some
	// member runs 3.5 or older, or nothing says that none does.
	V2Decides bool
	Versions  []Version
	Leader    uint64 // seen by an answering member, 0 without
	LeaderRef bundle.Ref
}

// A Version is an etcd version and where it was read.
type Version struct {
	Member uint64 // 0 when it cannot be told
	Node   string
	Text   string
	Server bool // of a server; otherwise of the cluster or the storage
	Ref    bundle.Ref
}

// Member returns the member of an id, or nil.
func (c *Cluster) Member(id uint64) *Member {
	for _, m := range c.Members {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// Voters returns the members that vote.
func (c *Cluster) Voters() []*Member {
	var out []*Member
	for _, m := range c.Members {
		if m.Voter() {
			out = append(out, m)
		}
	}
	return out
}

// Sum is the arithmetic of a cluster.
type Sum struct {
	Voters, Quorum         int
	Alive, Silent, Unknown int
}

// Sum counts the voters.
func (c *Cluster) Sum() Sum {
	var s Sum
	for _, m := range c.Voters() {
		s.Voters++
		switch m.Life {
		case Alive:
			s.Alive++
		case Silent:
			s.Silent++
		default:
			s.Unknown++
		}
	}
	s.Quorum = s.Voters/2 + 1
	return s
}

// Tolerance is how many more voters may be lost: at worst, when none of the
// unknown ones lives, and at best.
func (s Sum) Tolerance() (worst, best int) {
	return s.Alive - s.Quorum, s.Voters - s.Silent - s.Quorum
}

// ID writes a member or cluster id the way etcdctl does.
func ID(id uint64) string { return hex(id) }

func hex(id uint64) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	i := len(b)
	for {
		i--
		b[i] = digits[id&15]
		if id >>= 4; id == 0 {
			return string(b[i:])
		}
	}
}

// Host is the host of a URL or of HOST:PORT, in lower case.
func Host(u string) string {
	if strings.Contains(u, "://") {
		if p, err := url.Parse(u); err == nil {
			return strings.ToLower(p.Hostname())
		}
	}
	if p, err := url.Parse("x://" + u); err == nil {
		return strings.ToLower(p.Hostname())
	}
	return strings.ToLower(u)
}

// Address is HOST:PORT of a URL or endpoint, in lower case.
func Address(u string) string {
	if i := strings.Index(u, "://"); i >= 0 {
		u = u[i+3:]
	}
	u, _, _ = strings.Cut(u, "/")
	return strings.ToLower(u)
}

// Loopback reports whether a host is the machine itself.
func Loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

func sortMembers(ms []*Member) {
	slices.SortStableFunc(ms, func(a, b *Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
}

// Disagree reports whether sources of the present differ about a member's
// vote.
func Disagree(m *Member) bool {
	voter, learner := false, false
	for _, x := range m.Claims {
		if x.Source.Snapshot || x.Source.Restored {
			continue
		}
		if x.Learner {
			learner = true
		} else {
			voter = true
		}
	}
	return voter && learner
}
