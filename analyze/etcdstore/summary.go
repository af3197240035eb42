package etcdstore

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
)

// TypeStats are the figures of one resource type.
type TypeStats struct {
	Type       string
	Keys       int64 // keys with any record
	Live       int64
	LiveBytes  int64 // values of live keys
	LiveRec    int64 // their newest records, revision keys included
	Records    int64
	RecBytes   int64 // all records, revision keys included
	Tombstones int64
	Writes     int64 // records above the compaction: what was written since
	Leased     int64
	Largest    KeyStats
	Namespaces []NamespaceStats // by live bytes, largest first
	Formats    []FormatStats    // of live values, most frequent first
}

// History is the bytes of superseded records and tombstones.
func (t TypeStats) History() int64 { return t.RecBytes - t.LiveRec }

// NamespaceStats are a type's figures in one namespace.
type NamespaceStats struct {
	Namespace string
	Live      int64
	LiveBytes int64
	Records   int64
	RecBytes  int64
}

// FormatStats counts live values of one format.
type FormatStats struct {
	Format
	Live int64
}

// KeyStats is one key.
type KeyStats struct {
	Key      string
	Rev      Revision // of the newest record
	Size     int64    // bytes of the newest value
	Records  int64
	RecBytes int64
	Version  int64 // writes since the key was created
	Writes   int64 // records above the compaction, estimated from the counts
	Live     bool
}

// partSummary sums up one part of the table.
type partSummary struct {
	prefix    string
	compacted int64
	types     map[string]*typeAcc
	live      int64
	bytes     int64
	rec       int64
	leased    int64
	largest   topList
	busiest   topList
	fattest   topList

	lastDir []byte // of the key before, with its accumulators
	lastT   *typeAcc
	lastN   *NamespaceStats
}

type typeAcc struct {
	TypeStats
	ns      map[string]*NamespaceStats
	formats map[uint16]int64
	top     *entry
	topTab  *table
}

func (s *Store) summarise(top int) {
	s.Prefix = s.findPrefix()
	s.Keys = int64(s.table.len())
	sums := make([]*partSummary, parts)
	each(parts, func(p int) { sums[p] = s.sumPart(p, top) })
	d := sums[0]
	for _, o := range sums[1:] {
		d.merge(o)
	}
	s.Live, s.LiveBytes, s.LiveRec, s.Leased = d.live, d.bytes, d.rec, d.leased
	s.Types = d.list(s.formats.list)
	s.Largest, s.Busiest, s.Fattest = d.largest.keys(d.compacted), d.busiest.keys(d.compacted), d.fattest.keys(d.compacted)
}

func (s *Store) sumPart(p, top int) *partSummary {
	t := &s.table.part[p]
	compacted := s.Compacted()
	d := &partSummary{prefix: s.Prefix, compacted: compacted, types: map[string]*typeAcc{}}
	d.largest = topList{n: top, by: func(e *entry) uint64 { return uint64(e.size) }}
	d.busiest = topList{n: top, by: func(e *entry) uint64 { return uint64(e.revs) }}
	d.fattest = topList{n: top, by: func(e *entry) uint64 { return e.hist }}
	for i := range t.n {
		e := t.at(i)
		key := t.key(e)
		a, ns := d.accumulators(key)
		a.Keys++
		a.Records += int64(e.revs)
		a.RecBytes += int64(e.hist)
		a.Tombstones += int64(e.tombs)
		a.Writes += writes(e, compacted)
		ns.Records += int64(e.revs)
		ns.RecBytes += int64(e.hist)
		d.busiest.offer(t, e)
		d.fattest.offer(t, e)
		if e.dead() {
			continue
		}
		rec := int64(e.recLen) + 17
		a.Live++
		a.LiveBytes += int64(e.size)
		a.LiveRec += rec
		ns.Live++
		ns.LiveBytes += int64(e.size)
		a.formats[e.format]++
		if e.flags&flagLeased != 0 {
			a.Leased++
			d.leased++
		}
		d.live++
		d.bytes += int64(e.size)
		d.rec += rec
		d.largest.offer(t, e)
		if a.top == nil || e.size > a.top.size || e.size == a.top.size && bytes.Compare(key, a.topTab.key(a.top)) < 0 {
			a.top, a.topTab = e, t
		}
	}
	return d
}

