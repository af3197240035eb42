package objects

import (
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"coldplane/analyze/etcdstore"
)

// Limits of decoding.
const (
	maxObject   = 4 << 20   // bytes of one object; etcd refuses requests above 1.5 MiB by default
	maxDepth    = 60        // nesting that is handed to generated decoders; real objects stay below 15
	maxKept     = 20000     // objects of one type that are kept
	maxBytes    = 256 << 20 // bytes decoded for one list
	maxProblems = 10
)

var (
	errEncrypted = errors.New("encrypted at rest")
	errDepth     = errors.New("nested too deeply")
	errFormat    = errors.New("stored in a form that is not read")
)

// An unmarshaler is a type of k8s.io/api.
type unmarshaler interface{ Unmarshal([]byte) error }

// raw takes the envelope off a stored protobuf value and returns the object.
func raw(v []byte) ([]byte, bool) {
	if len(v) < 4 || string(v[:4]) != "k8s\x00" {
		return nil, false
	}
	return field(v[4:], 2)
}

// field returns the first length-delimited field num of a message.
func field(b []byte, num protowire.Number) ([]byte, bool) {
	for len(b) > 0 {
		n, typ, m := protowire.ConsumeTag(b)
		if m < 0 {
			return nil, false
		}
		b = b[m:]
		if typ == protowire.BytesType {
			v, m := protowire.ConsumeBytes(b)
			if m < 0 {
				return nil, false
			}
			if n == num {
				return v, true
			}
			b = b[m:]
			continue
		}
		if m = protowire.ConsumeFieldValue(n, typ, b); m < 0 {
			return nil, false
		}
		b = b[m:]
	}
	return nil, false
}

// decode fills a k8s.io/api object from a stored value.
func decode(v []byte, into unmarshaler) error {
	if len(v) > maxObject {
		return etcdstore.ErrTooLarge
	}
	f := etcdstore.FormatOf(v)
	switch f.Encoding {
	case etcdstore.Protobuf:
		b, ok := raw(v)
		if !ok {
			return errFormat
		}
		if tooDeep(b, maxDepth) {
			return errDepth
		}
		return into.Unmarshal(b)
	case etcdstore.JSON:
		return json.Unmarshal(v, into)
	case etcdstore.Encrypted:
		return errEncrypted
	}
	return errFormat
}

// tooDeep reports whether a message nests deeper than limit, counting every
// length-delimited field that itself reads as a message. Generated decoders
// recurse without a limit of their own.
func tooDeep(b []byte, limit int) bool {
	if limit == 0 {
		return true
	}
	for len(b) > 0 {
		num, typ, m := protowire.ConsumeTag(b)
		if m < 0 {
			return false
		}
		b = b[m:]
		switch typ {
		case protowire.BytesType:
			v, m := protowire.ConsumeBytes(b)
			if m < 0 {
				return false
			}
			if len(v) > 1 && isMessage(v) && tooDeep(v, limit-1) {
				return true
			}
			b = b[m:]
		case protowire.StartGroupType, protowire.EndGroupType:
			return true // no stored object has groups
		default:
			if m = protowire.ConsumeFieldValue(num, typ, b); m < 0 {
				return false
			}
			b = b[m:]
		}
	}
	return false
}

// isMessage reports whether bytes read as a sequence of fields.
func isMessage(b []byte) bool {
	for len(b) > 0 {
		num, typ, m := protowire.ConsumeTag(b)
		if m < 0 || typ == protowire.StartGroupType || typ == protowire.EndGroupType {
			return false
		}
		b = b[m:]
		if m = protowire.ConsumeFieldValue(num, typ, b); m < 0 {
			return false
		}
		b = b[m:]
	}
	return true
}

// decodeJSON fills a value of ours from a JSON object; protobuf is not read.
func decodeJSON(v []byte, into any) error {
	switch etcdstore.FormatOf(v).Encoding {
	case etcdstore.JSON:
		if len(v) > maxObject {
			return etcdstore.ErrTooLarge
		}
		if err := json.Unmarshal(v, into); err != nil {
			return fmt.Errorf("not the JSON it should be: %w", err)
		}
		return nil
	case etcdstore.Encrypted:
		return errEncrypted
	}
	return errFormat
}
