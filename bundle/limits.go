package bundle

import "time"

// Limits bound what opening an input may cost. The zero value of a field
// means its default.
type Limits struct {
	Entries     int           // entries of one archive; default 200,000
	EntryBytes  int64         // decompressed bytes of one archive entry; default 16 GiB
	TotalBytes  int64         // decompressed bytes of one archive; default 20 GiB
	Spool       int64         // bytes on disk for entries too large for memory; default 20 GiB
	MemoryEntry int64         // an entry up to this many bytes stays in memory; default 1 MiB
	MemoryTotal int64         // bytes of entries kept in memory, all archives together; default 64 MiB
	OpenTime    time.Duration // reading one archive; default 10 min
}

// DefaultLimits are the limits that hold when none is set.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

func (l Limits) withDefaults() Limits {
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	if l.Entries == 0 {
		l.Entries = 200_000
	}
	def(&l.EntryBytes, 16<<30)
	def(&l.TotalBytes, 20<<30)
	def(&l.Spool, 20<<30)
	def(&l.MemoryEntry, 1<<20)
	def(&l.MemoryTotal, 64<<20)
	if l.OpenTime == 0 {
		l.OpenTime = 10 * time.Minute
	}
	return l
}
