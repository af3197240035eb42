package storetest

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// add appends one revision of a key.
func (b *builder) add(l line, key string, val []byte) error {
	at, err := l.number("rev", b.next)
	if err != nil {
		return err
	}
	sub, err := l.number("sub", 0)
	if err != nil {
		return err
	}
	lease := uint64(0)
	if s := l.opts["lease"]; s != "" {
		id, err := ids(s)
		if err != nil || len(id) != 1 {
			return fmt.Errorf("lease=%s: %v", s, err)
		}
		lease = id[0]
	}
	h := b.keys[key]
	if h == nil {
		h = &history{create: at}
		b.keys[key] = h
	}
	h.version++
	v := protowire.AppendString([]byte{0x0a}, key)
	v = protowire.AppendVarint(append(v, 0x10), uint64(h.create))
	v = protowire.AppendVarint(append(v, 0x18), uint64(at))
	v = protowire.AppendVarint(append(v, 0x20), uint64(h.version))
	if len(val) > 0 {
		v = protowire.AppendBytes(append(v, 0x2a), val)
	}
	if lease != 0 {
		v = protowire.AppendVarint(append(v, 0x30), lease)
	}
	b.records = append(b.records, record{rev: rev{at, sub}, key: key, val: v})
	b.next = max(b.next, at+1)
	delete(l.opts, "rev") // further revisions of the same line follow
	return nil
}

func (b *builder) put(l line) error {
	key := l.arg(0)
	if key == "" {
		return fmt.Errorf("put KEY")
	}
	count, err := l.number("count", 0)
	if err != nil {
		return err
	}
	times, err := l.number("times", 1)
	if err != nil {
		return err
	}
	for range times {
		for i := range max(count, 1) {
			k := key
			if count > 0 {
				k = fmt.Sprintf("%s-%05d", key, i)
			}
			v, err := b.value(l)
			if err != nil {
				return err
			}
			if err := b.add(l, k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// value makes the value of a put line.
func (b *builder) value(l line) ([]byte, error) {
	size, err := l.number("size", 100)
	if err != nil {
		return nil, err
	}
	if v, ok := l.opts["value"]; ok {
		return []byte(v), nil
	}
	var head, tail []byte
	switch {
	case l.opts["gvk"] != "":
		api, kind := cutKind(l.opts["gvk"])
		tm := protowire.AppendString([]byte{0x0a}, api)
		tm = protowire.AppendString(append(tm, 0x12), kind)
		head = protowire.AppendBytes([]byte("k8s\x00\x0a"), tm)
		n := max(0, int(size)-len(head)-8)
		return append(protowire.AppendBytes(append(head, 0x12), b.noise(n)), 0x1a, 0, 0x22, 0), nil
	case l.opts["json"] != "":
		api, kind := cutKind(l.opts["json"])
		head, tail = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"x"},"data":"`, api, kind), []byte(`"}`)
	case l.opts["enc"] != "":
		p, k, _ := strings.Cut(l.opts["enc"], ":")
		head = []byte("k8s:enc:" + p + ":v1:" + k + ":")
	}
	return append(append(head, b.noise(max(0, int(size)-len(head)-len(tail)))...), tail...), nil
}

func cutKind(gvk string) (apiVersion, kind string) {
	i := strings.LastIndexByte(gvk, '/')
	return gvk[:max(i, 0)], gvk[i+1:]
}

// noise returns n bytes of letters.
func (b *builder) noise(n int) []byte {
	v := make([]byte, n)
	for i := range v {
		v[i] = 'a' + byte(b.rng.IntN(26))
	}
	return v
}

func (b *builder) delete(l line) error {
	key := l.arg(0)
	at, err := l.number("rev", b.next)
	if err != nil {
		return err
	}
	b.records = append(b.records, record{rev: rev{at, 0}, key: key, val: protowire.AppendString([]byte{0x0a}, key), tomb: true})
	b.next = max(b.next, at+1)
	delete(b.keys, key)
	return nil
}
