// Package objectdiff compares the objects of two databases: what going from
// one to the other loses and brings back. The same UID under the same key
// proves that it is the same object. It knows no rule.
package objectdiff

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
)

const (
	maxKeys    = 4 << 20 // keys compared of one type
	maxValue   = 4 << 20
	maxSamples = 20
)

// A Type is the difference of one resource type.
type Type struct {
	Type      string   `json:"type"`
	OnlyA     int      `json:"onlyA"`
	OnlyB     int      `json:"onlyB"`
	Changed   int      `json:"changed"`
	Recreated int      `json:"recreated"` // the same name, another UID
	Unchanged int      `json:"unchanged"`
	SamplesA  []string `json:"samplesA"` // keys only in A, the first of them
	SamplesB  []string `json:"samplesB"`
	Others    []string `json:"recreatedSamples"`
	More      bool     `json:"more,omitempty"` // a limit left keys out
}

// Compare compares two sets by type, those with differences first.
func Compare(ctx context.Context, a, b *objects.Set) ([]Type, error) {
	names := map[string]bool{}
	for _, s := range []*objects.Set{a, b} {
		for _, t := range s.Store.Types {
			if t.Live > 0 {
				names[t.Type] = true
			}
		}
	}
	out := []Type{}
	for name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out = append(out, one(name, a, b))
	}
	slices.SortFunc(out, func(x, y Type) int {
		return cmp.Or(cmp.Compare(y.differs(), x.differs()), cmp.Compare(x.Type, y.Type))
	})
	return out, nil
}

func (t Type) differs() int { return t.OnlyA + t.OnlyB + t.Changed + t.Recreated }

func one(name string, a, b *objects.Set) Type {
	t := Type{Type: name, SamplesA: []string{}, SamplesB: []string{}, Others: []string{}}
	la, moreA := a.Store.TypeKeys(name, "", maxKeys)
	lb, moreB := b.Store.TypeKeys(name, "", maxKeys)
	t.More = moreA || moreB
	byKey := make(map[string]etcdstore.Version, len(lb))
	for _, v := range lb {
		byKey[v.Key] = v
	}
	for _, v := range la {
		w, ok := byKey[v.Key]
		if !ok {
			t.OnlyA++
			t.SamplesA = sample(t.SamplesA, v.Key)
			continue
		}
		delete(byKey, v.Key)
		switch same, recreated := equal(a, b, v, w); {
		case same:
			t.Unchanged++
		case recreated:
			t.Recreated++
			t.Others = sample(t.Others, v.Key)
		default:
			t.Changed++
		}
	}
	for _, v := range lb {
		if _, ok := byKey[v.Key]; ok {
			t.OnlyB++
			t.SamplesB = sample(t.SamplesB, v.Key)
		}
	}
	return t
}

func sample(l []string, key string) []string {
	if len(l) < maxSamples {
		l = append(l, key)
	}
	return l
}

// equal compares two values of one key. Values are read only when revision or
// length differ: the same revision with the same length is the same write,
// unless the two histories parted, which a restore does.
func equal(a, b *objects.Set, v, w etcdstore.Version) (same, recreated bool) {
	if v.Rev == w.Rev && v.Len == w.Len {
		return true, false
	}
	x, err1 := a.Store.Load(v, maxValue)
	y, err2 := b.Store.Load(w, maxValue)
	if err1 != nil || err2 != nil {
		return false, false
	}
	if bytes.Equal(x.Value, y.Value) {
		return true, false
	}
	hx, err1 := objects.ReadHead(x.Value)
	hy, err2 := objects.ReadHead(y.Value)
	return false, err1 == nil && err2 == nil && hx.UID != "" && hy.UID != "" && hx.UID != hy.UID
}
