package jsonfmt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"coldplane/report"
)

// YAML writes the report as YAML. Strings with characters that could act on a
// terminal are double-quoted and the characters written as escapes.
func YAML(w io.Writer, r *report.Report) error { return WriteYAML(w, r) }

// WriteYAML is YAML for any value that encoding/json can write.
func WriteYAML(w io.Writer, v any) error {
	j, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var doc yaml.Node // JSON is YAML; nodes keep the order of the fields
	if err := yaml.Unmarshal([]byte(escapeYAML(string(j))), &doc); err != nil {
		return err
	}
	style(&doc)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return err
	}
	_, err = io.WriteString(w, escapeYAML(b.String()))
	return err
}

// style drops JSON's flow style, and its quotes where plain text reads back as
// the same string.
func style(n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		if len(n.Content) > 0 {
			n.Style = 0
		}
	case yaml.ScalarNode:
		if n.Tag != "!!str" {
			break
		}
		n.Style = 0
		if strings.ContainsFunc(n.Value, func(r rune) bool { return risky(r) || r < 0x20 }) || strings.Contains(n.Value, "##") {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	for _, c := range n.Content {
		style(c)
	}
}

// escapeYAML escapes what the emitter leaves raw; all of it stands in
// double-quoted strings.
func escapeYAML(s string) string {
	if !strings.ContainsFunc(s, risky) && !strings.Contains(s, "##") {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '#' && (strings.HasPrefix(s[i:], "##[") || strings.HasPrefix(s[i:], "##vso[")):
			b.WriteString(`\x23`)
		case !risky(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
