package opinion

import (
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
)

// An Opinion is what bbolt and etcd say about a file.
type Opinion struct {
	Bolt    string `json:"bolt"` // "opens", or why not
	Etcd    string `json:"etcd"` // "starts", or why not
	Version string `json:"version,omitempty"`
	Rev     int64  `json:"rev,omitempty"`   // current revision after etcd's start
	First   int64  `json:"first,omitempty"` // first revision that can be read
	Hash    uint32 `json:"hash,omitempty"`  // HashKV at Rev
	HashRev int64  `json:"hashRev,omitempty"`
	Compact int64  `json:"compact,omitempty"`
	Dropped int    `json:"dropped,omitempty"` // writes etcd wanted to make at start
}

// openTimeout is how long bbolt waits for its lock: a live etcd holds it.
const openTimeout = time.Second

// Judge opens the file with bbolt and starts etcd's store on it, both read-only.
// It may panic, fault or exit the process on a file that is not clean: call it in
// a child. rev is the revision to hash at, 0 for the current one.
func Judge(f string, rev int64) (o Opinion) {
	db, err := bolt.Open(f, 0o400, &bolt.Options{ReadOnly: true, Timeout: openTimeout, OpenFile: openReadOnly})
	if err != nil {
		o.Bolt = err.Error()
		return o
	}
	defer db.Close()
	o.Bolt = "opens"
	tx, err := db.Begin(false)
	if err != nil {
		o.Bolt = err.Error()
		return o
	}
	defer func() { _ = tx.Rollback() }()
	ro := &readOnly{tx: tx}
	lg := zap.NewNop()
	if v, err := schema.UnsafeDetectSchemaVersion(lg, ro); err == nil {
		o.Version = v.String()
	}
	s := mvcc.NewStore(lg, ro, &lease.FakeLessor{}, mvcc.StoreConfig{CompactionBatchLimit: 1 << 20})
	defer s.Close()
	o.Etcd = "starts"
	o.Rev, o.First = s.Rev(), s.FirstRev()
	h, _, err := s.HashStorage().HashByRev(rev)
	if err != nil {
		o.Etcd = fmt.Sprintf("starts; hash at revision %d: %v", rev, err)
		return o
	}
	o.Hash, o.HashRev, o.Compact = h.Hash, h.Revision, h.CompactRevision
	o.Dropped = int(ro.dropped.Load())
	return o
}

// openReadOnly keeps bbolt from opening anything another way, whatever it asks.
func openReadOnly(name string, _ int, _ os.FileMode) (*os.File, error) { return os.Open(name) }