// accumulators finds where a key counts. Keys of one directory share them, so the
// last one is remembered.
func (d *partSummary) accumulators(key []byte) (*typeAcc, *NamespaceStats) {
	cut := max(0, bytes.LastIndexByte(key, '/'))
	if d.lastT != nil && cut > 0 && bytes.Equal(key[:cut], d.lastDir) {
		return d.lastT, d.lastN
	}
	typ, ns, _ := split(d.prefix, key)
	if typ == nil {
		typ = []byte(Foreign)
		ns = foreignTop(key)
	}
	a := d.types[string(typ)]
	if a == nil {
		a = &typeAcc{ns: map[string]*NamespaceStats{}, formats: map[uint16]int64{}}
		a.Type = string(typ)
		d.types[a.Type] = a
	}
	n := a.ns[string(ns)]
	if n == nil {
		n = &NamespaceStats{Namespace: string(ns)}
		a.ns[n.Namespace] = n
	}
	d.lastDir, d.lastT, d.lastN = append(d.lastDir[:0], key[:cut]...), a, n
	return a, n
}

// foreignTop is the first segment of a key outside the prefix: its tenant.
func foreignTop(key []byte) []byte {
	if len(key) == 0 {
		return key
	}
	if i := bytes.IndexByte(key[1:], '/'); i >= 0 {
		return key[:i+1]
	}
	return key[:min(len(key), 128)]
}

func (d *partSummary) merge(o *partSummary) {
	d.live += o.live
	d.bytes += o.bytes
	d.rec += o.rec
	d.leased += o.leased
	d.largest.merge(&o.largest)
	d.busiest.merge(&o.busiest)
	d.fattest.merge(&o.fattest)
	for n, x := range o.types {
		a := d.types[n]
		if a == nil {
			d.types[n] = x
			continue
		}
		a.Keys += x.Keys
		a.Live += x.Live
		a.LiveBytes += x.LiveBytes
		a.LiveRec += x.LiveRec
		a.Records += x.Records
		a.RecBytes += x.RecBytes
		a.Tombstones += x.Tombstones
		a.Writes += x.Writes
		a.Leased += x.Leased
		for f, c := range x.formats {
			a.formats[f] += c
		}
		for ns, y := range x.ns {
			if z := a.ns[ns]; z == nil {
				a.ns[ns] = y
			} else {
				z.Live += y.Live
				z.LiveBytes += y.LiveBytes
				z.Records += y.Records
				z.RecBytes += y.RecBytes
			}
		}
		if x.top != nil && (a.top == nil || x.top.size > a.top.size || x.top.size == a.top.size && bytes.Compare(x.topTab.key(x.top), a.topTab.key(a.top)) < 0) {
			a.top, a.topTab = x.top, x.topTab
		}
	}
}

func (d *partSummary) list(formats []Format) []TypeStats {
	out := make([]TypeStats, 0, len(d.types))
	for _, a := range d.types {
		if a.top != nil {
			a.Largest = keyStats(a.topTab, a.top, d.compacted)
		}
		for _, n := range a.ns {
			a.Namespaces = append(a.Namespaces, *n)
		}
		slices.SortFunc(a.Namespaces, func(x, y NamespaceStats) int {
			return cmp.Or(cmp.Compare(y.LiveBytes, x.LiveBytes), cmp.Compare(y.RecBytes, x.RecBytes), cmp.Compare(x.Namespace, y.Namespace))
		})
		for f, c := range a.formats {
			a.Formats = append(a.Formats, FormatStats{formats[f], c})
		}
		slices.SortFunc(a.Formats, func(x, y FormatStats) int {
			return cmp.Or(cmp.Compare(y.Live, x.Live), cmp.Compare(x.APIVersion, y.APIVersion), cmp.Compare(x.Kind, y.Kind),
				cmp.Compare(x.Encoding, y.Encoding), cmp.Compare(x.Provider, y.Provider), cmp.Compare(x.Key, y.Key))
		})
		out = append(out, a.TypeStats)
	}
	slices.SortFunc(out, func(a, b TypeStats) int {
		return cmp.Or(cmp.Compare(b.LiveBytes, a.LiveBytes), cmp.Compare(b.RecBytes, a.RecBytes), cmp.Compare(a.Type, b.Type))
	})
	return out
}

