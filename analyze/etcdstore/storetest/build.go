package storetest

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
)

// Build returns the bytes of the file that a spec describes.
func Build(spec string) ([]byte, error) {
	lines, err := parse(spec)
	if err != nil {
		return nil, err
	}
	b := &builder{minor: 6, pageSize: 4096, next: 2, small: map[string]map[string][]byte{}, keys: map[string]*history{}, rng: rand.New(rand.NewPCG(1, 2))}
	for _, l := range lines {
		if err := b.line(l); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", l.n, l.verb, err)
		}
	}
	return b.write()
}

// Write writes the file that a spec describes to path.
func Write(path, spec string) error {
	b, err := Build(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

type rev struct{ main, sub int64 }

type record struct {
	rev  rev
	key  string
	val  []byte // of the record; nil for a bump marker
	tomb bool
}

// history is what is known of a key while the spec is read.
type history struct{ create, version int64 }

type builder struct {
	minor    int
	pageSize int
	freelist bool
	trailer  bool
	free     int
	next     int64
	small    map[string]map[string][]byte
	keys     map[string]*history
	records  []record
	rng      *rand.Rand
	ranIndex bool
}

func (b *builder) set(bucket, key string, val []byte) {
	if b.small[bucket] == nil {
		b.small[bucket] = map[string][]byte{}
	}
	b.small[bucket][key] = val
}

func be(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func revBytes(r rev, tomb bool) []byte {
	k := append(be(uint64(r.main)), '_')
	k = append(k, be(uint64(r.sub))...)
	if tomb {
		k = append(k, 't')
	}
	return k
}

func (b *builder) line(l line) error {
	switch l.verb {
	case "version":
		_, err := fmt.Sscanf(l.arg(0), "3.%d", &b.minor)
		return err
	case "pagesize":
		n, err := strconv.Atoi(l.arg(0))
		b.pageSize = n
		return err
	case "freelist":
		b.freelist = true
	case "trailer":
		b.trailer = true
	case "free":
		n, err := strconv.Atoi(l.arg(0))
		b.free = n
		return err
	case "member", "removed", "alarm", "lease", "auth", "meta":
		return b.bucketLine(l)
	case "put":
		return b.put(l)
	case "object":
		return b.object(l)
	case "delete":
		return b.delete(l)
	case "bump":
		n, err := strconv.ParseInt(l.arg(0), 10, 64)
		b.records = append(b.records, record{rev: rev{n, 0}})
		b.next = max(b.next, n+1)
		return err
	case "compact":
		n, err := strconv.ParseInt(l.arg(0), 10, 64)
		b.compact(n)
		return err
	default:
		return fmt.Errorf("unknown instruction")
	}
	return nil
}

func (b *builder) bucketLine(l line) error {
	switch l.verb {
	case "member":
		return b.member(l)
	case "removed":
		b.set("members_removed", l.arg(0), []byte("removed"))
	case "alarm":
		id, err := ids(l.arg(1))
		if err != nil || len(id) != 1 {
			return fmt.Errorf("alarm TYPE ID: %v", err)
		}
		kind := map[string]uint64{"NOSPACE": 1, "CORRUPT": 2}[l.arg(0)]
		if kind == 0 {
			return fmt.Errorf("alarm %q", l.arg(0))
		}
		k := protowire.AppendVarint([]byte{0x08}, id[0])
		k = protowire.AppendVarint(append(k, 0x10), kind)
		b.set("alarm", string(k), nil)
	case "lease":
		return b.lease(l)
	case "auth":
		if l.arg(0) == "enabled" {
			b.set("auth", "authEnabled", []byte{1})
		} else {
			b.set("auth", "authEnabled", []byte{0})
		}
		b.set("auth", "authRevision", be(1))
		if u := l.opts["user"]; u != "" {
			b.set("authUsers", u, protowire.AppendString([]byte{0x0a}, u))
		}
		if r := l.opts["role"]; r != "" {
			b.set("authRoles", r, protowire.AppendString([]byte{0x0a}, r))
		}
	case "meta":
		return b.meta(l)
	}
	return nil
}

func (b *builder) member(l line) error {
	id, err := ids(l.arg(0))
	if err != nil || len(id) != 1 {
		return fmt.Errorf("member ID: %v", err)
	}
	urls := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(s, ",")
	}
	m := struct {
		ID         uint64   `json:"id"`
		PeerURLs   []string `json:"peerURLs"`
		IsLearner  bool     `json:"isLearner,omitempty"`
		Name       string   `json:"name,omitempty"`
		ClientURLs []string `json:"clientURLs,omitempty"`
	}{id[0], urls(l.opts["peer"]), slices.Contains(l.args, "learner"), l.opts["name"], urls(l.opts["client"])}
	v, err := json.Marshal(m)
	b.set("members", strconv.FormatUint(id[0], 16), v)
	return err
}

func (b *builder) lease(l line) error {
	id, err := ids(l.arg(0))
	if err != nil || len(id) != 1 {
		return fmt.Errorf("lease ID: %v", err)
	}
	ttl, err := l.number("ttl", 60)
	if err != nil {
		return err
	}
	rem, err := l.number("remaining", 0)
	if err != nil {
		return err
	}
	n, err := l.number("count", 1)
	for i := range n {
		v := protowire.AppendVarint([]byte{0x08}, id[0]+uint64(i))
		v = protowire.AppendVarint(append(v, 0x10), uint64(ttl))
		if rem > 0 {
			v = protowire.AppendVarint(append(v, 0x18), uint64(rem))
		}
		b.set("lease", string(be(id[0]+uint64(i))), v)
	}
	return err
}

func (b *builder) meta(l line) error {
	var voters, learners []uint64
	var err error
	for k, v := range l.opts {
		var n int64
		switch k {
		case "consistent_index", "term", "finished", "scheduled":
			if n, err = l.number(k, 0); err != nil {
				return err
			}
		}
		switch k {
		case "consistent_index":
			b.ranIndex = true
			b.set("meta", k, be(uint64(n)))
		case "term":
			b.set("meta", k, be(uint64(n)))
		case "finished":
			b.set("meta", "finishedCompactRev", revBytes(rev{n, 0}, false))
		case "scheduled":
			b.set("meta", "scheduledCompactRev", revBytes(rev{n, 0}, false))
		case "storageVersion":
			b.set("meta", k, []byte(v))
		case "clusterVersion":
			b.set("cluster", k, []byte(v))
		case "downgrade":
			b.set("cluster", k, []byte(`{"target-version":"`+v+`","enabled":true}`))
		case "voters":
			voters, err = ids(v)
		case "learners":
			learners, err = ids(v)
		default:
			return fmt.Errorf("option %s", k)
		}
		if err != nil {
			return err
		}
	}
	if voters != nil || learners != nil {
		v, _ := json.Marshal(map[string]any{"voters": voters, "learners": learners, "auto_leave": false})
		b.set("meta", "confState", v)
	}
	return nil
}

// fill adds what etcd of the version writes and the spec does not mention.
func (b *builder) fill() {
	def := func(bucket, key string, val []byte) {
		if _, ok := b.small[bucket][key]; !ok {
			b.set(bucket, key, val)
		}
	}
	if !b.ranIndex {
		def("meta", "consistent_index", be(uint64(b.next)+10))
	}
	def("cluster", "clusterVersion", fmt.Appendf(nil, "3.%d.0", b.minor))
	if b.minor >= 5 {
		def("meta", "term", be(2))
		var voters []uint64
		for id, v := range b.small["members"] {
			if !strings.Contains(string(v), `"isLearner":true`) {
				n, _ := strconv.ParseUint(id, 16, 64)
				voters = append(voters, n)
			}
		}
		slices.Sort(voters)
		v, _ := json.Marshal(map[string]any{"voters": voters, "auto_leave": false})
		def("meta", "confState", v)
	}
	if b.minor >= 6 {
		def("meta", "storageVersion", fmt.Appendf(nil, "3.%d.0", b.minor))
	}
	for _, n := range []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "key", "lease", "members", "members_removed", "meta"} {
		if b.small[n] == nil {
			b.small[n] = map[string][]byte{}
		}
	}
}

// compact drops what etcd's compaction at a revision drops, and notes that it is
// finished.
func (b *builder) compact(at int64) {
	newest := map[string]rev{}
	for _, r := range b.records {
		if o := newest[r.key]; r.rev.main <= at && (r.rev.main > o.main || r.rev.main == o.main && r.rev.sub >= o.sub) {
			newest[r.key] = r.rev
		}
	}
	b.records = slices.DeleteFunc(b.records, func(r record) bool {
		return r.rev.main <= at && (newest[r.key] != r.rev || r.tomb && r.rev.main < at)
	})
	k := revBytes(rev{at, 0}, false)
	b.set("meta", "scheduledCompactRev", k)
	b.set("meta", "finishedCompactRev", k)
}

// write makes the bolt file.
func (b *builder) write() ([]byte, error) {
	b.fill()
	dir, err := os.MkdirTemp("", "storetest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: b.pageSize, NoFreelistSync: !b.freelist, NoSync: true, NoGrowSync: true})
	if err != nil {
		return nil, err
	}
	if err := b.fillBolt(db); err != nil {
		db.Close()
		return nil, err
	}
	var hwm int64
	_ = db.View(func(tx *bolt.Tx) error { hwm = tx.Size(); return nil })
	if err := db.Close(); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if b.trailer {
		data = data[:hwm]
		sum := sha256.Sum256(data)
		data = append(data, sum[:]...)
	}
	return data, nil
}

func (b *builder) fillBolt(db *bolt.DB) error {
	slices.SortStableFunc(b.records, func(x, y record) int {
		return cmp.Or(cmp.Compare(x.rev.main, y.rev.main), cmp.Compare(x.rev.sub, y.rev.sub))
	})
	if err := db.Update(func(tx *bolt.Tx) error {
		for _, name := range sortedKeys(b.small) {
			bk, err := tx.CreateBucketIfNotExists([]byte(name))
			if err != nil {
				return err
			}
			for _, k := range sortedKeys(b.small[name]) {
				if err := bk.Put([]byte(k), b.small[name][k]); err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for list := b.records; len(list) > 0; {
		part := list[:min(len(list), 2000)]
		list = list[len(part):]
		if err := db.Update(func(tx *bolt.Tx) error {
			bk := tx.Bucket([]byte("key"))
			bk.FillPercent = 0.9
			for _, r := range part {
				if err := bk.Put(revBytes(r.rev, r.tomb), r.val); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if b.free == 0 {
		return nil
	}
	filler := []byte("storetest filler")
	if err := db.Update(func(tx *bolt.Tx) error {
		bk, err := tx.CreateBucket(filler)
		if err != nil {
			return err
		}
		for i := range b.free {
			if err := bk.Put(be(uint64(i)), make([]byte, b.pageSize*9/10-64)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return db.Update(func(tx *bolt.Tx) error { return tx.DeleteBucket(filler) })
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
