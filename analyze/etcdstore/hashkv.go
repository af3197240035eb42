package etcdstore

import (
	"context"
	"errors"
	"hash/crc32"
	"hash/maphash"
	"io"

	"coldplane/bundle/decode/boltpage"
)

// A KVHash is what etcd's HashKV call would answer.
type KVHash struct {
	Hash       uint32
	Rev        int64
	CompactRev int64
}

var (
	// ErrFutureRev and ErrCompacted are HashKV's answers for a revision the file
	// does not have, or has no longer.
	ErrFutureRev = errors.New("revision is in the future of this file")
	ErrCompacted = errors.New("revision is compacted in this file")
	// ErrDamaged says that the key bucket cannot be read whole.
	ErrDamaged = errors.New("the file is damaged, a hash over it would mean nothing")
)

// HashKV computes etcd's KV hash at revision rev (0: the current one), as if the
// file had been compacted at revision compact (below 0: the file's own). Members
// of one cluster agree at the same pair, whatever their own states: take the
// lowest current and the highest compaction among them.
//
// The sum is CRC-32C over the bucket's name and then, in order of revision, the
// revision key and the record of everything up to rev that a compaction would
// keep (go.etcd.io/etcd/server/v3/storage/mvcc hash.go, kvstore_compaction.go).
func (s *Store) HashKV(ctx context.Context, rev, compact int64) (KVHash, error) {
	if s.Lossy || s.Salvaged > 0 {
		return KVHash{}, ErrDamaged
	}
	if compact < 0 {
		compact = s.Compacted()
	}
	if rev == 0 {
		rev = s.Current()
	}
	out := KVHash{Rev: rev, CompactRev: compact}
	if rev > s.Current() {
		return out, ErrFutureRev
	}
	if rev < compact {
		return out, ErrCompacted
	}
	keep, err := s.keeper(ctx, rev, compact)
	if err != nil {
		return out, err
	}
	sums, err := s.sumRecords(ctx, rev, compact, keep)
	if err != nil {
		return out, err
	}
	out.Hash = crc32.Checksum([]byte("key"), castagnoli)
	for _, p := range sums {
		out.Hash = joinCRC(out.Hash, p.crc, p.n)
	}
	return out, nil
}

// A newestAt says which record of a key is its newest at some revision. With no
// live key at all etcd skips nothing.
type newestAt struct {
	bump int64
	none bool
	find func(key []byte) (main int64, sub uint32, dead bool)
}

// keeper answers which records below the compaction count: the newest up to rev
// of each key, unless that is a tombstone. At the file's own newest revision the
// key table knows; for an older one they are gathered in a pass of their own.
func (s *Store) keeper(ctx context.Context, rev, compact int64) (*newestAt, error) {
	if compact == 0 {
		return nil, nil
	}
	if s.MaxRev <= rev {
		return s.tableKeeper(), nil
	}
	t := &keyTable{seed: maphash.MakeSeed()}
	k := &newestAt{}
	err := s.eachRecord(ctx, recordHead, func(e *boltpage.Elem) {
		main, sub, tomb, ok := parseRevKey(e.Key)
		if !ok || main > rev {
			return
		}
		if e.ValLen == 0 {
			k.bump = main
			return
		}
		r, ok := s.recordKey(e)
		if !ok || len(r) > maxKeyLen {
			return
		}
		x, fresh, part := t.lock(r)
		defer part.mu.Unlock()
		if !fresh && !x.newer(main, uint32(sub)) {
			return
		}
		x.main, x.sub, x.flags = main, uint32(sub), 0
		if tomb {
			x.flags = flagDead
		}
	})
	k.none = k.bump == 0 && !t.anyLive()
	k.find = func(key []byte) (int64, uint32, bool) {
		e, _ := t.find(key)
		if e == nil {
			return 0, 0, true
		}
		return e.main, e.sub, e.dead()
	}
	return k, err
}

func (s *Store) tableKeeper() *newestAt {
	k := &newestAt{find: func(key []byte) (int64, uint32, bool) {
		e, _ := s.table.find(key)
		if e == nil {
			return 0, 0, true
		}
		return e.main, e.sub, e.dead()
	}}
	if n := len(s.Bumps); n > 0 {
		k.bump = s.Bumps[n-1]
	}
	k.none = k.bump == 0 && s.Live == 0
	return k
}

// recordKey returns the key of a record, reading more of it when the head was
// not enough.
func (s *Store) recordKey(e *boltpage.Elem) ([]byte, bool) {
	r, ok, short := parseKV(e.Val, e.ValLen)
	if short {
		b := make([]byte, min(e.ValLen, maxKeyLen+1024))
		if n, _ := s.file.ReadAt(b, e.ValOff); n < len(b) {
			return nil, false
		}
		r, ok, _ = parseKV(b, e.ValLen)
	}
	return r.key, ok
}

func (k *keyTable) anyLive() bool {
	for p := range k.part {
		for i := range k.part[p].n {
			if !k.part[p].at(i).dead() {
				return true
			}
		}
	}
	return false
}

type partSum struct {
	crc uint32
	n   uint64
}

// sumRecords sums the kept records of each worker's range.
func (s *Store) sumRecords(ctx context.Context, rev, compact int64, keep *newestAt) ([]*partSum, error) {
	w, l, err := s.keyLeaves(ctx)
	if err != nil || l == nil {
		return nil, err
	}
	var sums []*partSum
	o := boltpage.ScanOptions{Workers: 2, InOrder: true, Whole: 256 << 10}
	err = w.Scan(ctx, l, o, func(int) func(*boltpage.Elem) {
		p := &partSum{}
		sums = append(sums, p)
		var buf []byte
		return func(e *boltpage.Elem) {
			main, sub, tomb, ok := parseRevKey(e.Key)
			if !ok || main > rev || !kept(s, e, main, uint32(sub), tomb, compact, keep) {
				return
			}
			p.crc = crc32.Update(p.crc, castagnoli, e.Key)
			p.n += uint64(len(e.Key) + e.ValLen)
			if len(e.Val) == e.ValLen {
				p.crc = crc32.Update(p.crc, castagnoli, e.Val)
				return
			}
			if buf == nil {
				buf = make([]byte, 256<<10)
			}
			p.crc = crcOf(p.crc, io.NewSectionReader(s.file, e.ValOff, int64(e.ValLen)), buf)
		}
	})
	return sums, err
}

func crcOf(crc uint32, r io.Reader, buf []byte) uint32 {
	for {
		n, err := r.Read(buf)
		crc = crc32.Update(crc, castagnoli, buf[:n])
		if err != nil {
			return crc
		}
	}
}

// kept reports whether a record would still be there after a compaction.
func kept(s *Store, e *boltpage.Elem, main int64, sub uint32, tomb bool, compact int64, keep *newestAt) bool {
	if main > compact {
		return true
	}
	if keep.none {
		return !(tomb && main == compact)
	}
	if e.ValLen == 0 {
		return main == keep.bump
	}
	key, ok := s.recordKey(e)
	if !ok {
		return false
	}
	m, sb, dead := keep.find(key)
	return m == main && sb == sub && !dead && !(tomb && main == compact)
}
