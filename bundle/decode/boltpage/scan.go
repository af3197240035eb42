package boltpage

import (
	"context"
	"slices"
	"sync"
)

// An Elem is one key and value. Key and Val are valid only until the visitor
// returns.
type Elem struct {
	Page  uint64 // page id; of an inline bucket, the page it lives in
	Index int
	Flags uint32
	Key   []byte
	// Val is the beginning of the value: all of it when len(Val) == ValLen.
	Val      []byte
	ValLen   int
	KeyOff   int64 // file offset of the key
	ValOff   int64 // file offset of the value
	Salvaged bool  // from a page that no pointer reaches

	// Head is the page's header and element table as read; Base and Extent are
	// where the page begins in the file and how many bytes belong to it. Of an
	// inline bucket, all three are those of the page inside its parent's.
	Head         []byte
	Base, Extent int64
}

// ScanOptions say how leaf pages are read. The zero value gives keys with the
// first bytes of their values, by one worker, in order of position in the file.
type ScanOptions struct {
	Workers int // default 1
	// Head is how many bytes of a value are certain to be in Elem.Val; default 256.
	Head int
	// Whole is the size up to which values are always complete. Larger ones come
	// as heads and must be read with File.ReadAt.
	Whole int
	// InOrder visits elements in key order within each worker's range; workers get
	// consecutive ranges. Otherwise pages are read in file order.
	InOrder bool
	// Progress, when set, is called now and then from any worker with the number of
	// leaf pages done since its last call.
	Progress func(pages int)
}

const (
	defaultHead = 256
	chunkBytes  = 256 << 10
	// minPerWorker is the number of leaf pages below which a second worker costs
	// more than it brings.
	minPerWorker = 16
)

// Scan reads the leaves of a bucket. visitor is called once per worker, before
// it starts, and returns what that worker calls for every element. Scan returns
// the context's error, and nothing else: damage is recorded in the walk.
func (w *Walk) Scan(ctx context.Context, l *Leaves, o ScanOptions, visitor func(worker int) func(*Elem)) error {
	o.Workers = max(1, o.Workers)
	if len(l.refs) < o.Workers*minPerWorker {
		o.Workers = 1
	}
	if o.Head <= 0 {
		o.Head = defaultHead
	}
	o.Head = max(o.Head, o.Whole)
	n := o.Workers
	ss := make([]*scanner, n)
	for i := range ss {
		ss[i] = newScanner(w, l, o, visitor(i))
	}
	if l.inline != nil {
		ss[0].inline(l.inline)
	} else {
		refs := l.refs
		var wg sync.WaitGroup
		for i, s := range ss {
			part := refs[len(refs)*i/n : len(refs)*(i+1)/n]
			if i == n-1 {
				s.run(ctx, part)
				break
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				s.run(ctx, part)
			}()
		}
		wg.Wait()
	}
	w.collect(l, ss)
	// Pages that turned out to be branches hold subtrees nobody has listed. They
	// are rare, so one worker takes them, level by level.
	for more := deferred(ss); len(more) > 0; {
		var next []leafRef
		for _, d := range more {
			next = append(next, w.subtree(ctx, l, d, ss[0])...)
		}
		more = next
	}
	w.totals.add(l.Stats)
	return ctx.Err()
}

func deferred(ss []*scanner) []leafRef {
	var all []leafRef
	for _, s := range ss {
		all = append(all, s.deferred...)
		s.deferred = nil
	}
	slices.SortFunc(all, func(a, b leafRef) int { return int(a.seq) - int(b.seq) })
	return all
}

// collect moves what the workers found into the walk.
func (w *Walk) collect(l *Leaves, ss []*scanner) {
	logs := make([]damageLog, len(ss))
	for i, s := range ss {
		logs[i] = s.log
		s.log = damageLog{limit: w.lim.MaxDamage}
		w.lost = append(w.lost, s.lost...)
		s.lost = nil
		for _, id := range s.rejected {
			w.rejected[id] = true
		}
		s.rejected = nil
		l.Stats.add(s.stats)
		s.stats = BucketStats{}
	}
	if len(w.lost) > w.lim.MaxDamage {
		w.lost = w.lost[:w.lim.MaxDamage]
	}
	w.log.merge(logs)
}

