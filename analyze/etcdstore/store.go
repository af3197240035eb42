package etcdstore

import (
	"io"

	"coldplane/bundle/decode/boltpage"
)

// Options of Read. The zero value reads with two workers.
type Options struct {
	Workers int // default 2
	// Top is the length of the lists of largest and most written keys; default 50.
	Top int
	// Trailer says to check the SHA-256 that `snapshot save` appends, beside the
	// pass. Without it a trailer is only recognised.
	Trailer bool
	// Progress, when set, is called from several goroutines with pages done since
	// its last call.
	Progress func(pages int)

	visit func(*boltpage.Elem) // tests: every record of the key bucket, one worker
}

// A Store is what one pass found. It keeps its file for later reads and is safe
// for concurrent use.
type Store struct {
	Size    int64 // bytes of the file, trailer included
	Trailer Trailer
	Metas   [2]boltpage.Meta
	Chosen  int // index into Metas, -1 without any
	Pages   boltpage.Stats
	Damage  []boltpage.Damage
	// DamageDropped counts entries that did not fit Damage.
	DamageDropped int
	// Lossy reports that something of the tree could not be read.
	Lossy   bool
	Buckets []Bucket

	// Revisions. Compacted is the newest compaction that etcd would start with.
	FirstRev, MaxRev int64 // main revisions of the records there are
	Finished         int64 // meta/finishedCompactRev, -1 when absent
	Scheduled        int64 // meta/scheduledCompactRev, -1 when absent
	Bumps            []int64
	// Missing are main revisions above the compaction that have no record though
	// every revision of an etcd makes one. More than a few ranges are not kept.
	Missing      []Range
	MissingTotal int64

	Records    int64
	Tombstones int64
	Undecoded  int64 // records whose key or value is not etcd's
	Strange    int64 // records whose revision is not the one they carry inside
	Salvaged   int64 // records read from pages that nothing points to
	RecBytes   int64 // bytes of all records, revision keys included
	Keys       int64
	Live       int64
	LiveBytes  int64 // values of live keys
	LiveRec    int64 // their records, revision keys included
	Leased     int64 // live keys with a lease

	Prefix     string // the API server's prefix
	Types      []TypeStats
	Largest    []KeyStats
	Busiest    []KeyStats // most records retained
	Fattest    []KeyStats // most bytes over all records
	Meta       Meta
	Members    []Member
	Removed    []uint64
	Alarms     []Alarm
	Leases     []Lease
	LeaseTotal int64
	Auth       Auth
	Problems   []string // records of the small buckets that cannot be decoded

	file    *boltpage.File
	walk    boltpage.Limits
	root    uint64 // root page if not the meta's
	table   keyTable
	formats *formats
	tracked []Version
}

// A Bucket is a top-level bucket with what its tree is made of.
type Bucket struct {
	Name string
	boltpage.BucketStats
}

// A Range of main revisions, both ends included.
type Range struct{ From, To int64 }

// Compacted returns the compaction revision the server would start with, 0 for
// none: it resumes a scheduled compaction.
func (s *Store) Compacted() int64 { return max(s.Finished, s.Scheduled, 0) }

// Current returns the revision the server would start at.
func (s *Store) Current() int64 { return max(s.MaxRev, s.Compacted(), 1) }

// Clean reports that the pages are without any fault.
func (s *Store) Clean() bool { return len(s.Damage) == 0 && s.DamageDropped == 0 }

// Superseded counts records that are neither a live key's newest nor a tombstone.
func (s *Store) Superseded() int64 { return s.Records - s.Tombstones - s.Live }

// File gives access to raw pages.
func (s *Store) File() *boltpage.File { return s.file }

var _ io.ReaderAt = (*boltpage.File)(nil)
