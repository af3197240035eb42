package etcdstore

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"sync"

	"coldplane/bundle/decode/boltpage"
)

const (
	recordHead  = 640 // bytes of a record that are always at hand: key, numbers, format
	defaultTop  = 50
	maxTracked  = 1 << 20 // revisions of tracked keys that are kept
	maxKeyLen   = 1<<16 - 1
	smallBucket = 64 << 10 // values of the small buckets up to this size are read
)

// Read makes the pass over a file of size bytes. Errors are those of
// boltpage.Open and the context's; damage is in the Store.
func Read(ctx context.Context, r io.ReaderAt, size int64, o Options) (*Store, error) {
	if o.Workers <= 0 {
		o.Workers = 2
	}
	if o.Top <= 0 {
		o.Top = defaultTop
	}
	s := &Store{Size: size, Finished: -1, Scheduled: -1, Trailer: trailerOf(size)}
	dbSize := size - s.Trailer.len()
	f, err := boltpage.Open(r, dbSize)
	if err != nil {
		return nil, err
	}
	s.file, s.formats = f, newFormats()
	s.Metas, s.Chosen = f.Metas()
	var check sync.WaitGroup
	if o.Trailer && s.Trailer == TrailerUnchecked {
		check.Add(1)
		go func() {
			defer check.Done()
			s.Trailer = checkTrailer(ctx, r, dbSize)
		}()
	}
	err = s.pass(ctx, o)
	check.Wait()
	if err != nil {
		return nil, err
	}
	return s, ctx.Err()
}

