package walframe

// A Log is what a member's write-ahead log says, and how whole it is. Every
// list is bounded; what was left out is counted.
type Log struct {
	Segments []SegmentInfo
	OddNames []string // names that are not those of a segment, sorted

	Identity   Identity
	Identified bool // an identity was read

	State      HardState // the newest; zero when none was read
	States     int64     // how many hard states were read
	FirstIndex uint64    // of the entries that are still there; 0 without entries
	LastIndex  uint64    // of the last entry, or of a newer snapshot mark
	LastTerm   uint64    // of the last entry or that snapshot mark
	Entries    int64     // whole entries read, replaced ones included
	Replaced   int64     // entries that a later leader overwrote
	Unverified int64     // entries right after a damaged place, whose bytes no checksum covers
	Damaged    int64     // records whose checksum does not fit

	Kinds       map[Kind]KindStat
	Prefixes    map[string]PrefixStat // writes by key prefix, at most maxPrefixes and OtherPrefix
	Compactions CompactionStat
	// V2UserRequests counts v2 requests that are neither a member's attributes
	// nor the cluster version: somebody used the v2 API.
	V2UserRequests int64

	Marks       List[SnapshotMark]
	ConfChanges List[ConfChange]
	Alarms      List[AlarmEvent]
	Attrs       List[AttrEvent]
	Versions    List[VersionEvent]
	Terms       List[TermSpan]

	Damage        []Damage // by place; never empty when something was lost
	DamageDropped int
	Breaks        int    // independent places where the log is damaged
	Torn          *Torn  // the last record was not written to its end; normal after a crash
	Trimmed       bool   // the newest segment ends right after a record, without preallocated space
	Start         Start  // what etcd would do with these files
	Tail          string // name of the newest segment
}

// Whole tells that nothing was found missing: no damage, no torn record. A
// trimmed tail is no fault by itself, see Trimmed.
func (l *Log) Whole() bool { return len(l.Damage) == 0 && l.Torn == nil }

// SegmentInfo is what one file of the log holds.
type SegmentInfo struct {
	Name       string
	Seq, Index uint64 // from the name
	Size       int64
	Written    int64 // bytes up to the end of the last record
	Records    int64
	Entries    int64
	FirstIndex uint64 // of its entries; 0 without any
	LastIndex  uint64
	End        End
}

// End is how a segment ends.
type End uint8

// The ways a segment ends.
const (
	EndUnread       End = iota // not reached
	EndExact                   // the file ends with a record
	EndPreallocated            // only zero bytes follow the last record
	EndTorn                    // a record written in part, then nothing
	EndDamaged                 // what follows could not be read as records
)

func (e End) String() string {
	switch e {
	case EndExact:
		return "exact"
	case EndPreallocated:
		return "preallocated"
	case EndTorn:
		return "torn"
	case EndDamaged:
		return "damaged"
	}
	return "unread"
}

// Start is what an etcd server would do with the log at its next start, as
// far as the log decides it.
type Start uint8

// The outcomes of a start.
const (
	StartNone    Start = iota // there is no log
	StartOpens                // reads all of it
	StartRepairs              // cuts the torn record off and goes on
	StartDrops                // starts, and silently loses what follows a damaged place
	StartRefuses              // stops with an error
)

func (s Start) String() string {
	switch s {
	case StartOpens:
		return "opens"
	case StartRepairs:
		return "repairs"
	case StartDrops:
		return "drops"
	case StartRefuses:
		return "refuses"
	}
	return "none"
}

// DamageKind says what is wrong at a place of the log.
type DamageKind uint8

// What can be wrong.
const (
	BadChecksum     DamageKind = iota + 1 // a record's bytes do not fit its checksum
	BadChain                              // a segment does not go on where the one before it ended
	BadLength                             // a length field that cannot be right
	BadRecord                             // bytes that are no record
	BadType                               // a record of unknown type
	BadContent                            // a record whose checksum fits but whose content is not what its type says
	BadPadding                            // length byte or padding not as etcd writes them; the record itself is whole
	CutShort                              // the file ends inside a record
	ZeroGap                               // zero bytes, and then more data
	ZeroSector                            // a sector of a record is zero, and records follow
	Unreadable                            // the file could not be read
	SequenceGap                           // segments are missing between two others
	SequenceTwice                         // two segments have the same sequence number
	IndexGap                              // entries are missing between two others
	TermBack                              // an entry or state of an older term than the one before
	IdentityDiffers                       // two segments name different members or clusters
	CommitBeyond                          // more was committed than the log holds
	NoHead                                // a segment does not begin with checksum and identity
)

