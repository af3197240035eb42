package certtable

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"coldplane/report"
	"coldplane/report/csv"
	"coldplane/report/jsonfmt"
)

// A Table is what a format draws.
type Table struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	AsOf       *time.Time `json:"asOf"`
	AsOfSource string     `json:"asOfSource,omitempty"`
	// Certificates are the rows, in the order to show.
	Certificates []report.Certificate `json:"certificates"`
	// Findings are those about certificates, gravest first.
	Findings []report.Finding `json:"findings"`
}

// New makes a table of a report's certificates and findings.
func New(r *report.Report) *Table {
	cs, _ := report.Fact[[]report.Certificate](r, report.FactCertificates)
	t := &Table{APIVersion: report.APIVersion, Kind: "CertificateTable", AsOf: r.AsOf, AsOfSource: r.AsOfSource,
		Certificates: slices.Clone(cs), Findings: r.Findings}
	if t.Certificates == nil {
		t.Certificates = []report.Certificate{}
	}
	for i := range t.Certificates {
		c := &t.Certificates[i]
		for _, f := range r.Findings {
			if f.Node == c.Node && about(f, c) {
				c.Findings = append(c.Findings, f.ID)
			}
		}
	}
	return t
}

// about reports whether a finding's subject is a certificate.
func about(f report.Finding, c *report.Certificate) bool {
	for _, e := range f.Evidence {
		if e.Role == report.RoleSubject && e.Path == c.Path && (e.Pointer == "" || e.Pointer == c.Pointer) {
			return true
		}
	}
	return false
}

// rules names the rules of a row's findings.
func (t *Table) rules(c report.Certificate) string {
	var out []string
	for _, f := range t.Findings {
		if slices.Contains(c.Findings, f.ID) && !slices.Contains(out, f.Rule) {
			out = append(out, f.Rule)
		}
	}
	return strings.Join(out, " ")
}

// Sorts are the orders a table can have.
func Sorts() []string { return []string{"expires", "file", "node", "role", "subject", "chain"} }

// Sort orders the rows by one of Sorts; what is equal keeps node, file and
// place order. Certificates without a date come first when sorted by expiry:
// they are unreadable or missing.
func (t *Table) Sort(by string) error {
	if !slices.Contains(Sorts(), by) {
		return fmt.Errorf("%q is no order; one of %s", by, strings.Join(Sorts(), ", "))
	}
	badness := map[string]int{report.Bad: 0, report.NotKnown: 1, report.Good: 2}
	slices.SortStableFunc(t.Certificates, func(a, b report.Certificate) int {
		c := 0
		switch by {
		case "expires":
			c = a.NotAfter.Compare(b.NotAfter)
		case "file":
			c = cmp.Or(strings.Compare(a.Origin, b.Origin), strings.Compare(a.Node, b.Node))
		case "role":
			c = strings.Compare(a.Role, b.Role)
		case "subject":
			c = strings.Compare(a.Subject, b.Subject)
		case "chain":
			c = cmp.Compare(badness[a.Chain], badness[b.Chain])
		}
		return cmp.Or(c, strings.Compare(a.Node, b.Node))
	})
	return nil
}

// A Writer writes a table in one format.
type Writer func(w io.Writer, t *Table, o report.Options) error

// Formats are the formats by name.
func Formats() map[string]Writer {
	return map[string]Writer{
		"text": Text,
		"wide": func(w io.Writer, t *Table, o report.Options) error {
			o.Wide = true
			return Text(w, t, o)
		},
		"json": func(w io.Writer, t *Table, _ report.Options) error { return JSON(w, t) },
		"yaml": func(w io.Writer, t *Table, _ report.Options) error { return YAML(w, t) },
		"csv":  CSV,
		"html": HTML,
	}
}

// Names returns the names of the formats, sorted.
func Names() []string {
	var out []string
	for n := range Formats() {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// JSON writes the table as indented JSON.
func JSON(w io.Writer, t *Table) error {
	b, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(jsonfmt.Escape(b), '\n'))
	return err
}

// YAML writes the table as YAML.
func YAML(w io.Writer, t *Table) error { return jsonfmt.WriteYAML(w, t) }

// CSV writes the rows as comma-separated values.
func CSV(w io.Writer, t *Table, o report.Options) error {
	r := &report.Report{AsOf: t.AsOf, Facts: map[string]any{report.FactCertificates: t.Certificates}}
	return csv.Table("certificates")(w, r, o)
}

// left says how long a certificate still is good.
func left(c report.Certificate) string {
	switch {
	case c.Missing:
		return "missing"
	case c.NotAfter.IsZero():
		return "unreadable"
	case c.AsOf == nil:
		return "?"
	case c.AsOf.Before(c.NotBefore):
		return "not yet"
	}
	d := c.NotAfter.Sub(*c.AsOf)
	switch {
	case d < 0:
		return "expired"
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dm", int(d.Minutes()))
}

func date(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

// name is how a row is called: the file on the node, and the field in it.
func name(c report.Certificate) string {
	s := c.Origin
	if s == "" {
		s = c.Path
	}
	if strings.HasSuffix(c.Pointer, "certificate-authority-data") {
		s += " (CA)"
	}
	return s
}