func (s *Store) pass(ctx context.Context, o Options) error {
	w := s.file.NewWalk(s.walk)
	buckets, err := w.Buckets(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(buckets, func(b boltpage.Bucket) bool { return b.Name == "key" }) && !w.Clean() {
		if root, ok := s.findRoot(ctx, w); ok {
			s.root = root
			w = s.file.NewWalkAt(root, s.walk)
			if buckets, err = w.Buckets(ctx); err != nil {
				return err
			}
		}
	}
	var keys *boltpage.Leaves
	for _, b := range buckets {
		l := w.List(b)
		if b.Name == "key" {
			keys = l
			s.Buckets = append(s.Buckets, Bucket{Name: b.Name})
			continue
		}
		if err := s.small(ctx, w, l); err != nil {
			return err
		}
		s.Buckets = append(s.Buckets, Bucket{b.Name, l.Stats})
	}
	ws, err := s.scanKeys(ctx, w, keys, o)
	if err != nil {
		return err
	}
	for i := range s.Buckets {
		if s.Buckets[i].Name == "key" {
			s.Buckets[i].BucketStats = keys.Stats
		}
	}
	s.mergeWorkers(ws)
	s.Pages = w.Finish()
	s.Damage, s.DamageDropped = w.Damage()
	s.Lossy = w.Lossy() > 0
	s.sortSmall()
	s.summarise(o.Top)
	return nil
}

// scanKeys reads the key bucket with its workers, and after it what can be found
// of parts that no pointer reaches.
func (s *Store) scanKeys(ctx context.Context, w *boltpage.Walk, keys *boltpage.Leaves, o Options) ([]*worker, error) {
	s.table.seed = maphash.MakeSeed()
	ws := []*worker{s.newWorker()}
	ws[0].visit = o.visit
	so := boltpage.ScanOptions{Workers: o.Workers, Head: recordHead, Progress: o.Progress}
	if keys != nil {
		ws = ws[:0]
		if err := w.Scan(ctx, keys, so, func(int) func(*boltpage.Elem) {
			k := s.newWorker()
			k.visit = o.visit
			ws = append(ws, k)
			return k.record
		}); err != nil {
			return nil, err
		}
		keys.Release()
	}
	if w.Clean() || keys != nil && !w.Lost("key") {
		return ws, nil
	}
	lost := func(key []byte) bool { return keys == nil || w.LostKey("key", key) }
	cand, err := w.Candidates(ctx)
	if err != nil {
		return nil, err
	}
	var pages []boltpage.Leaf
	for _, c := range cand {
		_, _, _, ok1 := parseRevKey(c.First)
		ok2 := c.Last == nil
		if !ok2 {
			_, _, _, ok2 = parseRevKey(c.Last)
		}
		if ok1 && ok2 && (lost(c.First) || c.Last != nil && lost(c.Last)) {
			pages = append(pages, c)
		}
	}
	d := &dedup{lost: lost, to: ws[0], seen: map[Revision]struct{}{}}
	return ws, w.ScanCandidates(ctx, "key", pages, so, d.record)
}

// maxDedup bounds the revisions that are remembered to take a salvaged record
// once; a record of one revision is the same wherever it is found.
const maxDedup = 8 << 20

type dedup struct {
	lost func(key []byte) bool
	to   *worker
	seen map[Revision]struct{}
}

func (d *dedup) record(e *boltpage.Elem) {
	main, sub, _, ok := parseRevKey(e.Key)
	if !ok || !d.lost(e.Key) || len(d.seen) >= maxDedup {
		return
	}
	r := Revision{main, sub}
	if _, twice := d.seen[r]; twice {
		return
	}
	d.seen[r] = struct{}{}
	d.to.salvaged++
	d.to.record(e)
}

// maxRoots bounds the candidates for a lost root that are tried.
const maxRoots = 64

// findRoot chooses among unreached leaves that hold buckets the one whose meta
// bucket has applied most.
func (s *Store) findRoot(ctx context.Context, w *boltpage.Walk) (uint64, bool) {
	cand, err := w.Candidates(ctx)
	if err != nil {
		return 0, false
	}
	best, bestIndex, found, tried := uint64(0), uint64(0), false, 0
	for _, c := range cand {
		if !c.Buckets || tried >= maxRoots {
			continue
		}
		tried++
		t := &Store{file: s.file, formats: newFormats(), Finished: -1, Scheduled: -1}
		tw := s.file.NewWalkAt(c.Page, s.walk)
		bs, err := tw.Buckets(ctx)
		if err != nil {
			return 0, false
		}
		key, meta := false, false
		for _, b := range bs {
			key = key || b.Name == "key"
			if b.Name == "meta" {
				meta = t.small(ctx, tw, tw.List(b)) == nil
			}
		}
		if key && meta && (!found || t.Meta.ConsistentIndex >= bestIndex) {
			best, bestIndex, found = c.Page, t.Meta.ConsistentIndex, true
		}
	}
	return best, found
}

// A worker gathers the records of its part of the key bucket.
type worker struct {
	s         *Store
	heads     map[string]uint16 // numbers of formats, as s.formats has them
	records   int64
	tombs     int64
	undecoded int64
	strange   int64
	page      uint64 // of the record before, its number there, and its revision
	index     int
	prev      int64
	salvaged  int64
	bytes     int64
	first     int64
	max       int64
	bumps     []int64
	revs      revSet
	tracked   []trackedRev
	big       []byte
	visit     func(*boltpage.Elem)
}

// A trackedRev is one revision of a key whose history is kept.
type trackedRev struct {
	key string
	v   Version
}

func (s *Store) newWorker() *worker {
	w := &worker{s: s, heads: map[string]uint16{}, first: -1}
	w.revs.above = s.Compacted()
	return w
}

func (w *worker) record(e *boltpage.Elem) {
	main, sub, tomb, ok := parseRevKey(e.Key)
	if !ok || sub > 1<<32-1 {
		w.undecoded++
		return
	}
	if w.visit != nil {
		w.visit(e)
	}
	w.records++
	n := int64(len(e.Key) + e.ValLen)
	w.bytes += n
	if main > w.max {
		w.max = main
	}
	if w.first < 0 || main < w.first {
		w.first = main
	}
	w.revs.add(main)
	if e.ValLen == 0 {
		// left by `snapshot restore --bump-revision`
		if len(w.bumps) < 64 {
			w.bumps = append(w.bumps, main)
		}
		return
	}
	r, ok, short := parseKV(e.Val, e.ValLen)
	if short {
		r, ok = w.long(e)
	}
	if !ok || len(r.key) > maxKeyLen {
		w.undecoded++
		return
	}
	// Flipped bits in a revision key leave the order of keys as it was more often
	// than not: the record repeats its revision, and a transaction's changes are
	// numbered from 0.
	if !tomb && r.mod != main {
		w.strange++
	}
	if main > w.revs.above && sub != 0 && main != w.prev && e.Page == w.page && e.Index == w.index+1 {
		w.strange++
	}
	w.page, w.index, w.prev = e.Page, e.Index, main
	k, fresh, part := w.s.table.lock(r.key)
	defer part.mu.Unlock()
	if fresh && track(r.key) {
		k.flags |= flagTracked
	}
	k.revs++
	k.hist += uint64(n)
	if tomb {
		w.tombs++
		k.tombs++
	}
	if k.flags&flagTracked != 0 && len(w.tracked) < maxTracked {
		w.tracked = append(w.tracked, trackedRev{key: string(r.key), v: Version{Rev: Revision{main, sub}, Off: e.ValOff, Len: e.ValLen, Tombstone: tomb}})
	}
	if k.revs > 1 && !k.newer(main, uint32(sub)) {
		return
	}
	k.main, k.sub, k.recOff, k.recLen, k.size = main, uint32(sub), e.ValOff, uint32(e.ValLen), uint32(r.valLen)
	k.version = uint32(min(r.ver, 1<<32-1))
	k.flags &= flagTracked
	if tomb {
		k.flags |= flagDead
		k.format = 0
		return
	}
	if r.leaseSet {
		k.flags |= flagLeased
	}
	if e.Salvaged {
		k.flags |= flagSalvaged
	}
	k.format = w.formatOf(e.Val[min(r.valAt, len(e.Val)):min(r.valAt+r.valLen, len(e.Val))])
}

// long parses a record whose key did not fit the bytes at hand.
func (w *worker) long(e *boltpage.Elem) (kv, bool) {
	if w.big == nil {
		w.big = make([]byte, maxKeyLen+1024)
	}
	b := w.big[:min(e.ValLen, len(w.big))]
	if n, _ := w.s.file.ReadAt(b, e.ValOff); n < len(b) {
		return kv{}, false
	}
	r, ok, _ := parseKV(b, e.ValLen)
	e.Val = b
	return r, ok
}

// track tells the keys whose retained revisions date the others: leases are
// renewed every few seconds, and the compactor writes its key every five minutes.
func track(key []byte) bool {
	return bytes.Contains(key, []byte("/leases/kube-")) || bytes.Equal(key, []byte(compactRevKey))
}

// mergeWorkers puts together what each worker counted for itself.
func (s *Store) mergeWorkers(ws []*worker) {
	dst := ws[0]
	for _, o := range ws[1:] {
		dst.records += o.records
		dst.tombs += o.tombs
		dst.undecoded += o.undecoded
		dst.strange += o.strange
		dst.salvaged += o.salvaged
		dst.bytes += o.bytes
		dst.max = max(dst.max, o.max)
		if o.first >= 0 && (dst.first < 0 || o.first < dst.first) {
			dst.first = o.first
		}
		dst.bumps = append(dst.bumps, o.bumps...)
		dst.revs.merge(&o.revs)
		dst.tracked = append(dst.tracked, o.tracked...)
	}
	s.Records, s.Tombstones, s.Undecoded, s.Salvaged, s.RecBytes = dst.records, dst.tombs, dst.undecoded, dst.salvaged, dst.bytes
	s.MaxRev, s.FirstRev = dst.max, max(dst.first, 0)
	s.Bumps = sortedUnique(dst.bumps)
	s.setTracked(dst.tracked)
	s.Missing, s.MissingTotal = dst.revs.missing(max(s.Compacted(), 1), s.MaxRev, s.Bumps)
	s.Strange = dst.strange
	if s.Undecoded > 0 {
		s.Problems = append(s.Problems, fmt.Sprintf("%d records of the key bucket are not etcd's", s.Undecoded))
	}
}

// each runs f(0..n-1) on two goroutines.
func each(n int, f func(int)) {
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := 1; i < n; i += 2 {
			f(i)
		}
	}()
	for i := 0; i < n; i += 2 {
		f(i)
	}
	wg.Wait()
}