func (k DamageKind) String() string {
	names := [...]string{"", "bad-checksum", "bad-chain", "bad-length", "bad-record", "bad-type", "bad-content",
		"bad-padding", "cut-short", "zero-gap", "zero-sector", "unreadable", "sequence-gap", "sequence-twice",
		"index-gap", "term-back", "identity-differs", "commit-beyond-log", "no-head"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// A Damage is one place where the log is not whole.
type Damage struct {
	Kind    DamageKind
	Segment string
	Offset  int64 // where it begins
	End     int64 // where records go on; the segment's size when they do not
	// Records counts damaged records that could still be told apart.
	Records int64
	// Before and After are the last entry index before and the first after it;
	// After is 0 when no entry follows.
	Before, After uint64
	// Resumed says that records were found and read after it.
	Resumed bool
}

// Missing is how many entries are gone between Before and After, 0 if unknown.
func (d Damage) Missing() uint64 {
	if d.After == 0 || d.After <= d.Before+1 {
		return 0
	}
	return d.After - d.Before - 1
}

// Torn is a record that was being written when the machine stopped: etcd's own
// test is that a whole 512-byte sector of it is zero and it is the last one.
type Torn struct {
	Segment string
	Offset  int64
}

// KindStat counts entries of one kind.
type KindStat struct {
	Entries int64
	Bytes   int64 // of the entries' data
}

// PrefixStat counts writes below one key prefix. A transaction counts as the
// writes of its success branch.
type PrefixStat struct {
	Puts, Deletes int64
	ValueBytes    int64
	LargestValue  int64
}

// CompactionStat sums up compaction requests.
type CompactionStat struct {
	Count     int64
	LastRev   int64
	LastIndex uint64
}

// AlarmType is etcd's alarm number.
type AlarmType uint64

// etcd's alarms.
const (
	AlarmNone    AlarmType = 0
	AlarmNoSpace AlarmType = 1
	AlarmCorrupt AlarmType = 2
)

func (a AlarmType) String() string {
	switch a {
	case AlarmNone:
		return "NONE"
	case AlarmNoSpace:
		return "NOSPACE"
	case AlarmCorrupt:
		return "CORRUPT"
	}
	return "UNKNOWN"
}

// An AlarmEvent is an alarm raised or cleared. Member 0 means all members.
type AlarmEvent struct {
	Index, Member uint64
	Type          AlarmType
	Raised        bool
}

// An AttrEvent is a member publishing its name and client URLs: proof that it
// was running and had quorum.
type AttrEvent struct {
	Index, ID  uint64
	Name       string
	ClientURLs []string
}

// A VersionEvent sets the cluster version or the downgrade target.
type VersionEvent struct {
	Index     uint64
	Version   string
	Downgrade bool
	Enabled   bool // of a downgrade
}

// A TermSpan is a run of entries of one term: one leader's reign.
type TermSpan struct {
	Term       uint64
	FirstIndex uint64
	Entries    int64
}

// maxEvents is how many items a List keeps.
const maxEvents = 2048

// A List keeps the newest items of a sequence and counts the ones before.
type List[T any] struct {
	Items   []T
	Dropped int
}

func (l *List[T]) add(v T) {
	if len(l.Items) >= 2*maxEvents {
		l.shrink()
	}
	l.Items = append(l.Items, v)
}

func (l *List[T]) shrink() {
	if n := len(l.Items) - maxEvents; n > 0 {
		l.Dropped += n
		kept := copy(l.Items, l.Items[n:])
		clear(l.Items[kept:])
		l.Items = l.Items[:kept]
	}
}
