package boltpage

import (
	"cmp"
	"fmt"
	"slices"
)

// A Class names one kind of damage. The text is stable.
type Class uint8

const (
	MetaLost       Class = iota + 1 // one of the two meta pages is not valid
	Truncated                       // the file is shorter than its high water mark says
	BeyondEnd                       // a page or a part of it lies beyond the end of the file
	BeyondHWM                       // a pointer at or above the high water mark
	ReachedTwice                    // a page that something else holds already: a cycle or a wrong pointer
	WrongID                         // a page that carries another page's number
	WrongType                       // neither branch nor leaf where one must be
	WrongCount                      // the element count does not fit the page
	ElementBounds                   // an element outside its page, or of impossible length
	ElementOverlap                  // an element that shares bytes with its neighbour or leaves a hole
	KeyOrder                        // keys not ascending
	KeyRange                        // keys outside the range the parent gives: foreign content
	Separator                       // a branch key that its child does not obey, though the neighbours do
	Overflow                        // the overflow count does not fit the content
	TooDeep                         // more levels than any real tree has
	NotBucket                       // a plain value in the root tree, or a bucket below it
	EmptyBranch                     // a branch page without children
	FreelistWrong                   // the stored free list is unreadable or names a page in use
	ReadError                       // the reader returned an error
)

var classText = [...]string{"", "meta-lost", "truncated", "beyond-end", "beyond-hwm", "reached-twice", "wrong-id", "wrong-type", "wrong-count",
	"element-bounds", "element-overlap", "key-order", "key-range", "separator", "overflow", "too-deep", "not-bucket", "empty-branch",
	"freelist-wrong", "read-error"}

func (c Class) String() string { return classText[c] }

// A Damage is one thing that is wrong with the file.
type Damage struct {
	Page   uint64
	Class  Class
	Bucket string // top-level bucket, empty for the root tree and the file itself
	Detail string
	// Lost says what cannot be read because of it: "" nothing, else in words.
	Lost string
	// Elements is the number of elements lost where it is known, -1 where a whole
	// page or subtree is gone.
	Elements int
	// Lo and Hi bound the keys that are lost: from Lo (nil: the beginning) up to,
	// not including, Hi (nil: the end). Set when Elements is -1.
	Lo, Hi []byte
}

func (d Damage) String() string {
	s := fmt.Sprintf("page %d: %s", d.Page, d.Class)
	if d.Detail != "" {
		s += ": " + d.Detail
	}
	if d.Lost != "" {
		s += "; lost: " + d.Lost
	}
	return s
}

// damageLog keeps the first limit entries in order of arrival and counts the rest.
type damageLog struct {
	limit   int
	list    []Damage
	dropped int
	// lossy counts every entry that lost something, kept or not.
	lossy int
}

func (l *damageLog) add(d Damage) {
	if d.Lost != "" {
		l.lossy++
	}
	if len(l.list) >= l.limit {
		l.dropped++
		return
	}
	l.list = append(l.list, d)
}

// merge appends the logs of the workers ordered by page, so that the result does
// not depend on how many there were: each log holds the lowest pages of its part.
func (l *damageLog) merge(parts []damageLog) {
	var all []Damage
	n, lossy := 0, 0
	for _, p := range parts {
		all = append(all, p.list...)
		n += len(p.list) + p.dropped
		lossy += p.lossy
	}
	slices.SortStableFunc(all, func(a, b Damage) int {
		return cmp.Or(cmp.Compare(a.Page, b.Page), cmp.Compare(a.Class, b.Class))
	})
	room := max(0, l.limit-len(l.list))
	if len(all) > room {
		all = all[:room]
	}
	l.list = append(l.list, all...)
	l.dropped += n - len(all)
	l.lossy += lossy
}
