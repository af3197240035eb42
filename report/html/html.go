// Package html writes a report as one self-contained page.
//
// The page loads nothing: no script, font, image or style from anywhere. Its
// one style sheet and one script are static and allowed by their digests, so
// that a browser refuses whatever a hostile string might smuggle in. Without
// JavaScript everything is there to read; the script adds search, filters,
// sorting and copying. Pictures are SVG drawn here.
package html

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"coldplane/report"
	"coldplane/report/words"
)

//go:embed page
var page embed.FS

// Write writes the report.
func Write(w io.Writer, r *report.Report, o report.Options) error {
	say := words.For(o.Lang)
	t, err := parse(say)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	if err := t.ExecuteTemplate(b, "page.tmpl", newView(clean(say.Report(r, o)), o, say)); err != nil {
		return err
	}
	return b.Flush()
}

// parse reads the templates with the style sheet and the script in place.
func parse(say *words.Words) (*template.Template, error) {
	style, err := asset("style.css")
	if err != nil {
		return nil, err
	}
	script, err := asset("script.js")
	if err != nil {
		return nil, err
	}
	t := template.New("").Funcs(funcs(say))
	entries, err := page.ReadDir("page")
	if err != nil {
		return nil, err
	}
	policy := "default-src 'none'; style-src '" + digest(style) + "'; script-src '" + digest(script) + "'; base-uri 'none'; form-action 'none'"
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".tmpl") {
			continue
		}
		text, err := page.ReadFile("page/" + e.Name())
		if err != nil {
			return nil, err
		}
		s := strings.NewReplacer("@POLICY@", policy, "@STYLE@", style, "@SCRIPT@", script).Replace(string(text))
		if _, err := t.New(e.Name()).Parse(s); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// asset reads a static file without its comment lines, which the template
// engine would take out after the digest is made.
func asset(name string) (string, error) {
	b, err := page.ReadFile("page/" + name)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteByte('\n')
	for l := range strings.Lines(string(b)) {
		s := strings.TrimSpace(l)
		if s == "" || strings.HasPrefix(s, "//") || strings.HasPrefix(s, "/*") && strings.HasSuffix(s, "*/") {
			continue
		}
		out.WriteString(l)
	}
	return out.String(), nil
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
