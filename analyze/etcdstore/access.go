package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"coldplane/bundle/decode/boltpage"
)

// A Version is one record of a key, by its place in the file.
type Version struct {
	Key       string
	Rev       Revision
	Off       int64 // of the record in the file
	Len       int
	Tombstone bool
	Salvaged  bool
}

// A Record is a decoded record. Its slices are its own.
type Record struct {
	Key       string
	Rev       Revision
	CreateRev int64
	Version   int64
	Lease     int64
	Value     []byte
	Tombstone bool
}

// ErrTooLarge says that a record is above the limit given to Load.
var ErrTooLarge = errors.New("record larger than the limit")

// Load reads one record. limit bounds its size in bytes.
func (s *Store) Load(v Version, limit int) (Record, error) {
	if v.Len > limit {
		return Record{}, fmt.Errorf("%s at revision %d: %w", v.Key, v.Rev.Main, ErrTooLarge)
	}
	b := make([]byte, v.Len)
	if n, err := s.file.ReadAt(b, v.Off); n < v.Len {
		return Record{}, fmt.Errorf("%s at revision %d: %w", v.Key, v.Rev.Main, err)
	}
	r, ok, _ := parseKV(b, len(b))
	if !ok {
		return Record{}, fmt.Errorf("%s at revision %d: not an etcd record", v.Key, v.Rev.Main)
	}
	return Record{Key: string(r.key), Rev: v.Rev, CreateRev: r.create, Version: r.ver, Lease: r.lease,
		Value: b[r.valAt : r.valAt+r.valLen], Tombstone: v.Tombstone}, nil
}

// Latest returns the newest record of a key; it may be a tombstone.
func (s *Store) Latest(key string) (Version, bool) {
	e, t := s.table.find([]byte(key))
	if e == nil {
		return Version{}, false
	}
	return version(t, e), true
}

func version(t *table, e *entry) Version {
	return Version{Key: string(t.key(e)), Rev: Revision{e.main, int64(e.sub)}, Off: e.recOff, Len: int(e.recLen), Tombstone: e.dead(), Salvaged: e.flags&flagSalvaged != 0}
}

// Select returns the newest record of every live key that match accepts, in key
// order, at most limit of them; more reports that there were others. match must
// not keep its argument.
func (s *Store) Select(limit int, match func(key []byte) bool) (list []Version, more bool) {
	for p := range s.table.part {
		t := &s.table.part[p]
		for i := range t.n {
			if e := t.at(i); !e.dead() && match(t.key(e)) {
				list = append(list, version(t, e))
			}
		}
	}
	slices.SortFunc(list, func(a, b Version) int { return cmp.Compare(a.Key, b.Key) })
	if len(list) > limit {
		return list[:limit], true
	}
	return list, false
}

// Dead returns the newest record, a tombstone, of every deleted key that match
// accepts and that etcd still remembers.
func (s *Store) Dead(limit int, match func(key []byte) bool) (list []Version, more bool) {
	for p := range s.table.part {
		t := &s.table.part[p]
		for i := range t.n {
			if e := t.at(i); e.dead() && match(t.key(e)) {
				list = append(list, version(t, e))
			}
		}
	}
	slices.SortFunc(list, func(a, b Version) int { return cmp.Compare(a.Key, b.Key) })
	if len(list) > limit {
		return list[:limit], true
	}
	return list, false
}

// TypeKeys returns the live keys of a type, e.g. "pods", in one namespace or, with
// an empty one, in all.
func (s *Store) TypeKeys(typ, namespace string, limit int) (list []Version, more bool) {
	return s.Select(limit, s.MatchType(typ, namespace))
}

// MatchType returns a match function for Select, Dead and Revisions.
func (s *Store) MatchType(typ, namespace string) func(key []byte) bool {
	return func(key []byte) bool {
		t, ns, _ := split(s.Prefix, key)
		return string(t) == typ && (namespace == "" || string(ns) == namespace)
	}
}

// Tracked returns the retained records of the keys that date the others, oldest
// first: leases in kube-* namespaces and the compactor's key.
func (s *Store) Tracked() []Version { return s.tracked }

func (s *Store) setTracked(list []trackedRev) {
	s.tracked = make([]Version, len(list))
	for i, x := range list {
		x.v.Key = x.key
		s.tracked[i] = x.v
	}
	sortVersions(s.tracked)
}

func sortVersions(v []Version) {
	slices.SortFunc(v, func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.Rev.Main, b.Rev.Main), cmp.Compare(a.Rev.Sub, b.Rev.Sub))
	})
}

// Revisions makes another pass and returns every retained record, tombstones
// included, of the keys that match accepts, oldest first, at most limit of them.
func (s *Store) Revisions(ctx context.Context, limit int, match func(key []byte) bool) (list []Version, more bool, err error) {
	err = s.eachRecord(ctx, recordHead, func(e *boltpage.Elem) {
		main, sub, tomb, ok := parseRevKey(e.Key)
		if !ok {
			return
		}
		r, ok, _ := parseKV(e.Val, e.ValLen)
		if !ok || !match(r.key) {
			return
		}
		if len(list) >= limit {
			more = true
			return
		}
		list = append(list, Version{Key: string(r.key), Rev: Revision{main, sub}, Off: e.ValOff, Len: e.ValLen, Tombstone: tomb})
	})
	sortVersions(list)
	return list, more, err
}

// eachRecord walks the reachable key bucket again, in key order.
func (s *Store) eachRecord(ctx context.Context, head int, fn func(*boltpage.Elem)) error {
	w, l, err := s.keyLeaves(ctx)
	if err != nil || l == nil {
		return err
	}
	return w.Scan(ctx, l, boltpage.ScanOptions{InOrder: true, Head: head}, func(int) func(*boltpage.Elem) { return fn })
}

func (s *Store) keyLeaves(ctx context.Context) (*boltpage.Walk, *boltpage.Leaves, error) {
	w := s.file.NewWalk(s.walk)
	if s.root != 0 {
		w = s.file.NewWalkAt(s.root, s.walk)
	}
	bs, err := w.Buckets(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range bs {
		if b.Name == "key" {
			return w, w.List(b), nil
		}
	}
	return w, nil, nil
}
