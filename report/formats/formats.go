// Package formats is the list of all report formats by name.
package formats

import (
	"io"
	"slices"

	"coldplane/report"
	"coldplane/report/csv"
	"coldplane/report/html"
	"coldplane/report/jsonfmt"
	"coldplane/report/junit"
	"coldplane/report/markdown"
	"coldplane/report/sarif"
	"coldplane/report/text"
)

// wideColumns is the least width of the wide form.
const wideColumns = 160

// All returns the formats. "csv" is the table of findings; "csv-NAME" are the
// other tables.
func All() map[string]report.Renderer {
	all := map[string]report.Renderer{
		"text":     text.Write,
		"wide":     wide,
		"json":     func(w io.Writer, r *report.Report, _ report.Options) error { return jsonfmt.JSON(w, r) },
		"yaml":     func(w io.Writer, r *report.Report, _ report.Options) error { return jsonfmt.YAML(w, r) },
		"markdown": markdown.Write,
		"sarif":    sarif.Write,
		"junit":    junit.Write,
		"html":     html.Write,
		"csv":      csv.Table("findings"),
	}
	for _, t := range csv.Tables() {
		all["csv-"+t] = csv.Table(t)
	}
	return all
}

func wide(w io.Writer, r *report.Report, o report.Options) error {
	o.Wide, o.Width = true, max(o.Width, wideColumns)
	return text.Write(w, r, o)
}

// Names returns the names of the formats, sorted.
func Names() []string {
	var out []string
	for n := range All() {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
