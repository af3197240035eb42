package boltpage

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"math/bits"
)

// Sizes and marks of the format (go.etcd.io/bbolt internal/common).
const (
	magic       = 0xED0CDAED
	version     = 2
	pageHeader  = 16
	elemSize    = 16
	metaBytes   = pageHeader + 64
	bucketBytes = 16
	noFreelist  = ^uint64(0)

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagMeta     = 0x04
	flagFreelist = 0x10
	elemBucket   = 0x01

	// MinPageSize and MaxPageSize bound the page sizes that are recognised.
	MinPageSize = 1 << 10
	MaxPageSize = 64 << 10
	// MaxKey is the longest key bbolt accepts.
	MaxKey = 32768
)

// The reasons why a file cannot be opened at all. A file with both meta pages
// lost is not among them as long as its page size can be told: it opens without
// a root, see File.Rootless.
var (
	ErrEmpty       = errors.New("the file is empty")
	ErrTooSmall    = errors.New("too small for a bolt file")
	ErrNotBolt     = errors.New("no bolt meta page and no page that looks like bolt's")
	ErrByteSwapped = errors.New("written on a machine of the other byte order")
	ErrTooLarge    = errors.New("more than 2^32 pages")
)

// A MetaState says what one of the two meta pages is.
type MetaState uint8

const (
	MetaValid     MetaState = iota // magic, version, checksum and fields are right
	MetaAbsent                     // beyond the end of the file, or its place is unknown
	MetaMagic                      // not a meta page
	MetaSwapped                    // the magic number in the other byte order
	MetaVersion                    // a format version that bbolt never wrote
	MetaChecksum                   // the checksum is wrong
	MetaFields                     // the checksum is right and a field is impossible
	MetaRootWrong                  // valid, but its root page is not readable as one
)

var metaStateText = [...]string{"valid", "absent", "not a meta page", "byte-swapped", "unknown version", "checksum wrong", "impossible field", "root page unreadable"}

func (s MetaState) String() string { return metaStateText[s] }

// A Meta is one meta page as read.
type Meta struct {
	State    MetaState
	PageSize uint32
	Root     uint64 // page id of the root bucket's tree
	Freelist uint64 // page id, all ones when the free list is not stored
	HWM      uint64 // high water mark: pages in the database
	Txid     uint64
}

// FreelistStored reports whether the file carries its free list. etcd's own
// files on Linux never do.
func (m Meta) FreelistStored() bool { return m.Freelist != noFreelist }

// A File is an opened bolt file. It is safe for concurrent reading.
type File struct {
	r        io.ReaderAt
	size     int64
	pageSize int64
	pages    uint64 // pages that the meta claims and the file holds at least in part
	all      uint64 // pages that the file holds at least in part
	metas    [2]Meta
	chosen   int  // -1: no usable meta page
	noRoot   bool // the chosen meta page leads nowhere
}

// Open judges both meta pages and chooses the one that counts. size is the number
// of bytes that belong to the database file; a trailer must be left out by the
// caller.
func Open(r io.ReaderAt, size int64) (*File, error) {
	if size == 0 {
		return nil, ErrEmpty
	}
	if size < 2*MinPageSize {
		return nil, ErrTooSmall
	}
	f := &File{r: r, size: size, chosen: -1}
	f.metas[0] = f.readMeta(0)
	f.metas[1] = Meta{State: MetaAbsent}
	if f.metas[0].State == MetaValid {
		f.metas[1] = f.readMeta(int64(f.metas[0].PageSize))
	} else {
		f.findSecondMeta()
	}
	for i, m := range f.metas {
		if m.State == MetaValid && (f.chosen < 0 || m.Txid > f.metas[f.chosen].Txid) {
			f.chosen = i
		}
	}
	if f.chosen < 0 {
		if f.metas[0].State == MetaSwapped || f.metas[1].State == MetaSwapped {
			return nil, ErrByteSwapped
		}
		f.pageSize = f.guessPageSize()
		if f.pageSize == 0 {
			return nil, ErrNotBolt
		}
		f.pages = uint64((size + f.pageSize - 1) / f.pageSize)
		f.all = f.pages
		return f, f.tooLarge()
	}
	f.setChosen(f.chosen)
	// A transaction that was lost half way, or a copy of a live file, can leave the
	// newer meta page pointing at nothing while the older tree is still whole.
	if !f.rootReadable(f.metas[f.chosen].Root) {
		o := 1 - f.chosen
		f.noRoot = true
		if f.metas[o].State == MetaValid {
			f.setChosen(o)
			if f.rootReadable(f.metas[o].Root) {
				f.metas[1-o].State = MetaRootWrong
				f.noRoot = false
			} else {
				f.setChosen(1 - o)
			}
		}
	}
	if f.noRoot {
		f.metas[f.chosen].State = MetaRootWrong
		if ps := f.guessPageSize(); ps != 0 && ps != f.pageSize {
			// the page size is what is wrong, so nothing of the meta page counts
			f.chosen, f.pageSize = -1, ps
		}
		f.all = uint64((size + f.pageSize - 1) / f.pageSize)
		f.pages = f.all
	}
	return f, f.tooLarge()
}

