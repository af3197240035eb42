// Package walframe reads etcd write-ahead logs and raft snapshot files as evidence.
//
// It walks the frames of every segment itself, keeps the checksum chain, goes
// on after a break and says what was lost, so that a shortened or damaged log
// never looks like a whole one. It works over io.ReaderAt with a fixed amount
// of memory, opens nothing, locks nothing, and keeps no stored value: of an
// entry only its place, its kind, sizes and membership data stay.
//
// The format is that of etcd's storage/wal (3.2 to 3.7): a frame is an 8-byte
// little-endian length field (56 bits of length, then a byte holding 0x80 and
// the number of padding bytes), a walpb.Record {1 type, 2 crc, 3 data}, and the
// padding to a multiple of eight. A record's crc is CRC-32C over the data of
// every record so far, chained from segment to segment.
//
// It imports nothing of coldplane and may be used by collector and analyzer.
package walframe
