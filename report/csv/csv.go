// Package csv writes the tables of a report as comma-separated values that a
// spreadsheet shows and never computes.
//
// encoding/csv is not used: it quotes only where it must and lets formulas
// through. Here every cell is quoted, and a cell of text that a spreadsheet
// might take for a formula begins with an apostrophe (OWASP ASVS 1.2.10).
package csv

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"coldplane/report"
)

// A number is a cell of digits of our own making.
type number string

func num[T ~int | ~int64](n T) number { return number(strconv.FormatInt(int64(n), 10)) }

func optional[T ~int | ~int64](p *T) any {
	if p == nil {
		return ""
	}
	return num(*p)
}

func when(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// A table is one way to see the report as rows.
type table struct {
	head []string
	rows func(r *report.Report, add func(cells ...any))
}

// Tables returns the names of the tables, sorted.
func Tables() []string {
	var out []string
	for n := range tables() {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// Table returns the renderer of one table, nil when there is none of that name.
func Table(name string) report.Renderer {
	t, ok := tables()[name]
	if !ok {
		return nil
	}
	return func(w io.Writer, r *report.Report, _ report.Options) error {
		b := bufio.NewWriter(w)
		head := make([]any, len(t.head))
		for i, h := range t.head {
			head[i] = h
		}
		row(b, head...)
		t.rows(r, func(cells ...any) { row(b, cells...) })
		return b.Flush() // bufio keeps the first write error
	}
}

const maxCell = 2000 // runes

func row(b *bufio.Writer, cells ...any) {
	for i, c := range cells {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		switch c := c.(type) {
		case number:
			b.WriteString(string(c))
		case string:
			b.WriteString(strings.ReplaceAll(text(c), `"`, `""`))
		}
		b.WriteByte('"')
	}
	b.WriteString("\r\n") // RFC 4180
}

// text makes a cell safe: visible, and no formula. Full-width signs count too,
// spreadsheets fold them.
func text(s string) string {
	raw := strings.TrimLeft(s, " \u00a0\u3000")
	s = report.Visible(s, maxCell)
	if raw != "" && strings.ContainsAny(string([]rune(raw)[0]), "=+-@\t\r\n|%＝＋－＠") {
		return "'" + s
	}
	return s
}
