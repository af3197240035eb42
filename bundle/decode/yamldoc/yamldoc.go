// Package yamldoc reads hostile YAML: nodes first, so that aliases, depth and
// size are refused before anything is expanded, and every value keeps its
// line. It imports nothing of ours; collect and analyze use it.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	sigsjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

// Limits of one file.
const (
	MaxBytes = 10 << 20 // kubelet reads at most 10 MiB of a manifest: pkg/kubelet/config/file.go maxConfigLength
	MaxDepth = 64
	MaxDocs  = 32
	MaxNodes = 300_000 // a 3 MB file of 300,000 keys costs 330 MB in the YAML library
)

// A Class says what kind of fault an Error is.
type Class string

// Classes of faults.
const (
	Syntax  Class = "syntax"  // not YAML
	Refused Class = "refused" // alias, anchor, depth or count over the limits
	Shape   Class = "shape"   // YAML, but not of the type asked for
)

// An Error is a fault with its place.
type Error struct {
	Class        Class
	Line, Column int // 1-based; 0 when not known
	Msg          string
}

func (e *Error) Error() string {
	switch {
	case e.Line > 0 && e.Column > 0:
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
	case e.Line > 0:
		return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
	}
	return e.Msg
}

// A File is a parsed file.
type File struct {
	Docs       []*Doc
	Duplicates []Duplicate // keys given twice; the last one counts, as for the kubelet
}

// A Duplicate is a mapping key that occurs again.
type Duplicate struct {
	Pointer     string
	First, Line int
}

// A Doc is one document of a file.
type Doc struct {
	Root  *yaml.Node // the content node; nil for an empty document
	Start int        // line the document's content begins at
	raw   []byte     // bytes of this document
}

// Parse reads every document of a file. The error is an *Error; documents
// before it are returned too.
func Parse(data []byte) (*File, error) {
	f := &File{}
	if len(data) > MaxBytes {
		return f, &Error{Class: Refused, Msg: fmt.Sprintf("%d bytes, more than the limit of %d", len(data), MaxBytes)}
	}
	if line := invalidUTF8(data); line > 0 {
		return f, &Error{Class: Syntax, Line: line, Msg: "invalid UTF-8"}
	}
	if n := bytes.Count(data, []byte{'\n'}) + bytes.Count(data, []byte{','}); n > MaxNodes {
		return f, &Error{Class: Refused, Msg: fmt.Sprintf("more than %d lines or list items", MaxNodes)}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	parts := split(data)
	for i := 0; ; i++ {
		var n yaml.Node
		err := decode(dec, &n)
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return f, syntaxError(err, data)
		}
		if i >= MaxDocs {
			return f, &Error{Class: Refused, Line: n.Line, Msg: fmt.Sprintf("more than %d documents", MaxDocs)}
		}
		d := &Doc{Start: n.Line}
		if len(n.Content) > 0 {
			d.Root = n.Content[0]
		}
		if i < len(parts) {
			d.raw = parts[i]
		}
		w := walker{}
		if d.Root != nil {
			if err := w.check(d.Root, "", 0); err != nil {
				return f, err
			}
		}
		f.Duplicates = append(f.Duplicates, w.dups...)
		f.Docs = append(f.Docs, d)
	}
}

// decode keeps a panic of the library inside: a defect there is an error of
// the file, not of the analysis.
func decode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return dec.Decode(n)
}

func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return 0
	}
	line := 1
	for len(b) > 0 {
		r, w := utf8.DecodeRune(b)
		if r == utf8.RuneError && w == 1 {
			return line
		}
		if r == '\n' {
			line++
		}
		b = b[w:]
	}
	return 0
}

var lineNo = regexp.MustCompile(`line (\d+)`)

func syntaxError(err error, data []byte) *Error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	e := &Error{Class: Syntax, Msg: msg}
	if m := lineNo.FindStringSubmatch(msg); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		if i := strings.Index(msg, ": "); i >= 0 && strings.HasPrefix(msg, "line ") {
			e.Msg = msg[i+2:]
		}
	}
	if strings.Contains(msg, "anchor") || strings.Contains(msg, "alias") {
		e.Class = Refused
	}
	// The library names the line before a tab that begins an indentation.
	if strings.Contains(msg, "cannot start any token") || strings.Contains(msg, "tab character") {
		lines := bytes.Split(data, []byte("\n"))
		for i := max(e.Line-1, 0); i < len(lines) && i < e.Line+2; i++ {
			if t := bytes.IndexByte(lines[i], '\t'); t >= 0 && len(bytes.TrimLeft(lines[i][:t], " ")) == 0 {
				e.Line, e.Column, e.Msg = i+1, t+1, "a tab used for indentation"
				break
			}
		}
	}
	return e
}

type walker struct {
	dups []Duplicate
}