// writes tells how many records of a key are newer than the compaction. A key has
// at most one older record, the one that was its newest then; when it has as many
// records as it was ever written, it has none.
func writes(e *entry, compacted int64) int64 {
	if e.main <= compacted {
		return 0
	}
	if compacted == 0 || !e.dead() && e.version == e.revs {
		return int64(e.revs)
	}
	return max(1, int64(e.revs)-1)
}

func keyStats(t *table, e *entry, compacted int64) KeyStats {
	return KeyStats{Key: string(t.key(e)), Rev: Revision{e.main, int64(e.sub)}, Size: int64(e.size), Records: int64(e.revs),
		RecBytes: int64(e.hist), Version: int64(e.version), Writes: writes(e, compacted), Live: !e.dead()}
}

// A topList keeps the n entries with the largest figure.
type topList struct {
	n    int
	by   func(*entry) uint64
	list []topItem // a heap, smallest first
}

type topItem struct {
	v uint64
	t *table
	e *entry
}

// less orders by figure, then by key the other way round, so that the smaller
// key wins a tie.
func (a topItem) less(b topItem) bool {
	if a.v != b.v {
		return a.v < b.v
	}
	return bytes.Compare(a.t.key(a.e), b.t.key(b.e)) > 0
}

func (l *topList) offer(t *table, e *entry) {
	it := topItem{l.by(e), t, e}
	if len(l.list) == l.n {
		if it.v < l.list[0].v || !l.list[0].less(it) {
			return
		}
		l.list[0] = it
		l.down(0)
		return
	}
	l.list = append(l.list, it)
	for i := len(l.list) - 1; i > 0; {
		p := (i - 1) / 2
		if !l.list[i].less(l.list[p]) {
			break
		}
		l.list[i], l.list[p] = l.list[p], l.list[i]
		i = p
	}
}

func (l *topList) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(l.list) {
			return
		}
		if c+1 < len(l.list) && l.list[c+1].less(l.list[c]) {
			c++
		}
		if !l.list[c].less(l.list[i]) {
			return
		}
		l.list[i], l.list[c] = l.list[c], l.list[i]
		i = c
	}
}

func (l *topList) merge(o *topList) {
	for _, x := range o.list {
		l.offer(x.t, x.e)
	}
}

func (l *topList) keys(compacted int64) []KeyStats {
	slices.SortFunc(l.list, func(a, b topItem) int {
		if b.less(a) {
			return -1
		}
		return 1
	})
	out := make([]KeyStats, len(l.list))
	for i, x := range l.list {
		out[i] = keyStats(x.t, x.e, compacted)
	}
	return out
}

// findPrefix tells the API server's --etcd-prefix: what stands before
// /namespaces/kube-system, else the default.
func (s *Store) findPrefix() string {
	const mark = "/namespaces/kube-system"
	if e, _ := s.table.find([]byte(DefaultPrefix + mark)); e != nil {
		return DefaultPrefix
	}
	var mu sync.Mutex
	best := ""
	each(parts, func(p int) {
		t := &s.table.part[p]
		for i := range t.n {
			k := t.key(t.at(i))
			if len(k) > len(mark) && bytes.HasSuffix(k, []byte(mark)) {
				mu.Lock()
				if pre := string(k[:len(k)-len(mark)]); best == "" || len(pre) < len(best) || len(pre) == len(best) && pre < best {
					best = pre
				}
				mu.Unlock()
			}
		}
	})
	if best == "" {
		return DefaultPrefix
	}
	return best
}
