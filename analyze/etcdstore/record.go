package etcdstore

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Revision is an etcd revision: one main number per transaction, one sub
// number per change in it.
type Revision struct{ Main, Sub int64 }

// Less orders revisions as etcd does.
func (r Revision) Less(o Revision) bool {
	return r.Main < o.Main || r.Main == o.Main && r.Sub < o.Sub
}

// parseRevKey decodes a key of the key bucket: main, '_', sub, and 't' behind it
// for a tombstone (server/storage/mvcc/revision.go).
func parseRevKey(k []byte) (main, sub int64, tomb, ok bool) {
	if len(k) != 17 && (len(k) != 18 || k[17] != 't') || k[8] != '_' {
		return 0, 0, false, false
	}
	main, sub = int64(binary.BigEndian.Uint64(k)), int64(binary.BigEndian.Uint64(k[9:]))
	return main, sub, len(k) == 18, main >= 0 && sub >= 0
}

// A kv is an mvccpb.KeyValue of which only the positions are known.
type kv struct {
	key              []byte
	create, mod, ver int64
	valAt, valLen    int // position of the value in the record
	lease            int64
	leaseSet         bool
}

// parseKV decodes the beginning of a record of size bytes; b may hold less than
// all of it, as long as the key is whole. ok is false for anything that etcd did
// not write; short reports that b ends too early to tell.
func parseKV(b []byte, size int) (r kv, ok, short bool) {
	for i := 0; i < len(b); {
		tag := b[i]
		i++
		switch tag {
		case 0x0a, 0x2a: // key, value
			l, n := protowire.ConsumeVarint(b[i:])
			if n < 0 {
				return r, false, len(b) < size
			}
			i += n
			if l > uint64(size-i) {
				return r, false, false
			}
			if tag == 0x0a {
				if l > uint64(len(b)-i) {
					return r, false, true
				}
				r.key = b[i : i+int(l) : i+int(l)]
			} else {
				r.valAt, r.valLen = i, int(l)
				r.leaseSet = i+int(l) < size // only the lease follows the value
			}
			i += int(l)
		case 0x10, 0x18, 0x20, 0x30: // create_revision, mod_revision, version, lease
			v, n := protowire.ConsumeVarint(b[i:])
			if n < 0 {
				return r, false, len(b) < size
			}
			i += n
			switch tag {
			case 0x10:
				r.create = int64(v)
			case 0x18:
				r.mod = int64(v)
			case 0x20:
				r.ver = int64(v)
			default:
				r.lease, r.leaseSet = int64(v), v != 0
			}
		default:
			// a field of a later etcd: step over it
			num, typ, n := protowire.ConsumeTag(b[i-1:])
			if n < 0 || num <= 6 {
				return r, false, n < 0 && len(b) < size
			}
			m := protowire.ConsumeFieldValue(num, typ, b[i-1+n:])
			if m < 0 {
				return r, false, len(b) < size
			}
			i += n - 1 + m
		}
	}
	return r, len(r.key) > 0, len(r.key) == 0 && len(b) < size
}
