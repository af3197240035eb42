package kubevalue

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// A Form is how a value is written.
type Form uint8

// Forms.
const (
	Empty     Form = iota
	Protobuf       // "k8s\0" and a runtime.Unknown: apimachinery pkg/runtime/serializer/protobuf
	JSON           // an object in JSON: custom resources
	Encrypted      // "k8s:enc:<provider>:v<n>:<key name>:" and ciphertext: apiserver pkg/storage/value/encrypt
	CBOR           // self-described CBOR
	Other          // anything else
)

func (f Form) String() string {
	return [...]string{"empty", "protobuf", "json", "encrypted", "cbor", "other"}[f]
}

var (
	protoMagic = []byte("k8s\x00")
	encMagic   = []byte("k8s:enc:")
	cborMagic  = []byte{0xd9, 0xd9, 0xf7}
)

// FormOf tells a value's form from its beginning.
func FormOf(v []byte) Form {
	switch {
	case len(v) == 0:
		return Empty
	case bytes.HasPrefix(v, protoMagic):
		return Protobuf
	case bytes.HasPrefix(v, encMagic):
		return Encrypted
	case bytes.HasPrefix(v, cborMagic):
		return CBOR
	case v[0] == '{':
		return JSON
	}
	return Other
}

// An Envelope is a protobuf value taken apart. Object aliases the value.
type Envelope struct {
	APIVersion, Kind string
	Object           []byte // the object's own message
	// Bare is set when the envelope has nothing but type and object: anything
	// else in it is unknown and must not be trusted.
	Bare bool
}

// Unwrap takes apart a value of form Protobuf.
func Unwrap(v []byte) (e Envelope, ok bool) {
	b := v[len(protoMagic):]
	e.Bare = true
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return e, false
		}
		b = b[n:]
		if typ != protowire.BytesType {
			return e, false
		}
		p, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return e, false
		}
		b = b[n:]
		switch num { // runtime.Unknown: 1 typeMeta, 2 raw, 3 contentEncoding, 4 contentType
		case 1:
			if e.APIVersion, e.Kind, ok = typeMeta(p); !ok {
				return e, false
			}
		case 2:
			e.Object = p
		case 3, 4:
			if len(p) > 0 {
				e.Bare = false
			}
		default:
			e.Bare = false
		}
	}
	return e, e.Kind != "" && e.Object != nil
}

func typeMeta(b []byte) (apiVersion, kind string, ok bool) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || typ != protowire.BytesType {
			return "", "", false
		}
		p, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return "", "", false
		}
		b = b[n+m:]
		switch num { // runtime.TypeMeta: 1 apiVersion, 2 kind
		case 1:
			apiVersion = string(p)
		case 2:
			kind = string(p)
		default:
			return "", "", false
		}
	}
	return apiVersion, kind, true
}

// EncryptionPrefix returns the part of an encrypted value that names provider
// and key, with its last colon: at most four fields of bounded length. It
// returns nil when there is no such prefix.
func EncryptionPrefix(v []byte) []byte {
	const maxPrefix = 256
	if !bytes.HasPrefix(v, encMagic) {
		return nil
	}
	end, fields := len(encMagic), 0
	for i := end; i < len(v) && i < maxPrefix; i++ {
		c := v[i]
		if c == ':' {
			end = i + 1
			if fields++; fields == 3 { // provider, version, key name
				return v[:end]
			}
			continue
		}
		if c <= ' ' || c > '~' {
			break
		}
	}
	return nil
}
