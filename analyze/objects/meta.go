package objects

import (
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"coldplane/analyze/etcdstore"
)

// A Head is an object's metadata and its Secret type, read without decoding the
// rest: for types nobody has a decoder for, and for Secrets, whose data must not
// be touched.
type Head struct {
	Name, Namespace, UID string
	Created              time.Time
	Deleted              *time.Time
	Finalizers           []string
	Labels               map[string]string
	SecretType           string // of a Secret
	Managed              int    // bytes of managedFields
	LastApplied          int    // bytes of kubectl's last-applied-configuration
	AppliedVersion       string // apiVersion in it
	Annotations          int    // bytes of all annotation values
	Managers             []Manager
}

// A Manager is one entry of managedFields.
type Manager struct {
	Name, Operation, APIVersion string
	Time                        time.Time
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// ReadHead reads the metadata of any stored object.
func ReadHead(v []byte) (Head, error) {
	if len(v) > maxObject {
		return Head{}, etcdstore.ErrTooLarge
	}
	switch etcdstore.FormatOf(v).Encoding {
	case etcdstore.Protobuf:
		b, ok := raw(v)
		if !ok {
			return Head{}, errFormat
		}
		return protoHead(b)
	case etcdstore.JSON:
		return jsonHead(v)
	case etcdstore.Encrypted:
		return Head{}, errEncrypted
	}
	return Head{}, errFormat
}

// eachField calls fn for every field of a message; false when it is none.
func eachField(b []byte, fn func(num protowire.Number, v []byte, n uint64)) bool {
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
			fn(num, v, 0)
			b = b[m:]
		case protowire.VarintType:
			n, m := protowire.ConsumeVarint(b)
			if m < 0 {
				return false
			}
			fn(num, nil, n)
			b = b[m:]
		default:
			if m = protowire.ConsumeFieldValue(num, typ, b); m < 0 {
				return false
			}
			b = b[m:]
		}
	}
	return true
}

// protoTime reads a meta/v1 Time or MicroTime: seconds 1, nanos 2.
func protoTime(b []byte) (t time.Time) {
	var sec, nano uint64
	if eachField(b, func(num protowire.Number, _ []byte, n uint64) {
		switch num {
		case 1:
			sec = n
		case 2:
			nano = n
		}
	}) && sec > 0 && sec < 1<<36 {
		t = time.Unix(int64(sec), int64(nano%1e9)).UTC()
	}
	return t
}

// protoHead reads ObjectMeta (field 1 of every kind; fields by
// k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto) and Secret.type (3).
func protoHead(b []byte) (Head, error) {
	var h Head
	var meta []byte
	if !eachField(b, func(num protowire.Number, v []byte, _ uint64) {
		switch {
		case num == 1 && meta == nil:
			meta = v
		case num == 3 && len(v) < 256:
			h.SecretType = string(v)
		}
	}) {
		return h, errFormat
	}
	ok := eachField(meta, func(num protowire.Number, v []byte, _ uint64) {
		switch num {
		case 1:
			h.Name = string(v)
		case 3:
			h.Namespace = string(v)
		case 5:
			h.UID = string(v)
		case 8:
			h.Created = protoTime(v)
		case 9:
			t := protoTime(v)
			h.Deleted = &t
		case 11:
			k, val := mapEntry(v)
			if h.Labels == nil {
				h.Labels = map[string]string{}
			}
			h.Labels[string(k)] = string(val)
		case 12:
			k, val := mapEntry(v)
			h.Annotations += len(val)
			if string(k) == lastApplied {
				h.LastApplied, h.AppliedVersion = len(val), appliedVersion(string(val))
			}
		case 14:
			h.Finalizers = append(h.Finalizers, string(v))
		case 17:
			h.Managed += len(v)
			var m Manager
			eachField(v, func(num protowire.Number, v []byte, _ uint64) {
				switch num {
				case 1:
					m.Name = string(v)
				case 2:
					m.Operation = string(v)
				case 3:
					m.APIVersion = string(v)
				case 4:
					m.Time = protoTime(v)
				}
			})
			h.Managers = append(h.Managers, m)
		}
	})
	if !ok {
		return h, errFormat
	}
	return h, nil
}

// appliedVersion is the apiVersion of an object as kubectl wrote it down:
// fields are sorted, so it comes first.
func appliedVersion(text string) string {
	rest, ok := strings.CutPrefix(text, `{"apiVersion":"`)
	v, _, end := strings.Cut(rest, `"`)
	if !ok || !end || len(v) > 256 {
		return ""
	}
	return v
}

func mapEntry(b []byte) (k, v []byte) {
	eachField(b, func(num protowire.Number, x []byte, _ uint64) {
		switch num {
		case 1:
			k = x
		case 2:
			v = x
		}
	})
	return k, v
}

func jsonHead(v []byte) (Head, error) {
	var o struct {
		Type     string `json:"type"`
		Metadata struct {
			Meta
			ManagedFields []json.RawMessage `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(v, &o); err != nil {
		return Head{}, err
	}
	m := o.Metadata
	h := Head{Name: m.Name, Namespace: m.Namespace, UID: m.UID, Created: m.CreationTimestamp, Deleted: m.DeletionTimestamp,
		Finalizers: m.Finalizers, Labels: m.Labels, SecretType: o.Type, LastApplied: len(m.Annotations[lastApplied]),
		AppliedVersion: appliedVersion(m.Annotations[lastApplied])}
	for _, a := range m.Annotations {
		h.Annotations += len(a)
	}
	for _, r := range m.ManagedFields {
		h.Managed += len(r)
		var e struct {
			Manager, Operation, APIVersion string
			Time                           time.Time
		}
		if json.Unmarshal(r, &e) == nil {
			h.Managers = append(h.Managers, Manager{e.Manager, e.Operation, e.APIVersion, e.Time})
		}
	}
	return h, nil
}

// Heads reads the metadata of the live objects of a type.
func (s *Set) Heads(typ, namespace string) List[Head] {
	return Each(s, typ, namespace, func(v []byte) (*Head, error) {
		h, err := ReadHead(v)
		if typ != "secrets" {
			h.SecretType = ""
		}
		return &h, err
	}, nil)
}

// Secrets are the heads of all Secrets: names, types, times; never their data.
func (s *Set) Secrets() List[Head] {
	return once(s, "secrets", func() List[Head] { return s.Heads("secrets", "") })
}

// Deleting are the heads of the objects of a type that are being deleted.
func (s *Set) Deleting(typ string) List[Head] {
	return Each(s, typ, "", func(v []byte) (*Head, error) {
		h, err := ReadHead(v)
		h.SecretType = ""
		return &h, err
	}, func(h *Head) bool { return h.Deleted != nil })
}