func (w *walker) check(n *yaml.Node, ptr string, depth int) error {
	switch {
	case depth > MaxDepth:
		return &Error{Class: Refused, Line: n.Line, Column: n.Column, Msg: fmt.Sprintf("nested deeper than %d", MaxDepth)}
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return &Error{Class: Refused, Line: n.Line, Column: n.Column, Msg: "anchors and aliases are not read"}
	}
	switch n.Kind {
	case yaml.MappingNode:
		seen := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if k.Tag == "!!merge" || k.Kind == yaml.AliasNode {
				return &Error{Class: Refused, Line: k.Line, Column: k.Column, Msg: "merge keys are not read"}
			}
			p := ptr + "/" + Escape(k.Value)
			if first, ok := seen[k.Value]; ok && len(w.dups) < 100 {
				w.dups = append(w.dups, Duplicate{Pointer: p, First: first, Line: k.Line})
			}
			seen[k.Value] = k.Line
			if err := w.check(v, p, depth+1); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			if err := w.check(c, ptr+"/"+strconv.Itoa(i), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// split cuts a file at its document separators, so that each document can be
// converted alone.
func split(data []byte) [][]byte {
	var out [][]byte
	start, at := 0, 0
	for line := range bytes.Lines(data) {
		t := bytes.TrimRight(line, " \t\r\n")
		if bytes.Equal(t, []byte("---")) || bytes.HasPrefix(line, []byte("--- ")) {
			if doc := data[start:at]; len(out) > 0 || hasContent(doc) {
				out = append(out, doc)
			}
			start = at + 3
		}
		at += len(line)
	}
	return append(out, data[start:])
}

// hasContent reports whether the part before the first separator is a
// document and not only comments, directives or blank lines.
func hasContent(b []byte) bool {
	for line := range bytes.Lines(b) {
		t := bytes.TrimSpace(line)
		if len(t) > 0 && t[0] != '#' && t[0] != '%' {
			return true
		}
	}
	return false
}

// JSON converts the document as the Kubernetes components do (YAML 1.1
// scalars, last duplicate wins).
func (d *Doc) JSON() ([]byte, error) {
	b, err := sigsyaml.YAMLToJSON(d.raw)
	if err != nil {
		return nil, &Error{Class: Shape, Line: d.Start, Msg: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	return b, nil
}

// Decode converts the document into a Kubernetes type, case-sensitively and
// ignoring unknown fields, as the API machinery does. The error is an *Error.
func (d *Doc) Decode(into any) error {
	b, err := d.JSON()
	if err != nil {
		return err
	}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(b, into); err != nil {
		e := &Error{Class: Shape, Line: d.Start, Msg: strings.TrimPrefix(err.Error(), "json: ")}
		// "cannot unmarshal string into Go struct field Pod.spec.containers of type ..."
		if m := fieldPath.FindStringSubmatch(e.Msg); m != nil {
			if n := d.deepest("/" + strings.ReplaceAll(m[1], ".", "/")); n != nil {
				e.Line, e.Column = n.Line, n.Column
			}
		}
		return e
	}
	return nil
}

var fieldPath = regexp.MustCompile(`field [A-Za-z]*\.([A-Za-z0-9.]+) of type`)

// deepest returns the node nearest to a pointer, stepping into the first item
// of lists the error text does not number.
func (d *Doc) deepest(ptr string) *yaml.Node {
	n := d.Root
	for _, part := range strings.Split(strings.TrimPrefix(ptr, "/"), "/") {
		for n != nil && n.Kind == yaml.SequenceNode && len(n.Content) > 0 {
			n = n.Content[0]
		}
		c := child(n, part)
		if c == nil {
			break
		}
		n = c
	}
	return n
}

// At returns the node an RFC 6901 pointer names, or nil.
func (d *Doc) At(ptr string) *yaml.Node {
	if ptr == "" {
		return d.Root
	}
	n := d.Root
	for _, part := range strings.Split(strings.TrimPrefix(ptr, "/"), "/") {
		if n = child(n, Unescape(part)); n == nil {
			return nil
		}
	}
	return n
}

// child returns a member of a mapping (the last of that name) or an item of a
// sequence.
func child(n *yaml.Node, name string) *yaml.Node {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := len(n.Content) - 2; i >= 0; i -= 2 {
			if n.Content[i].Value == name {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

// Line returns the line of the value a pointer names or, when it is not
// there, of the nearest mapping above it; 0 for an empty document.
func (d *Doc) Line(ptr string) int {
	if d.Root == nil {
		return d.Start
	}
	for {
		if n := d.At(ptr); n != nil {
			return n.Line
		}
		i := strings.LastIndexByte(ptr, '/')
		if i <= 0 {
			return d.Root.Line
		}
		ptr = ptr[:i]
	}
}

// String returns the scalar a pointer names, or "".
func (d *Doc) String(ptr string) string {
	if n := d.At(ptr); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// BlockLine returns the line in the file at which the content of a scalar
// begins: literal blocks begin on the line after their indicator.
func BlockLine(n *yaml.Node) int {
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Line + 1
	}
	return n.Line
}

// Escape writes one RFC 6901 reference token.
func Escape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// Unescape reads one RFC 6901 reference token.
func Unescape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}
