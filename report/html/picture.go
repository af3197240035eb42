package html

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
)

// A picture is an SVG drawing: a box of units with shapes in it. Colours are
// classes of the style sheet, so that it follows light and dark.
type picture struct {
	W, H   int
	Label  string // what a screen reader says
	ID     string
	Shapes []shape
}

// A shape is a rectangle, line, circle or text. Title is its tooltip.
type shape struct {
	Kind       string // "rect", "line", "circle", "text"
	X, Y, W, H float64
	Class      string
	Text       string
	Title      string
	Anchor     string // of text: "start", "middle", "end"
}

func (p *picture) rect(x, y, w, h float64, class, title string) {
	p.Shapes = append(p.Shapes, shape{Kind: "rect", X: x, Y: y, W: max(w, 0), H: max(h, 0), Class: class, Title: title})
}

// line goes from x, y to w, h.
func (p *picture) line(x, y, w, h float64, class string) {
	p.Shapes = append(p.Shapes, shape{Kind: "line", X: x, Y: y, W: w, H: h, Class: class})
}

func (p *picture) circle(x, y, r float64, class, title string) {
	p.Shapes = append(p.Shapes, shape{Kind: "circle", X: x, Y: y, W: r, Class: class, Title: title})
}

func (p *picture) text(x, y float64, anchor, class, text string) {
	p.Shapes = append(p.Shapes, shape{Kind: "text", X: x, Y: y, Anchor: anchor, Class: class, Text: text})
}

// N writes a coordinate shortly.
func (p picture) N(f float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', 1, 64), "0"), ".")
}

// cells measures text the same way everywhere, whatever the locale.
var cells = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

// fit cuts text to so many units of width, at about seven units a column.
func fit(s string, width float64) string {
	n := int(width / 7.2)
	if n < 3 {
		return ""
	}
	return cells.Truncate(s, n, "…")
}

func percent(part, whole int64) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}
