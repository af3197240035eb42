package hostfacts

// EtcdFactsPath is what was seen of the node's etcd databases before their
// values were overwritten: []EtcdFacts.
const EtcdFactsPath = "/etcd/facts.json"

// SnapshotPath is the snapshot that a running etcd gave, scrubbed.
const SnapshotPath = "/etcd/snapshot.db"

// EtcdFacts are one database.
type EtcdFacts struct {
	Origin      string       `json:"origin"` // the data directory on the node, or the endpoint that gave a snapshot
	Consistency string       `json:"consistency"`
	Size        int64        `json:"size"`
	DBSize      int64        `json:"dbSize"`
	PageSize    int64        `json:"pageSize"`
	Txid        uint64       `json:"txid"`
	Trailer     string       `json:"trailer,omitempty"` // good, wrong; "" when there is none
	Damage      int          `json:"damage"`
	DamageOf    []string     `json:"damageOf,omitempty"`
	Zeroed      uint64       `json:"unreachablePages"`
	Records     int64        `json:"records"`
	Digest      *StoreDigest `json:"digest,omitempty"` // absent when the database is damaged
	Snaps       []SnapFacts  `json:"snaps,omitempty"`
}

// SnapFacts are one raft snapshot file.
type SnapFacts struct {
	Path string `json:"path"`
	File any    `json:"file,omitempty"` // walframe.SnapFile
	Err  string `json:"error,omitempty"`
}

// A StoreDigest tells whether two members hold the same data without the data.
type StoreDigest struct {
	Revision        int64 `json:"revision"`
	CompactRevision int64 `json:"compactRevision"`
	Compacting      bool  `json:"compacting,omitempty"` // a compaction was under way: below it anything may differ
	// Blocks are sums over all records of ranges of revisions, each Width wide,
	// which is a power of two; block i begins at i*Width. Sums do not depend on the
	// order, and those of narrow blocks add up to those of wide ones.
	Width  int64         `json:"width"`
	Blocks []DigestBlock `json:"blocks"` // those that hold records, by index
}

// A DigestBlock is one range of revisions.
type DigestBlock struct {
	Index   int64  `json:"i"`
	Records int64  `json:"n"`
	Sum     string `json:"sum"` // hexadecimal
}
