package text

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// wrap breaks a paragraph at spaces so that no line is wider than width
// columns; a longer word is left whole (paths and commands must be copyable).
func wrap(s string, width int) []string {
	var lines []string
	line, w := "", 0
	for word := range strings.FieldsSeq(s) {
		ww := runewidth.StringWidth(word)
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
