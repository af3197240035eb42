package text

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// cells measures columns of a terminal the same way everywhere: the library's
// own default looks at the locale, and a report must not depend on it.
var cells = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

// wrap breaks a paragraph at spaces so that no line is wider than width
// columns; a longer word is left whole (paths and commands must be copyable).
func wrap(s string, width int) []string {
	var lines []string
	line, w := "", 0
	for word := range strings.FieldsSeq(s) {
		ww := cells.StringWidth(word)
		if w > 0 && w+1+ww > width {
			lines = append(lines, line)
			line, w = "", 0
		}
		if w > 0 {
			line += " "
			w++
		}
		line += word
		w += ww
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// cut shortens to a number of columns.
func cut(s string, width int) string { return cells.Truncate(s, width, "…") }

// pad fills up to a number of columns.
func pad(s string, width int) string { return cells.FillRight(s, width) }
