package objects

import (
	"cmp"
	"slices"
	"sort"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"coldplane/analyze/etcdstore"
)

// A Point ties an etcd revision to the wall clock of whoever wrote it.
type Point struct {
	Rev  int64
	Time time.Time
	Key  string // what was written
}

// A Clock maps revisions to time. Its points come from renewals of Leases that
// etcd still remembers (seconds apart, for the last minutes) and from creation
// times of live objects (sparse, for the whole life of the cluster).
type Clock struct {
	Points []Point // by revision, times not decreasing
	last   Point   // what the newest points agree on, as written
}

const (
	maxLeasePoints  = 20000
	maxCreatePoints = 4000
	clockWindow     = 5 // neighbours that a point is compared with: one writer's clock may be wrong
	clockError      = 2 * time.Minute
)

// Clock is the set's revision clock.
func (s *Set) Clock() *Clock {
	return once(s, "clock", func() *Clock {
		return newClock(append(s.leasePoints(), s.createPoints()...))
	})
}

// leasePoints reads the renewals among the tracked revisions; of too many, the
// newest and a sample of the others.
func (s *Set) leasePoints() (out []Point) {
	list := s.Store.Tracked()
	if n := len(list); n > maxLeasePoints {
		const newest = maxLeasePoints / 4
		step := (n-newest)/(maxLeasePoints-newest) + 1
		var kept []etcdstore.Version
		for i := 0; i < n-newest; i += step {
			kept = append(kept, list[i])
		}
		list = append(kept, list[n-newest:]...)
	}
	return s.leases(list)
}

// leases reads the renewal times of revisions of Leases.
func (s *Set) leases(list []etcdstore.Version) (out []Point) {
	for _, v := range list {
		if v.Tombstone {
			continue
		}
		r, err := s.Store.Load(v, 64<<10)
		if err != nil {
			continue
		}
		var l coordinationv1.Lease
		if decode(r.Value, &l) != nil || l.Spec.RenewTime == nil || l.Spec.RenewTime.IsZero() {
			continue
		}
		out = append(out, Point{v.Rev.Main, l.Spec.RenewTime.UTC(), v.Key})
	}
	return out
}

// createPoints reads creation times of a sample of live objects.
func (s *Set) createPoints() (out []Point) {
	for _, typ := range []string{"namespaces", "minions", "clusterroles", "serviceaccounts", "configmaps", "replicasets", "pods", "events"} {
		list, _ := s.Store.TypeKeys(typ, "", 1<<20)
		slices.SortFunc(list, func(a, b etcdstore.Version) int { return cmp.Compare(a.Rev.Main, b.Rev.Main) })
		step := len(list)/(maxCreatePoints/8) + 1
		for i := len(list) - 1; i >= 0; i -= step {
			if list[i].Len > 256<<10 {
				continue
			}
			r, err := s.Store.Load(list[i], maxObject)
			if err != nil || r.CreateRev == 0 {
				continue
			}
			h, err := ReadHead(r.Value)
			if err != nil || h.Created.IsZero() {
				continue
			}
			out = append(out, Point{r.CreateRev, h.Created, list[i].Key})
		}
	}
	return out
}

// newClock orders points by revision, leaves out those that contradict their
// neighbours, and never runs backwards.
func newClock(raw []Point) *Clock {
	slices.SortStableFunc(raw, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Rev, b.Rev), a.Time.Compare(b.Time), cmp.Compare(a.Key, b.Key))
	})
	c := &Clock{}
	n := len(raw)
	if n == 0 {
		return c
	}
	tail := slices.Clone(raw[max(0, n-clockWindow):])
	slices.SortStableFunc(tail, func(a, b Point) int { return a.Time.Compare(b.Time) })
	c.last = tail[len(tail)-1]
	// A single writer far ahead of the others is a wrong clock, not a late write.
	if m := tail[len(tail)/2]; len(tail) >= 3 && c.last.Time.Sub(m.Time) > clockError {
		c.last = m
	}
	var high time.Time
	for i, p := range raw {
		if p.Time.After(c.last.Time) || contradicted(raw, i) {
			continue
		}
		if p.Time.Before(high) {
			p.Time = high
		}
		high = p.Time
		if m := len(c.Points); m > 0 && c.Points[m-1].Rev == p.Rev {
			continue
		}
		c.Points = append(c.Points, p)
	}
	return c
}

