package walframe

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// MaxSnapBytes is the largest raft snapshot file that is read. It holds
// membership and, on clusters that used the v2 API, v2 keys; etcd 3 writes a
// few kilobytes.
const MaxSnapBytes = 64 << 20

// Why a snapshot file could not be used. Decide with errors.Is.
var (
	ErrSnapEmpty    = errors.New("snapshot file is empty")
	ErrSnapTooLarge = errors.New("snapshot file is larger than is read")
	ErrSnapFormat   = errors.New("not a raft snapshot file")
	ErrSnapChecksum = errors.New("snapshot checksum does not fit")
	ErrSnapStore    = errors.New("v2 store in the snapshot cannot be read")
)

// A SnapFile is a raft snapshot: where the log may start and who the members
// were there.
type SnapFile struct {
	Name        string
	Size        int64
	Index, Term uint64
	ConfState   ConfState
	Store       V2Store
	// NameDiffers is set when the file name says another term or index.
	NameDiffers bool
}

// ReadSnap reads a raft snapshot file of the given size. With an error the
// returned value holds what was read before it.
func ReadSnap(name string, r io.ReaderAt, size int64) (SnapFile, error) {
	s := SnapFile{Name: name, Size: size}
	switch {
	case size <= 0:
		return s, ErrSnapEmpty
	case size > MaxSnapBytes:
		return s, fmt.Errorf("%w: %d bytes", ErrSnapTooLarge, size)
	}
	b := make([]byte, size)
	if n, err := readAt(r, b, 0); err != nil {
		return s, fmt.Errorf("read %d of %d bytes: %w", n, size, err)
	}
	var crc uint64
	var data []byte
	ok := fields(b, func(num protowire.Number, wt protowire.Type, v uint64, p []byte) bool {
		switch {
		case num == 1 && wt == protowire.VarintType && v < 1<<32:
			crc = v
		case num == 2 && wt == protowire.BytesType:
			data = p
		default:
			return false
		}
		return true
	})
	if !ok {
		return s, ErrSnapFormat
	}
	if len(data) == 0 || crc == 0 {
		return s, ErrSnapEmpty
	}
	if got := crc32.Checksum(data, castagnoli); got != uint32(crc) {
		return s, fmt.Errorf("%w: %08x, the file says %08x", ErrSnapChecksum, got, crc)
	}
	store, ok := s.raft(data)
	if !ok {
		return s, ErrSnapFormat
	}
	if term, index, ok := ParseSnapName(name); ok {
		s.NameDiffers = term != s.Term || index != s.Index
	}
	if len(store) == 0 {
		return s, nil // 3.8 and newer are announced to write none
	}
	v2, err := parseV2Store(store)
	s.Store = v2
	return s, err
}

// raft reads a raftpb.Snapshot and returns its data.
func (s *SnapFile) raft(b []byte) (store []byte, ok bool) {
	ok = fields(b, func(num protowire.Number, wt protowire.Type, _ uint64, p []byte) bool {
		if wt != protowire.BytesType {
			return false
		}
		switch num {
		case 1:
			store = p
		case 2:
			return fields(p, func(num protowire.Number, wt protowire.Type, v uint64, q []byte) bool {
				good := true
				switch {
				case num == 1 && wt == protowire.BytesType:
					s.ConfState, good = parseConfState(q)
				case num == 2 && wt == protowire.VarintType:
					s.Index = v
				case num == 3 && wt == protowire.VarintType:
					s.Term = v
				default:
					good = false
				}
				return good
			})
		}
		return true
	})
	return store, ok
}
