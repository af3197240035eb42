package redact

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"

	"coldplane/bundle/decode/boltpage"
	"coldplane/bundle/decode/kubevalue"
)

// StoreOptions of Store.
type StoreOptions struct {
	Level   Level
	Workers int // default 1
	// InPlace says that the output is the input: a file of ours that is overwritten.
	// Otherwise the output must read as zeros before.
	InPlace bool
	// Secret sees the contents of Secrets before they are overwritten. It may be
	// called from several goroutines.
	Secret func([]byte)
	// Scrubbed sees every record of the key bucket after it was scrubbed: revision,
	// key, value. They are valid only until it returns. It is called by one worker
	// at a time only when Workers is 1.
	Scrubbed func(rev, key, value []byte)
	// Progress is told how many leaf pages were done since its last call.
	Progress func(pages int)
}

// A StoreResult says what a scrub did.
type StoreResult struct {
	Trailer  Trailer
	Pages    uint64 // below the high water mark
	Zeroed   uint64 // of them, pages that nothing points to
	Elements int64
	Damage   int // what the walk found wrong in the source
	DamageOf []string
	Defects  int // values that the scrub failed at and overwrote whole
}

// A Trailer says what became of the SHA-256 behind a snapshot.
type Trailer uint8

// Trailers.
const (
	NoTrailer    Trailer = iota
	GoodTrailer          // it matched the source
	WrongTrailer         // it did not
)

// A scrubbed snapshot carries, instead of the digest of the source, one of these
// texts of the same length. They keep etcdutl from restoring it and tell a reader
// what the digest of the source was worth.
const (
	TrailerWasGood  = "coldplane: scrubbed; sha256 good"
	TrailerWasWrong = "coldplane: scrubbed; sha256 bad "
)

var errNoPages = errors.New("no usable page of a database in it")

// Store writes a scrubbed copy of a bolt file: every key, length and position is
// that of the source, values are overwritten by level, and pages that nothing
// points to, the slack of pages and everything that cannot be accounted for are
// zero. size is that of the source with its trailer, if it has one; out must be
// size bytes long.
//
// What is written is built from what was understood; nothing is copied because it
// was not recognised as secret.
func Store(ctx context.Context, in io.ReaderAt, size int64, out io.WriterAt, o StoreOptions) (StoreResult, error) {
	var res StoreResult
	dbSize := size
	if size%512 == sha256.Size {
		dbSize = size - sha256.Size
	}
	f, err := boltpage.Open(in, dbSize)
	if err != nil {
		return res, err
	}
	if f.Rootless() {
		return res, errNoPages
	}
	// The digest is of the source: in place it must be taken before the first
	// write, otherwise it runs beside the walk.
	digest := make(chan error, 1)
	sum := sha256.New()
	hash := func() { digest <- hashRange(ctx, sum, in, dbSize) }
	if size != dbSize {
		if o.InPlace {
			hash()
		} else {
			go hash()
		}
	}
	var old [sha256.Size]byte
	if size != dbSize {
		if _, err := in.ReadAt(old[:], dbSize); err != nil && err != io.EOF {
			return res, err
		}
	}
	s := &storeScrub{ctx: ctx, f: f, in: in, out: out, o: o, values: NewValues(o.Level, o.Secret), pages: uint64((dbSize + f.PageSize() - 1) / f.PageSize())}
	s.done = make([]atomic.Uint32, s.pages/32+1)
	if err := s.run(dbSize); err != nil {
		return res, err
	}
	res.Pages, res.Zeroed, res.Elements, res.Defects = f.HWM(), s.zeroed, s.elements.Load(), int(s.defects.Load())
	list, dropped := s.walk.Damage()
	if s.lostRoot != nil && s.lostRoot != s.walk {
		more, d := s.lostRoot.Damage()
		list, dropped = append(list, more...), dropped+d
	}
	res.Damage = len(list) + dropped
	for i := range min(len(list), 20) {
		res.DamageOf = append(res.DamageOf, list[i].String())
	}
	if size != dbSize {
		if err := <-digest; err != nil {
			return res, err
		}
		text := TrailerWasWrong
		res.Trailer = WrongTrailer
		if [sha256.Size]byte(sum.Sum(nil)) == old {
			text, res.Trailer = TrailerWasGood, GoodTrailer
		}
		if _, err := out.WriteAt([]byte(text), dbSize); err != nil {
			return res, err
		}
	}
	return res, ctx.Err()
}

