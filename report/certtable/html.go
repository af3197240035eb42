package certtable

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"coldplane/report"
)

// page is one file that loads nothing and runs nothing: bars are SVG shapes,
// so that even style attributes are not needed.
var page = template.Must(template.New("certs").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Certificates</title>
<style>
body{font:14px/1.4 system-ui,sans-serif;margin:1.5em;color:#1b1f24;background:#fff}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3em .6em;border-bottom:1px solid #d8dee4}
th{position:sticky;top:0;background:#f6f8fa}
.bad{color:#b3261e;font-weight:600}.soon{color:#9a6700}.dim{color:#59636e}
code{font-size:12px;word-break:break-all}
svg{display:block;width:14em;height:1em}
details summary{cursor:pointer}
@media (prefers-color-scheme:dark){body{background:#14171a;color:#e6e8ea}th{background:#1d2125}th,td{border-color:#333a41}.bad{color:#ff8a80}.soon{color:#e3b341}.dim{color:#9aa4ae}}
</style></head><body>
<h1>Certificates</h1>
<p class="dim">{{if .AsOf}}As of {{.AsOf}}. {{end}}Bars show a year before and a year after that time; the line is now.</p>
{{if .Findings}}<h2>Findings</h2><ul>{{range .Findings}}<li><span class="{{.Class}}">{{.Severity}}</span> {{.Rule}} {{.Node}} {{.Message}}</li>{{end}}</ul>{{end}}
<table><thead><tr><th>Node</th><th>File</th><th>Role</th><th>Expires</th><th>Left</th><th>Validity</th><th>Chain</th><th>Key</th></tr></thead><tbody>
{{range .Rows}}<tr><td>{{.Node}}</td><td><details><summary>{{.File}}</summary><dl>{{range .Details}}<dt class="dim">{{.Key}}</dt><dd><code>{{.Value}}</code></dd>{{end}}</dl></details></td>
<td>{{.Role}}</td><td>{{.Expires}}</td><td class="{{.Class}}">{{.Left}}</td><td>{{if .Bar}}<svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{{.Left}}">
<rect x="0" y="4" width="100" height="2" fill="#8884"></rect><rect x="{{.PastX}}" y="2" width="{{.PastW}}" height="6" fill="#8899a6"></rect><rect x="{{.AheadX}}" y="2" width="{{.AheadW}}" height="6" fill="{{.Fill}}"></rect><rect x="49.7" y="0" width="0.6" height="10" fill="#888"></rect></svg>{{end}}</td>
<td{{if .ChainBad}} class="bad"{{end}}>{{.Chain}}</td><td{{if .KeyBad}} class="bad"{{end}}>{{.Key}}</td></tr>
{{end}}</tbody></table></body></html>
`))

type htmlDetail struct{ Key, Value string }

type htmlRow struct {
	Node, File, Role, Expires, Left, Class, Chain, Key string
	ChainBad, KeyBad, Bar                              bool
	PastX, PastW, AheadX, AheadW, Fill                 string
	Details                                            []htmlDetail
}

type htmlFinding struct{ Severity, Class, Rule, Node, Message string }

// HTML writes the table as one self-contained page without scripts.
func HTML(w io.Writer, t *Table, _ report.Options) error {
	data := struct {
		AsOf     string
		Findings []htmlFinding
		Rows     []htmlRow
	}{}
	if t.AsOf != nil {
		data.AsOf = date(*t.AsOf)
	}
	for _, f := range t.Findings {
		x := htmlFinding{string(f.Severity), "dim", f.Rule, visible(f.Node, 0), visible(f.Message, 0)}
		if f.Severity.AtLeast(report.High) {
			x.Class = "bad"
		}
		data.Findings = append(data.Findings, x)
	}
	for _, c := range t.Certificates {
		data.Rows = append(data.Rows, htmlRowOf(c))
	}
	return page.Execute(w, data)
}

func htmlRowOf(c report.Certificate) htmlRow {
	r := htmlRow{Node: visible(c.Node, 0), File: visible(name(c), 0), Role: visible(c.Role, 0), Expires: date(c.NotAfter), Left: left(c),
		Chain: short(c.Chain), Key: short(c.KeyMatch), ChainBad: c.Chain == report.Bad, KeyBad: c.KeyMatch == report.Bad, Fill: "#2da44e"}
	switch {
	case r.Left == "expired" || r.Left == "not yet" || r.Left == "unreadable" || r.Left == "missing":
		r.Class, r.Fill = "bad", "#cf222e"
	case c.DaysLeft != nil && *c.DaysLeft < 28:
		r.Class, r.Fill = "soon", "#bf8700"
	}
	if s, ok := spanOf(c); ok {
		pct := func(f float64) string { return fmt.Sprintf("%.2f", f) }
		r.Bar = true
		r.PastX, r.PastW = pct(s.From), pct(max(0, min(s.To, s.Now)-s.From))
		r.AheadX, r.AheadW = pct(max(s.From, s.Now)), pct(max(0, s.To-max(s.From, s.Now)))
	}
	add := func(k, v string) {
		if v != "" {
			r.Details = append(r.Details, htmlDetail{k, visible(v, 0)})
		}
	}
	add("subject", c.Subject)
	add("issuer", c.Issuer)
	add("serial", c.Serial)
	if !c.NotBefore.IsZero() {
		add("valid from", date(c.NotBefore))
	}
	add("names", strings.Join(c.SANs, ", "))
	add("usages", strings.Join(c.Usages, ", "))
	add("public key", c.SPKI)
	add("chain", c.ChainWhy)
	for _, u := range c.UsedBy {
		add("used by", u)
	}
	add("in the input", c.Path)
	return r
}
