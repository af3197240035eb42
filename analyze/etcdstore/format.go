package etcdstore

import (
	"bytes"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// An Encoding is how a stored value is written.
type Encoding uint8

const (
	Empty     Encoding = iota
	Protobuf           // k8s\0 and runtime.Unknown
	JSON               // custom resources, or an API server set to store JSON
	CBOR               // self-described tag d9d9f7
	Encrypted          // k8s:enc:<provider>:<version>:<key>:
	Other
)

func (e Encoding) String() string {
	return [...]string{"empty", "protobuf", "json", "cbor", "encrypted", "other"}[e]
}

// A Format says how a value is stored and as what.
type Format struct {
	Encoding   Encoding
	APIVersion string // of protobuf and JSON
	Kind       string
	Provider   string // of encrypted values: aescbc, aesgcm, secretbox, kms
	Key        string // name of the key or of the KMS provider
}

var (
	protoMagic = []byte("k8s\x00")
	encMagic   = []byte("k8s:enc:")
	cborMagic  = []byte{0xd9, 0xd9, 0xf7}
)

// maxFormats bounds the different formats of one file.
const maxFormats = 4096

// formats gives numbers to formats. Number 0 is the empty value's.
type formats struct {
	mu     sync.Mutex
	byHead map[string]uint16
	list   []Format
}

func newFormats() *formats {
	return &formats{byHead: map[string]uint16{"": 0}, list: []Format{{}}}
}

func (f *formats) add(head string) uint16 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.byHead[head]; ok {
		return n
	}
	if len(f.list) >= maxFormats {
		head = "?"
		if n, ok := f.byHead[head]; ok {
			return n
		}
	}
	n := uint16(len(f.list))
	f.byHead[head] = n
	f.list = append(f.list, parseFormat([]byte(head)))
	return n
}

// formatOf numbers a value by the bytes at its beginning that name its format. A
// format that the worker saw before costs no allocation.
func (w *worker) formatOf(val []byte) uint16 {
	head := formatHead(val)
	n, ok := w.heads[string(head)]
	if !ok {
		n = w.s.formats.add(string(head))
		if len(w.heads) < maxFormats {
			w.heads[string(head)] = n
		}
	}
	return n
}

// formatHead returns the part of a value that tells its format, and nothing of
// the object itself.
func formatHead(v []byte) []byte {
	switch {
	case len(v) == 0:
		return nil
	case bytes.HasPrefix(v, protoMagic):
		// runtime.Unknown field 1, TypeMeta
		if len(v) > 6 && v[4] == 0x0a && v[5] < 0x80 && len(v) >= 6+int(v[5]) {
			return v[:6+int(v[5])]
		}
		return v[:4]
	case bytes.HasPrefix(v, encMagic):
		return v[:encHead(v)]
	case bytes.HasPrefix(v, cborMagic):
		return cborMagic
	case v[0] == '{':
		return jsonHead(v)
	}
	return []byte("?")
}

// encHead returns the length of k8s:enc:provider:version:key:.
func encHead(v []byte) int {
	at, colons := 0, 0
	for at < len(v) && at < 512 && colons < 5 {
		if v[at] == ':' {
			colons++
		}
		at++
	}
	return at
}

// jsonHead returns the text up to the end of the kind where apiVersion and kind
// come first, as the API server writes them; else only the brace.
func jsonHead(v []byte) []byte {
	if len(v) > 512 {
		v = v[:512]
	}
	rest, ok := bytes.CutPrefix(v, []byte(`{"apiVersion":"`))
	if !ok {
		return jsonLoose(v)
	}
	i := bytes.IndexByte(rest, '"')
	if i < 0 {
		return v[:1]
	}
	rest, ok = bytes.CutPrefix(rest[i:], []byte(`","kind":"`))
	if !ok {
		return jsonLoose(v)
	}
	if i = bytes.IndexByte(rest, '"'); i < 0 {
		return v[:1]
	}
	return v[:len(v)-len(rest)+i+1]
}

// jsonLoose is for JSON whose first fields are in another order: kind first.
func jsonLoose(v []byte) []byte {
	rest, ok := bytes.CutPrefix(v, []byte(`{"kind":"`))
	if !ok {
		return v[:1]
	}
	i := bytes.IndexByte(rest, '"')
	if i < 0 {
		return v[:1]
	}
	rest, ok = bytes.CutPrefix(rest[i:], []byte(`","apiVersion":"`))
	if !ok {
		return v[:1]
	}
	if i = bytes.IndexByte(rest, '"'); i < 0 {
		return v[:1]
	}
	return v[:len(v)-len(rest)+i+1]
}

func parseFormat(head []byte) (f Format) {
	switch {
	case len(head) == 0:
	case bytes.HasPrefix(head, protoMagic):
		f.Encoding = Protobuf
		if len(head) > 6 {
			f.APIVersion, f.Kind = typeMeta(head[6:])
		}
	case bytes.HasPrefix(head, encMagic):
		f.Encoding = Encrypted
		p := bytes.Split(head, []byte(":"))
		if len(p) > 2 {
			f.Provider = string(p[2])
		}
		if len(p) > 4 {
			f.Key = string(p[4])
		}
	case head[0] == '{':
		f.Encoding = JSON
		f.APIVersion, f.Kind = quoted(head, `"apiVersion":"`), quoted(head, `"kind":"`)
	case bytes.HasPrefix(head, cborMagic):
		f.Encoding = CBOR
	default:
		f.Encoding = Other
	}
	return f
}

func quoted(b []byte, field string) string {
	_, rest, ok := bytes.Cut(b, []byte(field))
	if !ok {
		return ""
	}
	v, _, ok := bytes.Cut(rest, []byte{'"'})
	if !ok {
		return ""
	}
	return string(v)
}

// typeMeta reads apiVersion (1) and kind (2) of a runtime.TypeMeta.
func typeMeta(b []byte) (apiVersion, kind string) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || typ != protowire.BytesType {
			return
		}
		v, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			return
		}
		switch num {
		case 1:
			apiVersion = string(v)
		case 2:
			kind = string(v)
		}
		b = b[n+m:]
	}
	return
}

// FormatOf tells the format of a stored value.
func FormatOf(v []byte) Format { return parseFormat(formatHead(v)) }