func hashRange(ctx context.Context, h io.Writer, in io.ReaderAt, size int64) error {
	buf := make([]byte, 256<<10)
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.ReadAt(buf[:min(int64(len(buf)), size-off)], off)
		if n == 0 {
			return err
		}
		_, _ = h.Write(buf[:n]) // a hash does not fail
		off += int64(n)
	}
	return nil
}

type storeScrub struct {
	ctx      context.Context
	f        *boltpage.File
	in       io.ReaderAt
	out      io.WriterAt
	o        StoreOptions
	values   *Values
	walk     *boltpage.Walk
	lostRoot *boltpage.Walk // the walk from the meta page's root, when another one was taken
	pages    uint64
	done     []atomic.Uint32 // bitmap of pages that are written
	zeroed   uint64
	elements atomic.Int64
	defects  atomic.Int64
	patches  []patch
}

// A patch is a piece of an inline bucket: it is written after the page it lies
// on.
type patch struct {
	off int64
	b   []byte
}

func (s *storeScrub) mark(first, n uint64) {
	for id := first; id < first+n && id < s.pages; id++ {
		s.done[id/32].Or(1 << (id % 32))
	}
}

func (s *storeScrub) isDone(id uint64) bool { return s.done[id/32].Load()&(1<<(id%32)) != 0 }

// maxWhole is the largest element that is rewritten; of larger ones only the key
// stays. etcd's own limit for a request is 1.5 MiB.
const maxWhole = kubevalue.MaxValue + 64<<10

func (s *storeScrub) run(dbSize int64) error {
	s.walk = s.f.NewWalk(boltpage.Limits{})
	buckets, err := s.walk.Buckets(s.ctx)
	if err != nil {
		return err
	}
	if !hasKeys(buckets) && !s.walk.Clean() {
		if buckets, err = s.otherRoot(buckets); err != nil {
			return err
		}
	}
	for _, b := range buckets {
		var ws []*pageWriter
		l := s.walk.List(b)
		err := s.walk.Scan(s.ctx, l, boltpage.ScanOptions{Workers: s.o.Workers, Whole: maxWhole, Progress: s.o.Progress}, func(int) func(*boltpage.Elem) {
			w := &pageWriter{s: s, bucket: b.Name, inline: b.Inline()}
			ws = append(ws, w)
			return w.element
		})
		for _, w := range ws {
			w.flush()
			if w.err != nil && err == nil {
				err = w.err
			}
		}
		if err != nil {
			return err
		}
		head := make([]byte, 16, 32) // root page and sequence
		if b.Inline() {
			head = head[:32] // and the header of the page inside
		}
		if _, err := s.in.ReadAt(head, b.ValOff); err != nil && err != io.EOF {
			return err
		}
		if b.Inline() && le16(head[24:]) != 2 {
			head = head[:16]
		}
		s.patches = append(s.patches, patch{b.ValOff - int64(len(b.Name)), append([]byte(b.Name), head...)})
	}
	return s.rest(dbSize)
}

func hasKeys(bs []boltpage.Bucket) bool {
	return slices.ContainsFunc(bs, func(b boltpage.Bucket) bool { return b.Name == "key" })
}

// maxRoots bounds the candidates for a lost root that are tried.
const maxRoots = 64