// subtree lists and scans what is below a page that was taken for a leaf.
func (w *Walk) subtree(ctx context.Context, l *Leaves, at leafRef, s *scanner) []leafRef {
	lo, hi := l.bounds.at(at.seq), l.bounds.at(at.seq+1)
	h, err := w.header(uint64(at.id))
	doubtful := err != nil || h.id != uint64(at.id) || h.flags != flagBranch
	sub := &Leaves{Bucket: l.Bucket}
	depth := max(1, l.Stats.Depth)
	if !w.listBranch(sub, uint64(at.id), lo, hi, depth, doubtful) {
		w.lose(Damage{Page: uint64(at.id), Class: wrong(h, uint64(at.id)), Bucket: l.Bucket, Detail: "neither a leaf nor a branch", Lost: "the page and what was below it", Lo: lo, Hi: hi})
		return nil
	}
	old := s.leaves
	s.leaves = sub
	s.run(ctx, sub.refs)
	s.leaves = old
	w.collect(l, []*scanner{s})
	l.Stats.add(sub.Stats)
	var deeper []leafRef
	for _, d := range s.deferred {
		// seq numbers of sub mean nothing in l: carry the bounds over
		seq := l.bounds.add(sub.bounds.at(d.seq))
		l.bounds.add(sub.bounds.at(d.seq + 1))
		deeper = append(deeper, leafRef{id: d.id, seq: seq})
	}
	s.deferred = nil
	return deeper
}

// A scanner is one worker: it reads runs of neighbouring pages and hands out
// their elements.
type scanner struct {
	w        *Walk
	leaves   *Leaves
	o        ScanOptions
	visit    func(*Elem)
	log      damageLog
	lost     []lostRange
	rejected []uint64
	deferred []leafRef
	stats    BucketStats
	buf      []byte    // a run of pages
	heads    [3][]byte // elements whose bytes lie outside the run, in rotation
	turn     int
	table    []byte // an element table that is longer than the run
	elem     Elem
	salvage  bool
}

func newScanner(w *Walk, l *Leaves, o ScanOptions, visit func(*Elem)) *scanner {
	return &scanner{w: w, leaves: l, o: o, visit: visit, log: damageLog{limit: w.lim.MaxDamage}}
}

// run reads the pages of refs, neighbours together.
func (s *scanner) run(ctx context.Context, refs []leafRef) {
	if !s.o.InOrder {
		refs = slices.Clone(refs)
		slices.SortFunc(refs, func(a, b leafRef) int {
			if a.id < b.id {
				return -1
			}
			return 1
		})
	}
	ps := s.w.f.pageSize
	if s.buf == nil {
		s.buf = make([]byte, max(chunkBytes, ps))
	}
	perChunk := uint32(int64(len(s.buf)) / ps)
	for i := 0; i < len(refs); {
		if ctx.Err() != nil {
			return
		}
		// A run is pages whose ids follow each other, with one missing at most: it
		// costs less to copy a page than to ask for the next ones separately.
		j := i + 1
		for j < len(refs) && refs[j].id > refs[j-1].id && refs[j].id-refs[j-1].id <= 2 && refs[j].id-refs[i].id < perChunk {
			j++
		}
		base := int64(refs[i].id) * ps
		want := int64(refs[j-1].id-refs[i].id+1) * ps
		n, err := s.w.f.r.ReadAt(s.buf[:min(want, s.w.f.size-base)], base)
		got := s.buf[:n]
		for k := i; k < j; k++ {
			off := int64(refs[k].id-refs[i].id) * ps
			if off+pageHeader > int64(n) {
				c := BeyondEnd
				if err != nil && base+off+pageHeader <= s.w.f.size {
					c = ReadError
				}
				s.lose(refs[k], c, "the page cannot be read")
				continue
			}
			end := int64(n)
			s.page(refs[k], got[off:end:end])
		}
		if s.o.Progress != nil {
			s.o.Progress(j - i)
		}
		i = j
	}
}

// lose records that a listed page is gone with everything on it.
func (s *scanner) lose(r leafRef, c Class, detail string) {
	if s.salvage {
		return
	}
	lo, hi := s.leaves.bounds.at(r.seq), s.leaves.bounds.at(r.seq+1)
	d := Damage{Page: uint64(r.id), Class: c, Bucket: s.leaves.Bucket, Detail: detail, Lost: "the page", Elements: -1, Lo: slices.Clone(lo), Hi: slices.Clone(hi)}
	s.log.add(d)
	if len(s.lost) < s.log.limit {
		s.lost = append(s.lost, lostRange{bucket: d.Bucket, lo: d.Lo, hi: d.Hi})
	}
}

func (s *scanner) note(page uint64, c Class, lost int, what, detail string) {
	if s.salvage {
		return
	}
	s.log.add(Damage{Page: page, Class: c, Bucket: s.leaves.Bucket, Detail: detail, Lost: what, Elements: lost})
}
