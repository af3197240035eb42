package boltpage

// Stats are the pages of a file after all buckets were scanned.
type Stats struct {
	PageSize  int64
	HWM       uint64 // pages in the database
	Reached   uint64 // pages in use: both meta pages, a stored free list, every tree
	Free      uint64 // pages below the high water mark that nothing points to
	Tree      BucketStats
	DBSize    int64 // HWM in bytes: what etcd compares with its quota
	InUse     int64 // Reached in bytes: etcd's dbSizeInUse
	Slack     int64 // bytes of tree pages that hold nothing
	Growth    int64 // bytes of the file beyond the high water mark
	Truncated int64 // bytes of the database that the file does not have
}

// Finish counts the pages. Buckets that were not scanned count as free.
func (w *Walk) Finish() Stats {
	s := Stats{PageSize: w.f.pageSize, HWM: w.f.HWM(), Reached: w.claims.count(), Tree: w.totals, DBSize: w.f.DBSize()}
	s.Reached = min(s.Reached, s.HWM)
	s.Free = s.HWM - s.Reached
	s.InUse = int64(s.Reached) * s.PageSize
	s.Slack = max(0, s.Tree.AllocSize-s.Tree.UsedBytes)
	s.Growth = max(0, w.f.size-s.DBSize)
	s.Truncated = max(0, s.DBSize-w.f.size)
	return s
}

// Unreached calls fn for every run of pages below the high water mark that no
// pointer reaches, in order. What they hold is left over from earlier
// transactions and may be anything, Secrets included.
func (w *Walk) Unreached(fn func(first, n uint64)) {
	var start, n uint64
	for id := range w.f.pages {
		if w.claims.has(id) {
			if n > 0 {
				fn(start, n)
			}
			n = 0
			continue
		}
		if n == 0 {
			start = id
		}
		n++
	}
	if n > 0 {
		fn(start, n)
	}
}

// Reached reports whether a page belongs to something.
func (w *Walk) Reached(id uint64) bool { return w.claims.has(id) }