// otherRoot looks, in a copy whose root is not one any more, for the newest root
// that is left: what an analysis of the source would read must be in the copy.
func (s *storeScrub) otherRoot(buckets []boltpage.Bucket) ([]boltpage.Bucket, error) {
	s.lostRoot = s.walk
	cand, err := s.walk.Candidates(s.ctx)
	if err != nil {
		return nil, err
	}
	var newest uint64
	tried := 0
	for _, c := range cand {
		if !c.Buckets || tried >= maxRoots {
			continue
		}
		tried++
		w := s.f.NewWalkAt(c.Page, boltpage.Limits{})
		bs, err := w.Buckets(s.ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(bs, func(b boltpage.Bucket) bool { return b.Name == "meta" })
		if i < 0 || !hasKeys(bs) {
			continue
		}
		var index uint64
		err = w.Scan(s.ctx, w.List(bs[i]), boltpage.ScanOptions{}, func(int) func(*boltpage.Elem) {
			return func(e *boltpage.Elem) {
				if string(e.Key) == "consistent_index" && len(e.Val) == 8 {
					index = binary.BigEndian.Uint64(e.Val)
				}
			}
		})
		if err != nil {
			return nil, err
		}
		if s.walk == s.lostRoot || index >= newest {
			newest = index
			s.walk = s.f.NewWalkAt(c.Page, boltpage.Limits{}) // a fresh one: it claims each page once
			if buckets, err = s.walk.Buckets(s.ctx); err != nil {
				return nil, err
			}
		}
	}
	return buckets, nil
}

// rest writes what holds no values: meta pages, branch pages, the root bucket's
// leaves; and, in place, zeros over everything else.
func (s *storeScrub) rest(dbSize int64) error {
	ps := s.f.PageSize()
	metas, _ := s.f.Metas()
	for id := uint64(0); id < s.pages; id++ {
		if id%1024 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if s.isDone(id) {
			continue
		}
		var img []byte
		n := uint64(1)
		switch {
		case id < 2:
			img = make([]byte, 16+64)
			if metas[id].State != boltpage.MetaValid && metas[id].State != boltpage.MetaRootWrong {
				img = nil
				break
			}
			if _, err := s.in.ReadAt(img, int64(id)*ps); err != nil {
				return err
			}
		case id < s.f.HWM() && (s.walk.Reached(id) || s.lostRoot != nil && s.lostRoot.Reached(id)):
			img, n = s.structure(id)
		default:
			if id < s.f.HWM() {
				s.zeroed++
			}
		}
		end := min(int64(id+n)*ps, dbSize)
		if err := s.write(img, int64(id)*ps, end); err != nil {
			return err
		}
		s.mark(id, n)
	}
	for _, p := range s.patches {
		if p.off < 0 || p.off+int64(len(p.b)) > dbSize {
			continue
		}
		if _, err := s.out.WriteAt(p.b, p.off); err != nil {
			return err
		}
	}
	return nil
}

// write puts img at off and, in place, zeros behind it up to end.
func (s *storeScrub) write(img []byte, off, end int64) error {
	img = img[:min(int64(len(img)), max(0, end-off))]
	if len(img) > 0 {
		if _, err := s.out.WriteAt(img, off); err != nil {
			return err
		}
	}
	if !s.o.InPlace {
		return nil
	}
	for at := off + int64(len(img)); at < end; {
		n, err := s.out.WriteAt(zeros[:min(int64(len(zeros)), end-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

var zeros [64 << 10]byte

// structure returns what may stay of a reached page that no element was read
// from: a branch page with its keys, an empty leaf, a leaf of the root bucket, a
// free list. Its extent is that of the header, as far as nothing else was written
// there.
func (s *storeScrub) structure(id uint64) (img []byte, n uint64) {
	ps := s.f.PageSize()
	h := make([]byte, 16)
	if k, _ := s.in.ReadAt(h, int64(id)*ps); k < len(h) || le64(h) != id {
		return nil, 1
	}
	flags, count, overflow := le16(h[8:]), int(le16(h[10:])), uint64(le32(h[12:]))
	n = 1
	for n <= overflow && n < 256 && id+n < s.pages && s.walk.Reached(id+n) && !s.isDone(id+n) {
		n++
	}
	size := int64(n) * ps
	raw := make([]byte, size)
	k, _ := s.in.ReadAt(raw, int64(id)*ps)
	raw = raw[:k]
	img = make([]byte, len(raw))
	copy(img, h)
	switch flags {
	case 0x02:
		table(img, raw, count, func(e []byte) bool {
			return le32(e) <= 1 && le32(e[4:]) < 1<<26 && le32(e[8:]) < 1<<16 && le32(e[12:]) < 1<<26
		})
	case 0x01:
		table(img, raw, count, func(e []byte) bool { return le64(e[8:]) < s.f.HWM() && le32(e[4:]) < 1<<16 })
		for i := range count {
			e := 16 + 16*i
			if e+16 > len(img) || le64(img[e+8:]) == 0 {
				continue
			}
			from, size := int64(e)+int64(le32(raw[e:])), int64(le32(raw[e+4:]))
			if size <= 64 && from+size <= int64(len(raw)) {
				copy(img[from:], raw[from:from+size])
			}
		}
	case 0x10:
		for i := 16; i+8 <= len(raw); i += 8 { // page ids only
			if le64(raw[i:]) < s.f.HWM() {
				copy(img[i:], raw[i:i+8])
			}
		}
	default:
		return nil, 1
	}
	return img, n
}

// table copies the entries of an element table that look like one.
func table(img, raw []byte, count int, ok func(e []byte) bool) {
	for i := range count {
		e := 16 + 16*i
		if e+16 > len(raw) {
			return
		}
		if ok(raw[e : e+16]) {
			copy(img[e:], raw[e:e+16])
		}
	}
}

// A pageWriter builds pages from their elements and writes runs of neighbours
// together. One worker owns it.
type pageWriter struct {
	s      *storeScrub
	bucket string
	inline bool
	run    []byte // consecutive pages
	at     int64  // file offset of run
	page   int64  // offset of the current page inside run; -1 none
	base   int64  // file offset of the current page
	have   bool
	err    error
}

const (
	maxRun  = 256 << 10
	maxPage = 16 << 20 // of a page with its overflow, in memory
)

func (w *pageWriter) element(e *boltpage.Elem) {
	if w.err != nil {
		return
	}
	w.s.elements.Add(1)
	if w.inline {
		w.inlineElement(e)
		return
	}
	if !w.have || e.Base != w.base {
		w.begin(e)
	}
	img := w.run[w.page:]
	entry := 16 + 16*e.Index
	copy(img[entry:entry+16], e.Head[entry:entry+16])
	put(img, e.KeyOff-e.Base, e.Key)
	if len(e.Val) == e.ValLen {
		if dst := put(img, e.ValOff-e.Base, e.Val); dst != nil {
			w.s.value(w.bucket, e.Key, dst)
		}
	}
}

func put(img []byte, at int64, b []byte) []byte {
	if at < 0 || at+int64(len(b)) > int64(len(img)) {
		return nil
	}
	copy(img[at:], b)
	return img[at : at+int64(len(b)) : at+int64(len(b))]
}

func (w *pageWriter) begin(e *boltpage.Elem) {
	ext := e.Extent
	if ext > maxPage {
		ext = maxPage // the rest stays zero: no value of etcd is that large
	}
	if w.have && (w.at+int64(len(w.run)) != e.Base || int64(len(w.run))+ext > maxRun) {
		w.flush()
	}
	if !w.have {
		w.at, w.run, w.have = e.Base, w.run[:0], true
	}
	w.page, w.base = int64(len(w.run)), e.Base
	old := len(w.run)
	if cap(w.run) < old+int(ext) {
		grown := make([]byte, old, max(maxRun, old+int(ext)))
		copy(grown, w.run)
		w.run = grown
	}
	w.run = w.run[:old+int(ext)]
	clear(w.run[old:])
	img := w.run[w.page:]
	copy(img, e.Head[:16])
	// Entries of elements that were not understood stay when they are numbers; the
	// damage they are remains visible.
	table(img, e.Head, (len(e.Head)-16)/16, func(x []byte) bool {
		return le32(x) <= 1 && le32(x[4:]) < 1<<26 && le32(x[8:]) < 1<<16 && le32(x[12:]) < 1<<26
	})
	ps := w.s.f.PageSize()
	w.s.mark(uint64(e.Base/ps), uint64((e.Extent+ps-1)/ps))
	if w.s.o.InPlace && e.Extent > ext {
		if err := w.s.write(nil, e.Base+ext, e.Base+e.Extent); err != nil {
			w.err = err
		}
	}
}

func (w *pageWriter) flush() {
	if w.have && w.err == nil {
		_, w.err = w.s.out.WriteAt(w.run, w.at)
	}
	w.have = false
	if cap(w.run) > 4*maxRun {
		w.run = nil
	}
}

// inlineElement keeps an element of a bucket that lives in its parent's page.
func (w *pageWriter) inlineElement(e *boltpage.Elem) {
	if !w.have {
		w.have = true
		w.page = 0
		w.s.patches = append(w.s.patches, patch{e.Base, append([]byte(nil), e.Head...)})
		w.run = w.run[:0]
		w.at = e.Base
	}
	val := append([]byte(nil), e.Val...)
	if len(val) == e.ValLen {
		w.s.value(w.bucket, e.Key, val)
	} else {
		val = nil
	}
	w.s.patches = append(w.s.patches, patch{e.KeyOff, append([]byte(nil), e.Key...)}, patch{e.ValOff, val})
}

// value scrubs the value of one element of a bucket in place. A defect at one
// value costs that value: it is overwritten whole, and counted.
func (s *storeScrub) value(bucket string, key, v []byte) {
	defer func() {
		if recover() != nil {
			kubevalue.FillText(v)
			s.defects.Add(1)
		}
	}()
	switch bucket {
	case "key":
		s.record(key, v)
	case "meta", "cluster", "members", "members_removed", "alarm", "lease", "auth", "authRoles", "authRevision":
		if Check(v) {
			return
		}
	case "authUsers":
		// authpb.User: 1 name, 2 password, 3 roles, 4 options
		p := &kubevalue.Policy{Action: kubevalue.Descend, Fields: map[protowire.Number]*kubevalue.Policy{
			1: {Action: kubevalue.Keep}, 3: {Action: kubevalue.Keep}, 4: {Action: kubevalue.Keep}}}
		if kubevalue.ScrubMessage(v, p, kubevalue.Options{Overwritten: s.o.Secret}) != nil {
			kubevalue.FillText(v)
		}
	default:
		kubevalue.FillText(v)
	}
}

// record scrubs one mvccpb.KeyValue: 1 key, 5 value; the rest are numbers.
func (s *storeScrub) record(rev, b []byte) {
	if len(b) == 0 {
		return
	}
	var key, value []byte
	for rest := b; len(rest) > 0; {
		num, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			kubevalue.FillText(b)
			return
		}
		rest = rest[n:]
		if typ != protowire.BytesType {
			n := protowire.ConsumeFieldValue(num, typ, rest)
			if n < 0 || typ == protowire.StartGroupType {
				kubevalue.FillText(b)
				return
			}
			rest = rest[n:]
			continue
		}
		c, n := protowire.ConsumeBytes(rest)
		if n < 0 {
			kubevalue.FillText(b)
			return
		}
		rest = rest[n:]
		switch {
		case num == 1 && key == nil:
			key = c
		case num == 5 && value == nil:
			value = c
		default: // unknown, or a second one that a reader may prefer
			kubevalue.Fill(c)
		}
	}
	s.values.Scrub(key, value)
	if s.o.Scrubbed != nil {
		s.o.Scrubbed(rev, key, value)
	}
}

func le16(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }
func le32(b []byte) uint32 { return uint32(le16(b)) | uint32(le16(b[2:]))<<16 }
func le64(b []byte) uint64 { return uint64(le32(b)) | uint64(le32(b[4:]))<<32 }

// Describe is one line about a result.
func (r StoreResult) Describe() string {
	s := fmt.Sprintf("%d pages, %d unreachable ones zeroed, %d records", r.Pages, r.Zeroed, r.Elements)
	if r.Damage > 0 {
		s += fmt.Sprintf(", %d places of damage", r.Damage)
	}
	if r.Defects > 0 {
		s += fmt.Sprintf(", %d values overwritten whole after a defect of this program", r.Defects)
	}
	return s
}
