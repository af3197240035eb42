package archive

import "time"

// FormatVersion is the version of the layout that this build writes. Readers
// accept any version: fields are only ever added.
const FormatVersion = 1

// Paths of the entries that describe the bundle itself.
const (
	HeaderPath   = "coldplane/HEADER.json"   // first
	KeysPath     = "coldplane/KEYS.json"     // private keys seen, never the keys
	CollectPath  = "coldplane/COLLECT.jsonl" // one line per source tried
	ManifestPath = "coldplane/MANIFEST.json" // last
)

// A Header says what the bundle is before anything is collected.
type Header struct {
	Format      int       `json:"format"`
	Tool        Tool      `json:"tool"`
	BundleID    string    `json:"bundleId"` // 32 random hex digits
	Node        string    `json:"node"`
	CollectedAt time.Time `json:"collectedAt"` // the node's clock at the start, UTC
	Clock       Clock     `json:"clock"`
	Policy      Policy    `json:"policy"`
	Sensitivity string    `json:"sensitivity"` // "redacted" or "full"
	CaseID      string    `json:"caseId,omitempty"`
	Labels      []string  `json:"labels,omitempty"`
	Mounted     bool      `json:"mounted,omitempty"` // taken from a dead node's disk, not from a running system
	UID         int       `json:"uid"`               // effective user of the collector
	Kernel      string    `json:"kernel,omitempty"`
	Arch        string    `json:"arch,omitempty"`
}

// A Tool names the program that wrote something.
type Tool struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
}

// A Clock is one reading of the node's clocks.
type Clock struct {
	Wall           time.Time `json:"wall"`                     // UTC
	BootSeconds    float64   `json:"bootSeconds,omitempty"`    // since boot, sleep included
	BootID         string    `json:"bootId,omitempty"`         // changes with every boot
	Unsynchronised *bool     `json:"unsynchronised,omitempty"` // the kernel's own opinion (adjtimex STA_UNSYNC)
	MaxErrorMicros int64     `json:"maxErrorMicros,omitempty"` // adjtimex maxerror
	Zone           string    `json:"zone,omitempty"`
}

// A Policy is what was asked of the collector.
type Policy struct {
	Redaction string `json:"redaction"`       // level of the scrub: secrets, values, structure
	Etcd      string `json:"etcd"`            // scrubbed, summary, full, none
	Since     string `json:"since,omitempty"` // window of logs, e.g. "24h0m0s"
}

// A Status is how a collection ended.
type Status string

// Status values.
const (
	Complete    Status = "complete"    // every source answered or is known to be absent
	Degraded    Status = "degraded"    // some sources failed or were cut
	Interrupted Status = "interrupted" // ended by a signal; what is here is whole
)

// A Treatment says what happened to a file's content before it was stored.
type Treatment string

// Treatments.
const (
	Kept      Treatment = "kept"      // stored as it is
	Redacted  Treatment = "redacted"  // secrets overwritten or left out, structure kept
	Scrubbed  Treatment = "scrubbed"  // a database whose values were overwritten in place
	Derived   Treatment = "derived"   // computed from the node: facts, listings, indexes
	Dropped   Treatment = "dropped"   // seen, its content deliberately not stored
	Truncated Treatment = "truncated" // kept or redacted, but only a part of it
	Failed    Treatment = "failed"    // seen, could not be read
	LinkOnly  Treatment = "link"      // a symbolic link: only where it points
	Directory Treatment = "directory"
)

// An Entry describes one path of the bundle. Entries without Stored have no
// member in the archive: a link, a directory, something dropped or unreadable.
type Entry struct {
	Path        string         `json:"path"` // in the archive; also the path on the node without its leading slash
	Stored      bool           `json:"stored"`
	Size        int64          `json:"size"`             // bytes stored
	SHA256      string         `json:"sha256,omitempty"` // of the stored bytes
	Treatment   Treatment      `json:"treatment"`
	Rule        string         `json:"rule,omitempty"`   // which part of the policy decided
	Counts      map[string]int `json:"counts,omitempty"` // what was overwritten, by kind
	Consistency string         `json:"consistency,omitempty"`
	Error       string         `json:"error,omitempty"`
	Source      *Source        `json:"source,omitempty"`
}

// Consistency of a database copy.
const (
	RPCSnapshot = "rpc-snapshot" // through etcd's own snapshot call
	RawClean    = "raw-clean"    // copied from disk; the walk of the copy found nothing
	RawTorn     = "raw-torn"     // copied from disk; the walk found damage or the file changed meanwhile
)

// A Source is the file on the node that an entry came from.
type Source struct {
	Path  string     `json:"path"`
	Type  string     `json:"type"` // file, dir, link, fifo, socket, device
	Size  int64      `json:"size"` // of the original
	Mode  uint32     `json:"mode"` // permission, setuid, setgid and sticky bits
	UID   int        `json:"uid"`
	GID   int        `json:"gid"`
	MTime time.Time  `json:"mtime"`
	CTime *time.Time `json:"ctime,omitempty"`
	Dev   uint64     `json:"dev,omitempty"`
	Inode uint64     `json:"inode,omitempty"`
	Link  string     `json:"link,omitempty"` // target text of a symbolic link
}

// A Result is one line of COLLECT.jsonl: what came of one source.
type Result struct {
	Source  string    `json:"source"`
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	Seconds float64   `json:"seconds"` // by the monotonic clock
	Outcome Outcome   `json:"outcome"`
	Entries int       `json:"entries"`
	Read    int64     `json:"bytesRead"`
	Stored  int64     `json:"bytesStored"`
	Caps    []string  `json:"caps,omitempty"`   // limits reached
	Error   string    `json:"error,omitempty"`  // one line
	Notes   []string  `json:"notes,omitempty"`  // what a reader should know
	Absent  []string  `json:"absent,omitempty"` // looked for on the node and not there
}

// An Outcome is how one source ended.
type Outcome string

// Outcomes.
const (
	OK       Outcome = "ok"
	Partial  Outcome = "partial" // some of it failed or was cut
	Missing  Outcome = "absent"  // nothing of the kind on this node
	Failure  Outcome = "failed"
	TimedOut Outcome = "timeout"
	Skipped  Outcome = "skipped" // not asked for, or impossible here; Error says why
	Stopped  Outcome = "interrupted"
)

// A Manifest is the bundle's last entry.
type Manifest struct {
	Format       int            `json:"format"`
	BundleID     string         `json:"bundleId"`
	Status       Status         `json:"status"`
	HeaderSHA256 string         `json:"headerSha256"`
	Clock        Clock          `json:"clock"` // at the end
	Entries      []Entry        `json:"entries"`
	Absent       []string       `json:"absent"`  // absolute paths looked for and not found
	Dirs         []string       `json:"dirs"`    // absolute paths of directories listed in full
	Sources      map[string]int `json:"sources"` // outcomes, counted
	Totals       Totals         `json:"totals"`
}

// Totals sum the bundle up.
type Totals struct {
	Entries int   `json:"entries"` // members stored before the manifest
	Bytes   int64 `json:"bytes"`   // stored, before compression
	Read    int64 `json:"read"`    // bytes read on the node
}
