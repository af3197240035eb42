package boltpage

import (
	"math/bits"
	"sync/atomic"
)

// claims is a bitmap of pages that belong to something. A page can be taken once.
type claims struct {
	words []uint64
	n     uint64
}

func newClaims(n uint64) *claims { return &claims{words: make([]uint64, n/64+1), n: n} }

// take claims a page and reports whether it was free. Safe for concurrent use.
func (c *claims) take(id uint64) bool {
	if id >= c.n {
		return false
	}
	bit := uint64(1) << (id & 63)
	return atomic.OrUint64(&c.words[id>>6], bit)&bit == 0
}

// takeTail claims the n pages after id and returns how many it got before it met
// one that is taken.
func (c *claims) takeTail(id, n uint64) uint64 {
	for o := uint64(1); o <= n; o++ {
		if !c.take(id + o) {
			return o - 1
		}
	}
	return n
}

func (c *claims) release(id uint64) {
	if id < c.n {
		atomic.AndUint64(&c.words[id>>6], ^(uint64(1) << (id & 63)))
	}
}

func (c *claims) has(id uint64) bool {
	return id < c.n && atomic.LoadUint64(&c.words[id>>6])&(1<<(id&63)) != 0
}

func (c *claims) count() (n uint64) {
	for _, w := range c.words {
		n += uint64(bits.OnesCount64(w))
	}
	return n
}