// contradicted reports a point that most of the points after it precede in time,
// or most of those before it follow: its writer's clock is wrong.
func contradicted(raw []Point, i int) bool {
	t := raw[i].Time
	after := raw[i+1 : min(len(raw), i+1+clockWindow)]
	before := raw[max(0, i-clockWindow):i]
	n := 0
	for _, p := range after {
		if t.Sub(p.Time) > clockError {
			n++
		}
	}
	if 2*n > len(after) {
		return true
	}
	n = 0
	for _, p := range before {
		if p.Time.Sub(t) > clockError {
			n++
		}
	}
	return 2*n > len(before)
}

// clockSlack is how many revisions before the first point its time still holds.
const clockSlack = 100

// At returns when a revision was written, between the points around it. ok is
// false well before the first point and without any point.
func (c *Clock) At(rev int64) (t time.Time, ok bool) {
	n := len(c.Points)
	if n == 0 {
		return time.Time{}, false
	}
	i := sort.Search(n, func(i int) bool { return c.Points[i].Rev >= rev })
	switch {
	case i == n:
		return c.Points[n-1].Time, true
	case c.Points[i].Rev == rev || i == 0:
		return c.Points[i].Time, c.Points[i].Rev-rev <= clockSlack
	}
	a, b := c.Points[i-1], c.Points[i]
	return a.Time.Add(time.Duration(float64(b.Time.Sub(a.Time)) * float64(rev-a.Rev) / float64(b.Rev-a.Rev))), true
}

// LastWrite returns the time of the newest write that carries one, and the key
// it was seen in: the state of the cluster is as of then.
func (s *Set) LastWrite() (Point, bool) {
	p := once(s, "last-write", func() Point {
		// The newest renewals are enough, unless they lie far back.
		list := s.Store.Tracked()
		n := max(0, len(list)-4*clockWindow)
		if c := newClock(s.leases(list[n:])); !c.last.Time.IsZero() && s.Store.MaxRev-c.last.Rev < 1000 {
			return c.last
		}
		return s.Clock().last
	})
	return p, !p.Time.IsZero()
}

// idleCap is how much of a pause between dated writes counts as time in which the
// API servers could have compacted: their interval. Nothing is compacted while
// nobody writes.
const idleCap = 5 * time.Minute

// History is how far back etcd remembers at least, from the compaction to the last
// write, without the time in which nothing was written. ok is false when nothing
// after the compaction carries a time.
func (s *Set) History() (span time.Duration, ok bool) {
	from := s.Store.Compacted()
	if from == 0 {
		from = s.Store.FirstRev
	}
	c := s.Clock()
	i := sort.Search(len(c.Points), func(i int) bool { return c.Points[i].Rev >= from })
	if i == len(c.Points) {
		return 0, false
	}
	for ; i+1 < len(c.Points); i++ {
		span += min(c.Points[i+1].Time.Sub(c.Points[i].Time), idleCap)
	}
	return span, true
}

// NotAfter returns the time of the first point at or above a revision: the
// revision was written no later. Between an old object's creation and the first
// lease that is remembered may lie months, and nothing tells where in them.
func (c *Clock) NotAfter(rev int64) (time.Time, bool) {
	i := sort.Search(len(c.Points), func(i int) bool { return c.Points[i].Rev >= rev })
	if i == len(c.Points) {
		return time.Time{}, false
	}
	return c.Points[i].Time, true
}
