package etcdstore

import (
	"hash/maphash"
	"sync"
)

// parts is the number of sub-tables, chosen by the top bits of a key's hash, so
// that workers seldom wait for each other and summing up runs in parallel.
const (
	partBits = 4
	parts    = 1 << partBits
	blockLen = 1024
	arenaLen = 64 << 10
)

// An entry is what is kept of one etcd key. It holds no pointer: the collector
// does not look inside.
type entry struct {
	hash    uint64
	keyAt   uint64 // arena number and offset
	recOff  int64  // file offset of the newest record
	main    int64  // its revision
	hist    uint64 // bytes of all records of the key, revision keys included
	sub     uint32
	recLen  uint32
	size    uint32 // bytes of the newest value
	revs    uint32 // records
	tombs   uint32
	keyLen  uint16
	format  uint16 // index into the formats, of the newest value
	version uint32 // etcd's per-key version of the newest record, saturating
	flags   uint8
}

const (
	flagDead uint8 = 1 << iota
	flagLeased
	flagTracked
	flagSalvaged
)

func (e *entry) dead() bool { return e.flags&flagDead != 0 }

// A table maps keys to entries: an open-addressing index of 64-bit slots (low
// half entry number + 1, high half hash bits) over blocks that never move.
type table struct {
	mu     sync.Mutex // held by a worker from lock to its last change of the entry
	index  []uint64
	mask   uint64
	n      int
	blocks []*[blockLen]entry
	arenas [][]byte
}

func (t *table) init(n int) {
	c := 1024
	for c < n*2 {
		c *= 2
	}
	t.index, t.mask = make([]uint64, c), uint64(c-1)
}

func (t *table) at(i int) *entry { return &t.blocks[i/blockLen][i%blockLen] }

func (t *table) key(e *entry) []byte {
	a := t.arenas[e.keyAt>>32]
	o := uint64(uint32(e.keyAt))
	return a[o : o+uint64(e.keyLen) : o+uint64(e.keyLen)]
}

// find returns the entry of a key, nil if there is none, and the slot where the
// search ended.
func (t *table) find(h uint64, key []byte) (*entry, uint64) {
	const high = 0xffffffff00000000
	i := h & t.mask
	for {
		s := t.index[i]
		if s == 0 {
			return nil, i
		}
		if s&high == h&high {
			e := t.at(int(uint32(s)) - 1)
			if e.hash == h && string(t.key(e)) == string(key) {
				return e, i
			}
		}
		i = (i + 1) & t.mask
	}
}

// put returns the entry of a key and makes it if there is none. A key that is
// known costs no allocation.
func (t *table) put(h uint64, key []byte) (e *entry, fresh bool) {
	if t.index == nil {
		t.init(0)
	}
	e, slot := t.find(h, key)
	if e != nil {
		return e, false
	}
	if t.n*3 > len(t.index)*2 {
		t.grow()
		_, slot = t.find(h, key)
	}
	if t.n%blockLen == 0 {
		t.blocks = append(t.blocks, new([blockLen]entry))
	}
	e = t.at(t.n)
	t.n++
	t.index[slot] = h&0xffffffff00000000 | uint64(t.n)
	e.hash, e.keyLen = h, uint16(len(key))
	last := len(t.arenas) - 1
	if last < 0 || cap(t.arenas[last])-len(t.arenas[last]) < len(key) {
		t.arenas = append(t.arenas, make([]byte, 0, max(arenaLen, len(key))))
		last++
	}
	e.keyAt = uint64(last)<<32 | uint64(len(t.arenas[last]))
	t.arenas[last] = append(t.arenas[last], key...)
	return e, true
}

func (t *table) grow() {
	old := t.index
	t.index = make([]uint64, 2*len(old))
	t.mask = uint64(len(t.index) - 1)
	for _, s := range old {
		if s == 0 {
			continue
		}
		i := t.at(int(uint32(s))-1).hash & t.mask
		for t.index[i] != 0 {
			i = (i + 1) & t.mask
		}
		t.index[i] = s
	}
}

// newer reports whether a revision is above the entry's.
func (e *entry) newer(main int64, sub uint32) bool {
	return main > e.main || main == e.main && sub >= e.sub
}

// A keyTable is the table in its parts, shared by all workers of a pass: tables of
// their own would hold the keys of both twice.
type keyTable struct {
	seed maphash.Seed
	part [parts]table
}

// lock returns the entry of a key, made if there is none, and its part, locked.
func (k *keyTable) lock(key []byte) (e *entry, fresh bool, t *table) {
	h := maphash.Bytes(k.seed, key)
	t = &k.part[h>>(64-partBits)]
	t.mu.Lock()
	e, fresh = t.put(h, key)
	return e, fresh, t
}

func (k *keyTable) find(key []byte) (*entry, *table) {
	h := maphash.Bytes(k.seed, key)
	t := &k.part[h>>(64-partBits)]
	if t.index == nil {
		return nil, t
	}
	e, _ := t.find(h, key)
	return e, t
}

func (k *keyTable) len() (n int) {
	for i := range k.part {
		n += k.part[i].n
	}
	return n
}
