package dir

import (
	"time"

	"coldplane/analyze"
	"coldplane/analyze/provenance"
	"coldplane/bundle"
)

const stamp = "2006-01-02 15:04:05Z"

// modified says when a file of the rule's node was written, or nothing where
// its times are those of a copy.
func modified(p *analyze.Pass, t time.Time) string {
	a, err := provenance.OfNode.Try(p, p.Node())
	if err != nil || a.Times != "" || t.IsZero() {
		return ""
	}
	return "modified " + t.UTC().Format(stamp)
}

func sizeAndTime(p *analyze.Pass, f *bundle.File) string {
	s := bundle.FormatBytes(f.Size)
	if m := modified(p, f.ModTime); m != "" {
		s += ", " + m
	}
	return s
}
