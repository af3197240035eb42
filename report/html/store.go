package html

import (
	"cmp"
	"fmt"
	"slices"

	"coldplane/bundle"
	"coldplane/report"
	"coldplane/report/words"
)

// storeView is one database with its pictures.
type storeView struct {
	report.Store
	Bars    *picture
	Treemap *picture
	Note    string
}

const maxTypes = 24 // types drawn apart; the rest is one box

func newStores(r *report.Report, say *words.Words) []storeView {
	ss, _ := report.Fact[[]report.Store](r, report.FactStore)
	var out []storeView
	for i, s := range ss {
		v := storeView{Store: s, Bars: bars(s, say), Treemap: treemap(s, say)}
		v.Bars.ID, v.Treemap.ID = fmt.Sprintf("bars%d", i), fmt.Sprintf("treemap%d", i)
		if len(s.Types) == 0 {
			v.Treemap = nil
		}
		out = append(out, v)
	}
	return out
}

// bars draws the file as it is, after a compaction and after defragmentation,
// against the quota.
func bars(s report.Store, say *words.Words) *picture {
	p := &picture{W: 960, Label: say.T("What fills the database file, and what compaction and defragmentation would leave")}
	const left, right = 170.0, 870.0
	top := s.Size
	if s.Quota != nil {
		top = max(top, *s.Quota)
	}
	top = max(top, 1)
	x := func(n int64) float64 { return left + (right-left)*float64(min(max(n, 0), top))/float64(top) }
	y := 26.0
	var totals []int64
	var ends []float64
	bar := func(name string, parts []int64, classes, names []string, total int64) {
		p.text(left-10, y+17, "end", "", name)
		at := int64(0)
		for i, n := range parts {
			if n > 0 {
				p.rect(x(at), y, x(at+n)-x(at), 24, classes[i], names[i]+" "+bundle.FormatBytes(n))
				if w := x(at+n) - x(at); w > 90 {
					p.text((x(at)+x(at+n))/2, y+17, "middle", "on-"+classes[i], fit(names[i]+" "+bundle.FormatBytes(n), w))
				}
			}
			at += n
		}
		totals = append(totals, total)
		ends = append(ends, x(at))
		y += 38
	}
	other := max(s.InUse-s.Live-s.History, 0)
	bar(say.T("file now"), []int64{s.Live, s.History, other, s.Free}, []string{"live", "history", "other", "free"},
		[]string{say.T("live"), say.T("history"), say.T("other pages"), say.T("free")}, s.Size)
	if s.AfterComp != nil {
		bar(say.T("after compact"), []int64{*s.AfterComp, max(s.Size-*s.AfterComp, 0)}, []string{"live", "free"}, []string{say.T("in use"), say.T("free")}, s.Size)
	}
	if s.AfterDefrag != nil {
		bar(say.T("after defrag"), []int64{*s.AfterDefrag}, []string{"live"}, []string{say.T("in use")}, *s.AfterDefrag)
	}
	if s.Quota != nil && *s.Quota > 0 {
		q := x(*s.Quota)
		p.line(q, 14, q, y-8, "quota")
		p.text(q, 11, "end", "strong", say.T("quota")+" "+bundle.FormatBytes(*s.Quota))
	}
	for i, n := range totals {
		p.text(ends[i]+6, 43+38*float64(i), "start", "strong halo", bundle.FormatBytes(n))
	}
	p.H = int(y)
	return p
}

// A box is one rectangle of the treemap.
type box struct {
	name  string
	bytes int64
	kids  []box
}

// treemap draws bytes by type, and within a type by namespace.
func treemap(s report.Store, say *words.Words) *picture {
	p := &picture{W: 960, H: 380, Label: say.T("Bytes in the database by type and namespace")}
	var boxes []box
	rest := box{name: say.T("the rest")}
	for i, t := range s.Types {
		b := box{name: t.Type, bytes: max(t.Live, 0) + max(t.History, 0)}
		if i >= maxTypes {
			rest.bytes += b.bytes
			continue
		}
		left := b.bytes
		for _, n := range t.Namespaces {
			size := min(max(n.Live, 0)+max(n.History, 0), left)
			name := n.Namespace
			if name == "" {
				name = say.T("cluster-wide")
			}
			b.kids = append(b.kids, box{name: name, bytes: size})
			left -= size
		}
		if left > 0 && len(b.kids) > 0 {
			b.kids = append(b.kids, box{name: say.T("others"), bytes: left})
		}
		boxes = append(boxes, b)
	}
	boxes = append(boxes, rest)
	total := int64(0)
	for _, b := range boxes {
		total += b.bytes
	}
	for i, c := range squarify(boxes, 0, 0, float64(p.W), float64(p.H)) {
		class := fmt.Sprintf("t%d", i%8)
		size := bundle.FormatBytes(c.bytes)
		p.rect(c.x, c.y, c.w, c.h, "tile "+class, fmt.Sprintf("%s %s %s", c.name, size, percent(c.bytes, total)))
		label := c.h > 20 && c.w > 40
		if len(c.kids) > 0 && c.h > 50 && c.w > 50 {
			for _, k := range squarify(c.kids, c.x+2, c.y+22, c.w-4, c.h-24) {
				p.rect(k.x, k.y, k.w, k.h, "sub", fmt.Sprintf("%s / %s %s", c.name, k.name, bundle.FormatBytes(k.bytes)))
				if k.h > 18 && k.w > 40 {
					p.text(k.x+5, k.y+15, "start", "small", fit(k.name+" "+bundle.FormatBytes(k.bytes), k.w-8))
				}
			}
		}
		if label {
			p.text(c.x+6, c.y+16, "start", "strong", fit(c.name+" "+size, (c.w-12)*0.86))
		}
	}
	return p
}

// A cell is a box with its place.
type cell struct {
	box
	x, y, w, h float64
}

// squarify lays boxes out in a rectangle so that they are as near to squares
// as a greedy pass gets them (Bruls, Huizing, van Wijk, 2000). Areas follow the
// bytes; boxes of none are left out.
func squarify(boxes []box, x, y, w, h float64) []cell {
	boxes = slices.DeleteFunc(slices.Clone(boxes), func(b box) bool { return b.bytes <= 0 })
	slices.SortStableFunc(boxes, func(a, b box) int { return cmp.Compare(b.bytes, a.bytes) })
	total := 0.0
	for _, b := range boxes {
		total += float64(b.bytes)
	}
	if total <= 0 || w <= 0 || h <= 0 {
		return nil
	}
	scale := w * h / total
	var out []cell
	for len(boxes) > 0 {
		short := min(w, h)
		n, sum, worst := 0, 0.0, 0.0
		for n < len(boxes) {
			area := float64(boxes[n].bytes) * scale
			s := sum + area
			side := s / short // thickness of the row with this box
			first, last := float64(boxes[0].bytes)*scale/side, area/side
			ratio := max(first/side, side/first, last/side, side/last)
			if n > 0 && ratio > worst {
				break
			}
			n, sum, worst = n+1, s, ratio
		}
		side := sum / short
		at := 0.0
		for _, b := range boxes[:n] {
			length := float64(b.bytes) * scale / side
			if w >= h {
				out = append(out, cell{b, x, y + at, side, length})
			} else {
				out = append(out, cell{b, x + at, y, length, side})
			}
			at += length
		}
		if w >= h {
			x, w = x+side, w-side
		} else {
			y, h = y+side, h-side
		}
		boxes = boxes[n:]
	}
	return out
}