func (f *File) tooLarge() error {
	if f.all >= 1<<32-1 {
		return ErrTooLarge
	}
	return nil
}

func (f *File) setChosen(i int) {
	f.chosen = i
	f.pageSize = int64(f.metas[i].PageSize)
	f.all = uint64((f.size + f.pageSize - 1) / f.pageSize)
	f.pages = min(f.metas[i].HWM, f.all)
}

func (f *File) readMeta(off int64) Meta {
	var b [metaBytes]byte
	if off+metaBytes > f.size {
		return Meta{State: MetaAbsent}
	}
	if _, err := f.r.ReadAt(b[:], off); err != nil {
		return Meta{State: MetaAbsent}
	}
	p := b[pageHeader:]
	m := Meta{
		PageSize: le.Uint32(p[8:]), Root: le.Uint64(p[16:]), Freelist: le.Uint64(p[32:]),
		HWM: le.Uint64(p[40:]), Txid: le.Uint64(p[48:]),
	}
	h := fnv.New64a()
	h.Write(p[:56])
	switch {
	case le.Uint32(p) == bits.ReverseBytes32(magic):
		m.State = MetaSwapped
	case le.Uint32(p) != magic:
		m.State = MetaMagic
	case le.Uint32(p[4:]) != version:
		m.State = MetaVersion
	case h.Sum64() != le.Uint64(p[56:]):
		m.State = MetaChecksum
	case !validPageSize(m.PageSize) || m.HWM < 3 || m.Root < 2 || m.Root >= m.HWM || m.HWM > 1<<48:
		m.State = MetaFields
	}
	return m
}

// findSecondMeta looks for meta page 1 where each page size would put it. The
// first one that is valid and agrees with its place wins.
func (f *File) findSecondMeta() {
	for ps := int64(MinPageSize); ps <= MaxPageSize; ps <<= 1 {
		m := f.readMeta(ps)
		if m.State == MetaValid && int64(m.PageSize) == ps {
			f.metas[1] = m
			return
		}
		if m.State == MetaSwapped || (m.State != MetaAbsent && m.State != MetaMagic && f.metas[1].State == MetaAbsent) {
			f.metas[1] = m
		}
	}
}

func validPageSize(n uint32) bool {
	return n >= MinPageSize && n <= MaxPageSize && n&(n-1) == 0
}

// guessPageSize tells the page size of a file without meta pages from the page
// ids that pages carry at their start. It looks at up to 4096 places per size.
func (f *File) guessPageSize() int64 {
	best, bestHits := int64(0), 0
	for ps := int64(MinPageSize); ps <= MaxPageSize; ps <<= 1 {
		hits, n := 0, f.size/ps
		step := max(1, n/4096)
		for id := int64(2); id < n; id += step {
			var h [pageHeader]byte
			if _, err := f.r.ReadAt(h[:], id*ps); err != nil {
				break
			}
			fl := le.Uint16(h[8:])
			if le.Uint64(h[:]) == uint64(id) && (fl == flagLeaf || fl == flagBranch || fl == flagFreelist) {
				hits++
			}
		}
		if hits > bestHits {
			best, bestHits = ps, hits
		}
	}
	if bestHits < 2 {
		return 0
	}
	return best
}

func (f *File) rootReadable(id uint64) bool {
	var h [pageHeader]byte
	off := int64(id) * f.pageSize
	if id >= f.pages || off+pageHeader > f.size {
		return false
	}
	if _, err := f.r.ReadAt(h[:], off); err != nil {
		return false
	}
	fl := le.Uint16(h[8:])
	return le.Uint64(h[:]) == id && (fl == flagLeaf || fl == flagBranch)
}

// Metas returns both meta pages as judged, and the index of the one in use, -1
// when there is none.
func (f *File) Metas() (both [2]Meta, chosen int) { return f.metas, f.chosen }

// Meta returns the meta page in use; its State is MetaAbsent in a rootless file.
func (f *File) Meta() Meta {
	if f.chosen < 0 {
		return Meta{State: MetaAbsent}
	}
	return f.metas[f.chosen]
}

// Rootless reports that no meta page leads to a tree: only Candidates and
// NewWalkAt can answer.
func (f *File) Rootless() bool { return f.chosen < 0 || f.noRoot }

// PageSize returns the size of a page in bytes.
func (f *File) PageSize() int64 { return f.pageSize }

// Size returns the length given to Open.
func (f *File) Size() int64 { return f.size }

// HWM returns the high water mark: how many pages the database has. In a
// rootless file it is the number of pages the file holds.
func (f *File) HWM() uint64 {
	if f.chosen < 0 {
		return f.pages
	}
	return f.metas[f.chosen].HWM
}

// DBSize is the size etcd compares with its quota: high water mark times page
// size, never the length of the file.
func (f *File) DBSize() int64 { return int64(f.HWM()) * f.pageSize }

// ReadAt reads raw bytes of the file.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.r.ReadAt(p, off) }

var le = binary.LittleEndian
