// Package jsonfmt writes a report as JSON or YAML, the stable machine forms,
// and reads the JSON form back.
package jsonfmt

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"coldplane/report"
)

// JSON writes the report as indented JSON with a final newline. Characters
// that could act on a terminal are written as \u escapes, which JSON readers
// turn back.
func JSON(w io.Writer, r *report.Report) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(Escape(b), '\n'))
	return err
}

// Escape replaces what encoding/json leaves raw: C1 controls, bidi and other
// format characters, and the "##" before a bracket that CI systems take for a
// command wherever it stands in a line. b must be valid JSON, which has none
// of them outside strings.
func Escape(b []byte) []byte {
	s := string(b)
	if !strings.ContainsFunc(s, risky) && !strings.Contains(s, "##") {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for i, r := range s {
		switch {
		case r == '#' && (strings.HasPrefix(s[i:], "##[") || strings.HasPrefix(s[i:], "##vso[")):
			out = append(out, `\u0023`...)
		case !risky(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

func risky(r rune) bool {
	return r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// Read reads a report written by JSON. Unknown fields are tolerated; another
// apiVersion or kind is an error.
func Read(r io.Reader) (*report.Report, error) {
	out := &report.Report{}
	if err := json.NewDecoder(r).Decode(out); err != nil {
		return nil, err
	}
	if out.APIVersion != report.APIVersion || out.Kind != report.Kind {
		return nil, fmt.Errorf("apiVersion %q, kind %q; want %s %s", out.APIVersion, out.Kind, report.APIVersion, report.Kind)
	}
	return out, nil
}
