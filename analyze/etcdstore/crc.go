package etcdstore

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A gf2 is a 32x32 matrix over the field of two elements, by columns: what
// appending zero bytes does to a CRC is linear.
type gf2 [32]uint32

func (m *gf2) times(v uint32) (sum uint32) {
	for i := 0; v != 0; i, v = i+1, v>>1 {
		if v&1 != 0 {
			sum ^= m[i]
		}
	}
	return sum
}

func (m *gf2) square() (r gf2) {
	for i := range m {
		r[i] = m.times(m[i])
	}
	return r
}

// joinCRC returns the CRC-32C of a followed by b from the sums of both and the
// length of b, so that parts can be summed in parallel.
func joinCRC(a, b uint32, lenB uint64) uint32 {
	if lenB == 0 {
		return a
	}
	var bit gf2 // one zero bit
	bit[0] = crc32.Castagnoli
	for i := 1; i < 32; i++ {
		bit[i] = 1 << (i - 1)
	}
	m := bit.square() // 2 bits
	m = m.square()    // 4
	m = m.square()    // 8: one byte
	for ; lenB != 0; lenB >>= 1 {
		if lenB&1 != 0 {
			a = m.times(a)
		}
		m = m.square()
	}
	return a ^ b
}
