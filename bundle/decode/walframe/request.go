package walframe

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxTxnDepth bounds nested transactions; etcd itself has no use for more than two.
const maxTxnDepth = 8

// maxOps bounds the operations looked at in one transaction. etcd's default
// limit is 128.
const maxOps = 1 << 16

// fieldRequestHeader is the number of the header in InternalRaftRequest.
const fieldRequestHeader = 100

// request says what kind of request the data of a normal entry holds and feeds
// what is worth keeping into t. cut marks data of which only the beginning is there.
func (t *tally) request(data []byte, cut bool, index uint64) Kind {
	if len(data) == 0 {
		return Empty
	}
	if method, path, val, ok := v2Request(data); ok {
		if method != "" {
			t.v2(path, val, index)
			return V2Request
		}
	}
	kind, body, complete := requestField(data)
	if !complete && !cut {
		return Undecodable
	}
	if cut {
		if kind == 0 {
			return Oversize
		}
		t.oversized(kind, body)
		return kind
	}
	switch kind {
	case 0:
		return HeaderOnly
	case Put:
		if !t.put(body) {
			return Undecodable
		}
	case DeleteRange:
		if !t.delete(body) {
			return Undecodable
		}
	case Txn:
		ops := maxOps
		if !t.txn(body, 0, &ops) {
			return Undecodable
		}
	case Compaction:
		t.compaction(body, index)
	case Alarm:
		t.alarm(body, index)
	case MemberAttrSet:
		t.memberAttr(body, index)
	case ClusterVersionSet:
		t.clusterVersion(stringField(body, 1), index)
	case DowngradeInfoSet:
		t.downgrade(body, index)
	default:
		if !knownRequest(int32(kind)) {
			return OtherRequest
		}
	}
	return kind
}

// requestField finds the request inside an InternalRaftRequest. complete is
// false when the bytes end inside a field or are no message; for a cut entry
// body then holds what there is of it.
func requestField(b []byte) (kind Kind, body []byte, complete bool) {
	for len(b) > 0 {
		num, wt, n := protowire.ConsumeTag(b)
		if n < 0 {
			return kind, body, false
		}
		b = b[n:]
		switch {
		case num == 1 && wt == protowire.VarintType:
			if _, n = protowire.ConsumeVarint(b); n < 0 {
				return kind, body, false
			}
		case wt == protowire.BytesType:
			p, m := protowire.ConsumeBytes(b)
			if m < 0 {
				if _, h := protowire.ConsumeVarint(b); h > 0 && num != fieldRequestHeader {
					return Kind(num), b[h:], false
				}
				return kind, body, false
			}
			if num != fieldRequestHeader {
				kind, body = Kind(num), p
			}
			n = m
		default:
			return 0, nil, false
		}
		b = b[n:]
	}
	return kind, body, true
}

// v2Request recognises a bare etcdserverpb.Request: its second field is an
// HTTP method where InternalRaftRequest has a message. Up to etcd 3.5 members'
// attributes and the cluster version were proposed in this form.
func v2Request(b []byte) (method, path, val string, ok bool) {
	var m []byte
	ok = fields(b, func(num protowire.Number, wt protowire.Type, _ uint64, p []byte) bool {
		if wt == protowire.BytesType {
			switch num {
			case 2:
				m = p
			case 3:
				path = boundedString(p, maxText)
			case 4:
				if len(p) <= maxText {
					val = string(p)
				}
			}
		}
		return num <= 16
	})
	if !ok {
		return "", "", "", false
	}
	switch string(m) {
	case "GET", "PUT", "POST", "DELETE", "QGET", "SYNC", "HEAD":
		return string(m), path, val, true
	}
	return "", "", "", false
}

func (t *tally) put(b []byte) bool {
	var key []byte
	value := int64(0)
	ok := fields(b, func(num protowire.Number, wt protowire.Type, _ uint64, p []byte) bool {
		if wt == protowire.BytesType {
			switch num {
			case 1:
				key = p
			case 2:
				value = int64(len(p))
			}
		}
		return true
	})
	if ok {
		t.write(key, value)
	}
	return ok
}

func (t *tally) delete(b []byte) bool {
	var key []byte
	ok := fields(b, func(num protowire.Number, wt protowire.Type, _ uint64, p []byte) bool {
		if num == 1 && wt == protowire.BytesType {
			key = p
		}
		return true
	})
	if ok {
		t.remove(key)
	}
	return ok
}

// txn counts the writes of the branch that runs when the comparisons hold:
// which branch ran is not in the log.
func (t *tally) txn(b []byte, depth int, ops *int) bool {
	if depth >= maxTxnDepth {
		return false
	}
	return fields(b, func(num protowire.Number, wt protowire.Type, _ uint64, p []byte) bool {
		if num != 2 || wt != protowire.BytesType || *ops == 0 {
			return true
		}
		*ops--
		return fields(p, func(num protowire.Number, wt protowire.Type, _ uint64, op []byte) bool {
			if wt != protowire.BytesType {
				return false
			}
			switch num {
			case 2:
				return t.put(op)
			case 3:
				return t.delete(op)
			case 4:
				return t.txn(op, depth+1, ops)
			}
			return true
		})
	})
}

