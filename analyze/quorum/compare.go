package quorum

import (
	"bytes"
	"cmp"
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdwal"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
)

// A Comparison is the key-value hash of several members' databases of one
// cluster at one revision. Compactions are taken as if all had compacted at
// Compact, or members that compacted at different times would differ.
type Comparison struct {
	Cluster      uint64
	Rev, Compact int64
	Members      []Hashed // by node
	Differing    int      // keys that differ between the first two different members
	Keys         []string // the first of them
}

// Hashed is one member's hash.
type Hashed struct {
	Node string
	Hash uint32
	Ref  bundle.Ref
}

const (
	maxDiffKeys  = 10
	maxDiffBytes = 2 << 20
	maxDiff      = 200_000 // keys compared when hashes differ
)

// Majority is the hash most members have.
func (c *Comparison) Majority() uint32 {
	counts := map[uint32]int{}
	best := uint32(0)
	for _, m := range c.Members {
		counts[m.Hash]++
		if counts[m.Hash] > counts[best] {
			best = m.Hash
		}
	}
	return best
}

// Odd is the first member that differs from the majority, nil when all agree.
func (c *Comparison) Odd() *Hashed {
	main := c.Majority()
	for i := range c.Members {
		if c.Members[i].Hash != main {
			return &c.Members[i]
		}
	}
	return nil
}

type candidate struct {
	node   string
	db     *etcddb.DB
	digest *hostfacts.StoreDigest // of the database before it was scrubbed; nil when it was not
}

// Compared are the comparisons of all clusters with two or more readable
// databases of members.
var Compared = &analyze.Fact[[]Comparison]{
	Name:  "quorum.compared",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindStore},
	Needs: []analyze.Need{etcddb.OnNode, etcddb.CollectedOn, etcdwal.OnNode},
	Compute: func(c *analyze.Ctx) ([]Comparison, error) {
		groups := map[uint64][]candidate{}
		var ids []uint64
		for _, n := range c.Nodes() {
			dbs, err := etcddb.OnNode.Of(c, n)
			if err != nil {
				continue
			}
			d := dbs.Live()
			if d == nil || !d.Store.Clean() || d.Store.Lossy || d.Store.Undecoded > 0 {
				continue
			}
			ds, err := etcdwal.OnNode.Of(c, n)
			if err != nil {
				continue
			}
			for _, w := range ds {
				if d.Dir == nil || w.Path != d.Dir.Path || w.Log == nil || !w.Log.Identified {
					continue
				}
				id := w.Log.Identity.Cluster
				if groups[id] == nil {
					ids = append(ids, id)
				}
				x := candidate{node: n.Name, db: d}
				if seen, err := etcddb.CollectedOn.Of(c, n); err == nil {
					x.digest = seen.Of(d)
				}
				groups[id] = append(groups[id], x)
			}
		}
		slices.Sort(ids)
		var out []Comparison
		for _, id := range ids {
			if len(groups[id]) < 2 {
				continue
			}
			x, ok, err := compare(c, id, groups[id])
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, x)
			}
		}
		if len(out) == 0 {
			return nil, analyze.Missing(bundle.KindStore, "", bundle.NotCollected, "no two members' databases with a common revision")
		}
		return out, nil
	},
}

func compare(c *analyze.Ctx, id uint64, list []candidate) (Comparison, bool, error) {
	x := Comparison{Cluster: id, Rev: list[0].db.Store.Current()}
	for _, m := range list {
		x.Rev = min(x.Rev, m.db.Store.Current())
		x.Compact = max(x.Compact, m.db.Store.Compacted())
	}
	if x.Compact > x.Rev {
		return x, false, nil
	}
	scrubbed, ok := x.beforeScrub(list)
	if scrubbed && !ok {
		return x, false, nil
	}
	for _, m := range list {
		if scrubbed {
			break
		}
		h, err := m.db.Store.HashKV(c.Context(), x.Rev, x.Compact)
		if err != nil {
			if c.Context().Err() != nil {
				return x, false, c.Context().Err()
			}
			return x, false, nil
		}
		x.Members = append(x.Members, Hashed{m.node, h.Hash, m.db.Ref()})
	}
	if odd := x.Odd(); odd != nil {
		main := x.Majority()
		var a, b *etcddb.DB
		for i, m := range list {
			switch {
			case x.Members[i].Node == odd.Node:
				a = m.db
			case x.Members[i].Hash == main:
				b = m.db
			}
		}
		if a != nil && b != nil {
			x.differing(a, b)
		}
	}
	return x, true, nil
}

// beforeScrub compares databases whose values a collector overwrote by their
// digests from before: values that differed can look the same now, and the same
// values differ when two versions of the collector overwrote them. scrubbed is
// false when none has a digest; ok, when some have none or they share no block.
func (x *Comparison) beforeScrub(list []candidate) (scrubbed, ok bool) {
	var ds []*hostfacts.StoreDigest
	for _, m := range list {
		ds = append(ds, m.digest)
		scrubbed = scrubbed || m.digest != nil
	}
	if !scrubbed {
		return false, false
	}
	sums, up, ok := digests(ds)
	if !ok {
		return true, false
	}
	x.Rev = up
	for i, m := range list {
		x.Members = append(x.Members, Hashed{m.node, uint32(sums[i]) ^ uint32(sums[i]>>32), m.db.Ref()})
	}
	return true, true
}

// differing names keys whose newest records at the common revision differ.
// Keys written after it are left out: what they were then is not looked up.
func (x *Comparison) differing(a, b *etcddb.DB) {
	all := func([]byte) bool { return true }
	keys, _ := a.Store.Select(maxDiff, all)
	seen := map[string]bool{}
	note := func(k string) {
		x.Differing++
		x.Keys = append(x.Keys, k)
	}
	for _, v := range keys {
		seen[v.Key] = true
		w, ok := b.Store.Latest(v.Key)
		switch {
		case v.Rev.Main > x.Rev || ok && w.Rev.Main > x.Rev:
		case !ok || w.Tombstone || w.Rev != v.Rev:
			note(v.Key)
		default:
			ra, err1 := a.Store.Load(v, maxDiffBytes)
			rb, err2 := b.Store.Load(w, maxDiffBytes)
			if err1 == nil && err2 == nil && !bytes.Equal(ra.Value, rb.Value) {
				note(v.Key)
			}
		}
	}
	others, _ := b.Store.Select(maxDiff, all)
	for _, v := range others {
		if !seen[v.Key] && v.Rev.Main <= x.Rev {
			if w, ok := a.Store.Latest(v.Key); !ok || w.Rev.Main <= x.Rev {
				note(v.Key)
			}
		}
	}
	slices.SortFunc(x.Keys, cmp.Compare)
	x.Keys = x.Keys[:min(len(x.Keys), maxDiffKeys)]
}
