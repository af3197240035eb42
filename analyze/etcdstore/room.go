package etcdstore

import "fmt"

// PagesCounted reports whether the pages in use and free are known: pages
// below a damaged one are in neither number.
func (s *Store) PagesCounted() bool { return !s.Lossy && s.Pages.Truncated == 0 }

// Room says what the bytes of a database are good for.
type Room struct {
	Live           int64 // records of what is there now
	Compaction     int64 // records that a compaction at the newest revision frees inside the file
	Defragmented   int64 // free pages, which only a defragmentation gives back
	PagesAreCounts bool  // Defragmented is known
}

// Room counts it.
func (s *Store) Room() Room {
	return Room{s.LiveRec, s.RecBytes - s.LiveRec, s.Pages.DBSize - s.Pages.InUse, s.PagesCounted()}
}

func (r Room) String() string {
	out := fmt.Sprintf("%d bytes live, %d reclaimable by compaction", r.Live, r.Compaction)
	if !r.PagesAreCounts {
		return out + ", free pages not countable"
	}
	return fmt.Sprintf("%s, %d by defragmentation even without it", out, r.Defragmented)
}
