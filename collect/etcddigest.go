//go:build linux

package collect

import (
	"context"
	"encoding/binary"
	"hash/crc64"
	"io"
	"maps"
	"slices"
	"strconv"

	"coldplane/bundle/decode/boltpage"
	"coldplane/bundle/hostfacts"
)

const (
	firstWidth = 64  // revisions of a block to begin with
	maxBlocks  = 512 // of a digest; more make blocks wider
)

// storeDigest sums up a database before it is scrubbed, in one pass over each of
// two buckets and a few kilobytes of memory. It returns nil for one that cannot
// be read whole.
//
// It is not etcd's HashKV: that one needs the newest revision of every key, which
// is memory that a collector does not take, and two members have the same one
// only at the same revision, at which two collections never happen.
func storeDigest(ctx context.Context, r io.ReaderAt, size int64) *hostfacts.StoreDigest {
	f, err := boltpage.Open(r, size)
	if err != nil || f.Rootless() {
		return nil
	}
	w := f.NewWalk(boltpage.Limits{})
	buckets, err := w.Buckets(ctx)
	if err != nil {
		return nil
	}
	d := &hostfacts.StoreDigest{Width: firstWidth, Blocks: []hostfacts.DigestBlock{}}
	sums := &digestSums{d: d, r: r, blocks: map[int64]blockSum{}}
	// The meta bucket first: which records count depends on the compaction.
	for _, name := range []string{"meta", "key"} {
		i := slices.IndexFunc(buckets, func(b boltpage.Bucket) bool { return b.Name == name })
		if i < 0 {
			return nil
		}
		visit := sums.meta
		if name == "key" {
			visit = sums.record
		}
		o := boltpage.ScanOptions{Whole: 256 << 10}
		if w.Scan(ctx, w.List(buckets[i]), o, func(int) func(*boltpage.Elem) { return visit }) != nil {
			return nil
		}
		if name == "meta" {
			d.CompactRevision = max(sums.finished, sums.scheduled, 0)
			d.Compacting = sums.scheduled > sums.finished
		}
	}
	if list, dropped := w.Damage(); len(list)+dropped > 0 || sums.broken {
		return nil
	}
	d.Revision = max(d.Revision, d.CompactRevision, 1)
	for _, i := range slices.Sorted(maps.Keys(sums.blocks)) {
		b := sums.blocks[i]
		d.Blocks = append(d.Blocks, hostfacts.DigestBlock{Index: i, Records: b.n, Sum: strconv.FormatUint(b.sum, 16)})
	}
	return d
}

var ecma = crc64.MakeTable(crc64.ECMA)

type blockSum struct {
	n   int64
	sum uint64
}

type digestSums struct {
	d                   *hostfacts.StoreDigest
	r                   io.ReaderAt
	finished, scheduled int64
	blocks              map[int64]blockSum
	buf                 []byte
	broken              bool
}

func (s *digestSums) meta(e *boltpage.Elem) {
	if len(e.Val) < 8 {
		return
	}
	switch rev := int64(binary.BigEndian.Uint64(e.Val)); string(e.Key) {
	case "finishedCompactRev":
		s.finished = rev
	case "scheduledCompactRev":
		s.scheduled = rev
	}
}

func (s *digestSums) record(e *boltpage.Elem) {
	if len(e.Key) != 17 && len(e.Key) != 18 || e.Key[8] != '_' {
		s.broken = true
		return
	}
	main := int64(binary.BigEndian.Uint64(e.Key))
	if len(e.Key) == 18 && main == s.d.CompactRevision {
		return
	}
	s.d.Revision = max(s.d.Revision, main)
	sum := crc64.Checksum(e.Key, ecma)
	add := func(b []byte) { sum = crc64.Update(sum, ecma, b) }
	if len(e.Val) == e.ValLen {
		add(e.Val)
	} else {
		s.long(e, add)
	}
	b := s.blocks[main/s.d.Width]
	s.blocks[main/s.d.Width] = blockSum{b.n + 1, b.sum + sum}
	for len(s.blocks) > maxBlocks {
		s.widen()
	}
}

// long reads a value that came as its head only.
func (s *digestSums) long(e *boltpage.Elem, add func([]byte)) {
	if s.buf == nil {
		s.buf = make([]byte, 256<<10)
	}
	for off := 0; off < e.ValLen; {
		n, err := s.r.ReadAt(s.buf[:min(len(s.buf), e.ValLen-off)], e.ValOff+int64(off))
		add(s.buf[:n])
		if off += n; err != nil && off < e.ValLen || n == 0 {
			s.broken = true
			return
		}
	}
}

func (s *digestSums) widen() {
	wide := map[int64]blockSum{}
	for i, b := range s.blocks {
		x := wide[i/2]
		wide[i/2] = blockSum{x.n + b.n, x.sum + b.sum}
	}
	s.blocks, s.d.Width = wide, s.d.Width*2
}