// oversized takes what can be taken from the beginning of a request: the key
// and the declared size of a put.
func (t *tally) oversized(kind Kind, b []byte) {
	if kind != Put {
		return
	}
	num, wt, n := protowire.ConsumeTag(b)
	if n < 0 || num != 1 || wt != protowire.BytesType {
		return
	}
	key, m := protowire.ConsumeBytes(b[n:])
	if m < 0 {
		return
	}
	rest := b[n+m:]
	if num, wt, n = protowire.ConsumeTag(rest); n < 0 || num != 2 || wt != protowire.BytesType {
		return
	}
	if l, n := protowire.ConsumeVarint(rest[n:]); n > 0 && l < 1<<56 {
		t.write(key, int64(l))
	}
}

func (t *tally) compaction(b []byte, index uint64) {
	rev := int64(0)
	fields(b, func(num protowire.Number, wt protowire.Type, v uint64, _ []byte) bool {
		if num == 1 && wt == protowire.VarintType {
			rev = int64(v)
		}
		return true
	})
	t.log.Compactions.Count++
	t.log.Compactions.LastRev, t.log.Compactions.LastIndex = rev, index
}

func (t *tally) alarm(b []byte, index uint64) {
	e := AlarmEvent{Index: index}
	var action uint64
	fields(b, func(num protowire.Number, wt protowire.Type, v uint64, _ []byte) bool {
		if wt == protowire.VarintType {
			switch num {
			case 1:
				action = v
			case 2:
				e.Member = v
			case 3:
				e.Type = AlarmType(v)
			}
		}
		return true
	})
	switch action {
	case 1:
		e.Raised = true
	case 2:
	default:
		return // a query
	}
	t.log.Alarms.add(e)
}

func (t *tally) memberAttr(b []byte, index uint64) {
	a := AttrEvent{Index: index}
	fields(b, func(num protowire.Number, wt protowire.Type, v uint64, p []byte) bool {
		switch {
		case num == 1 && wt == protowire.VarintType:
			a.ID = v
		case num == 2 && wt == protowire.BytesType:
			fields(p, func(num protowire.Number, wt protowire.Type, _ uint64, s []byte) bool {
				if wt == protowire.BytesType {
					switch {
					case num == 1:
						a.Name = boundedString(s, maxText)
					case num == 2 && len(a.ClientURLs) < maxURLs:
						a.ClientURLs = append(a.ClientURLs, boundedString(s, maxText))
					}
				}
				return true
			})
		}
		return true
	})
	t.log.Attrs.add(a)
}

// v2 keeps the two facts that travelled as v2 requests: a member's attributes
// and the cluster version. Anything else is only counted.
func (t *tally) v2(path, val string, index uint64) {
	if path == "/0/version" {
		t.clusterVersion(val, index)
		return
	}
	rest, ok := strings.CutPrefix(path, "/0/members/")
	if !ok {
		t.log.V2UserRequests++
		return
	}
	hex, leaf, _ := strings.Cut(rest, "/")
	id, ok := parseHexID(hex)
	if !ok || leaf != "attributes" {
		return
	}
	a := AttrEvent{Index: index, ID: id}
	if m, ok := parseMemberJSON([]byte(val)); ok {
		a.Name, a.ClientURLs = m.Name, m.ClientURLs
	}
	t.log.Attrs.add(a)
}

func (t *tally) clusterVersion(v string, index uint64) {
	t.log.Versions.add(VersionEvent{Index: index, Version: boundedString([]byte(v), 64)})
}

func (t *tally) downgrade(b []byte, index uint64) {
	on := false
	fields(b, func(num protowire.Number, wt protowire.Type, v uint64, _ []byte) bool {
		if num == 1 && wt == protowire.VarintType {
			on = v != 0
		}
		return true
	})
	t.log.Versions.add(VersionEvent{Index: index, Version: stringField(b, 2), Downgrade: true, Enabled: on})
}

func stringField(b []byte, want protowire.Number) string {
	s := ""
	fields(b, func(num protowire.Number, wt protowire.Type, _ uint64, p []byte) bool {
		if num == want && wt == protowire.BytesType {
			s = boundedString(p, maxText)
		}
		return true
	})
	return s
}

// boundedString copies at most n bytes of p, cut at a rune, and replaces what
// is not UTF-8.
func boundedString(p []byte, n int) string {
	if len(p) > n {
		p = p[:n]
		for len(p) > 0 && !utf8.Valid(p[max(0, len(p)-4):]) && !utf8.RuneStart(p[len(p)-1]) {
			p = p[:len(p)-1]
		}
	}
	return string(bytes.ToValidUTF8(p, []byte("\uFFFD")))
}
