package opinion

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/backend"
)

// readOnly is an etcd backend over one read transaction. Writes are counted and
// forgotten: etcd resumes an interrupted compaction as it starts, and here it may
// only believe that it does.
type readOnly struct {
	tx      *bolt.Tx
	mu      sync.Mutex // a bolt transaction serves one goroutine at a time; mvcc has its own
	dropped atomic.Int64
}

var (
	errNoWrites = errors.New("opened read-only")

	_ backend.Backend = (*readOnly)(nil)
)

func (r *readOnly) UnsafeRange(b backend.Bucket, key, end []byte, limit int64) (keys, vals [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	bucket := r.tx.Bucket(b.Name())
	if bucket == nil {
		return nil, nil
	}
	if len(end) == 0 {
		if v := bucket.Get(key); v != nil {
			return [][]byte{bytes.Clone(key)}, [][]byte{v}
		}
		return nil, nil
	}
	c := bucket.Cursor()
	for k, v := c.Seek(key); k != nil && bytes.Compare(k, end) < 0; k, v = c.Next() {
		keys, vals = append(keys, k), append(vals, v)
		if limit > 0 && int64(len(keys)) >= limit {
			break
		}
	}
	return keys, vals
}

func (r *readOnly) UnsafeForEach(b backend.Bucket, visit func(k, v []byte) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bucket := r.tx.Bucket(b.Name()); bucket != nil {
		return bucket.ForEach(visit)
	}
	return nil
}

// view is both the read and the batch transaction. The file does not change, so
// its locks have nothing to do.
type view struct{ *readOnly }

func (view) RLock()            {}
func (view) RUnlock()          {}
func (view) Lock()             {}
func (view) Unlock()           {}
func (view) LockInsideApply()  {}
func (view) LockOutsideApply() {}
func (view) Commit()           {}
func (view) CommitAndStop()    {}
func (v view) drop()           { v.dropped.Add(1) }

func (v view) UnsafeCreateBucket(backend.Bucket)        { v.drop() }
func (v view) UnsafeDeleteBucket(backend.Bucket)        { v.drop() }
func (v view) UnsafePut(backend.Bucket, []byte, []byte) { v.drop() }
func (v view) UnsafeSeqPut(backend.Bucket, []byte, []byte) {
	v.drop()
}
func (v view) UnsafeDelete(backend.Bucket, []byte) { v.drop() }

func (r *readOnly) ReadTx() backend.ReadTx           { return view{r} }
func (r *readOnly) ConcurrentReadTx() backend.ReadTx { return view{r} }
func (r *readOnly) BatchTx() backend.BatchTx         { return view{r} }
func (r *readOnly) Snapshot() backend.Snapshot       { return nil }
func (r *readOnly) Size() int64                      { return r.tx.Size() }
func (r *readOnly) SizeInUse() int64                 { return 0 }
func (r *readOnly) OpenReadTxN() int64               { return 0 }
func (r *readOnly) Defrag() error                    { return errNoWrites }
func (r *readOnly) ForceCommit()                     {}
func (r *readOnly) Close() error                     { return nil }

func (r *readOnly) Hash(func(bucket, key []byte) bool) (uint32, error) { return 0, errNoWrites }
func (r *readOnly) SetTxPostLockInsideApplyHook(func())                {}
