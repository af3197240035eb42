// Package jsonfmt writes a report as JSON or YAML, the stable machine forms,
// and reads the JSON form back.
package jsonfmt

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode"

	"sigs.k8s.io/yaml"

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
	_, err = w.Write(append(escape(b), '\n'))
	return err
}

// escape replaces what encoding/json leaves raw: C1 controls, bidi and other
// format characters. Outside strings JSON has none of them.
func escape(b []byte) []byte {
	s := string(b)
	clean := true
	for _, r := range s {
		if r >= 0x7f && risky(r) {
			clean = false
			break
		}
	}
	if clean {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for _, r := range s {
		switch {
		case r < 0x7f || !risky(r):
			out = append(out, string(r)...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

func risky(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// YAML writes the report as YAML.
func YAML(w io.Writer, r *report.Report) error {
	j, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b, err := yaml.JSONToYAML(j)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
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
