package host

import (
	"regexp"
	"strings"

	"coldplane/analyze"
	"coldplane/bundle"
)

// A Listing is saved "ls -l" output of one directory.
type Listing struct {
	Dir     string // as the output or the file's name says; "" if neither does
	Total   int64  // bytes of the "total" line, -1 without one
	Entries []Entry
	Ref     bundle.Ref // of the "total" line, or the file
}

// An Entry is one line of a listing.
type Entry struct {
	Mode string
	Name string
	Size int64
	Ref  bundle.Ref
}

var lsLine = regexp.MustCompile(`^([bcdlps-][rwxsStT-]{9})[.+@]?\s+\d+\s+\S+\s+\S+\s+([0-9.]+[KMGTP]?)\s+(?:\w{3}\s+\d+\s+[\d:]+|\d{4}-\d\d-\d\d \S+(?: [+-]\d{4})?)\s+(.+)$`)

// Listings are the saved directory listings of a node. A node without any
// gives NotCollected.
var Listings = &analyze.Fact[[]*Listing]{
	Name:  "host.listings",
	Kinds: []bundle.Kind{bundle.KindDataDir},
	Compute: func(c *analyze.Ctx) ([]*Listing, error) {
		var out []*Listing
		for _, f := range c.Node().Glob("/listing/*.txt") {
			out = append(out, readListing(f)...)
		}
		if len(out) == 0 {
			return nil, analyze.Missing(bundle.KindDataDir, c.Node().Name, bundle.NotCollected, "no saved directory listing")
		}
		return out, nil
	},
}

func readListing(f *bundle.File) []*Listing {
	var out []*Listing
	dir := "/" + strings.ReplaceAll(strings.TrimSuffix(f.Name(), ".txt"), "-", "/")
	cur := &Listing{Dir: dir, Total: -1, Ref: f.Ref()}
	flush := func() {
		if len(cur.Entries) > 0 || cur.Total >= 0 {
			out = append(out, cur)
		}
	}
	for _, l := range linesOf(f) {
		if name, ok := strings.CutSuffix(l.text, ":"); ok && strings.HasPrefix(name, "/") {
			flush()
			cur = &Listing{Dir: name, Total: -1, Ref: l.ref}
			continue
		}
		if rest, ok := strings.CutPrefix(l.text, "total "); ok {
			if v, ok := size(strings.TrimSpace(rest), 1024, false); ok {
				cur.Total, cur.Ref = v, l.ref
			}
			continue
		}
		if m := lsLine.FindStringSubmatch(l.text); m != nil {
			if v, ok := size(m[2], 1, false); ok {
				cur.Entries = append(cur.Entries, Entry{Mode: m[1], Name: m[3], Size: v, Ref: l.ref})
			}
		}
	}
	flush()
	return out
}
