package redact

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlLimit bounds a YAML text that is taken apart; larger ones become a
// skeleton.
const yamlLimit = 1 << 20

// A scalarFunc decides about one scalar of a YAML text. path holds the keys that
// lead to it; elements of sequences add nothing, the value of a {name, value} pair
// adds its name.
type scalarFunc func(path []string, n *yaml.Node) verdict

type verdict uint8

const (
	dropScalar     verdict = iota // masked
	keepScalar                    // stays
	argScalar                     // one argument of a command: by the flags' list
	configText                    // a text that is YAML itself, taken apart the same way
	keepChecked                   // stays unless it has a secret's shape
	redactedScalar                // reads REDACTED
)

// yamlInPlace masks a YAML text in place: keys stay, scalars only where f says so,
// comments and everything else lose letters and digits. Lines and columns are
// those of the source. A text that cannot be parsed is masked by Skeleton. It
// reports whether the text could be parsed.
func yamlInPlace(b []byte, f scalarFunc) bool {
	docs, ok := yamlNodes(b)
	if !ok {
		Skeleton(b)
		return false
	}
	y := &yamlMasker{src: slices.Clone(b), out: b, f: f, flags: newFlagSet(), lines: lineStarts(b)}
	mask(b)
	for _, d := range docs {
		y.node(nil, d, 0)
	}
	// The masked text must still be the same document with fewer letters: else
	// something was put back at a wrong place.
	if again, ok := yamlNodes(b); !ok || !sameShape(docs, again) {
		copy(b, y.src)
		Skeleton(b)
		return false
	}
	return true
}

func yamlNodes(b []byte) (docs []*yaml.Node, ok bool) {
	if len(b) > yamlLimit || bytes.IndexByte(b, 0) >= 0 {
		return nil, false
	}
	defer func() {
		if recover() != nil { // the parser is not ours
			docs, ok = nil, false
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(b))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if err != nil {
			return docs, err.Error() == "EOF"
		}
		if len(docs) >= 64 || !plainTree(&n, 0) {
			return nil, false
		}
		docs = append(docs, &n)
	}
}

// plainTree refuses anchors, aliases and great depth.
func plainTree(n *yaml.Node, depth int) bool {
	if depth > 64 || n.Kind == yaml.AliasNode || n.Anchor != "" {
		return false
	}
	for _, c := range n.Content {
		if !plainTree(c, depth+1) {
			return false
		}
	}
	return true
}

func sameShape(a, b []*yaml.Node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Kind != b[i].Kind || a[i].Line != b[i].Line || a[i].Column != b[i].Column || !sameShape(a[i].Content, b[i].Content) {
			return false
		}
	}
	return true
}

func lineStarts(b []byte) []int {
	out := []int{0}
	for i, c := range b {
		if c == '\n' {
			out = append(out, i+1)
		}
	}
	return out
}

type yamlMasker struct {
	src, out []byte
	lines    []int
	f        scalarFunc
	flags    *flagSet
}

func (y *yamlMasker) node(path []string, n *yaml.Node, depth int) {
	switch n.Kind {
	case yaml.DocumentNode:
		for _, c := range n.Content {
			y.node(path, c, depth+1)
		}
	case yaml.SequenceNode:
		keepNext := false
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				y.node(path, c, depth+1)
				continue
			}
			v := y.f(path, c)
			if v == argScalar && keepNext && !strings.HasPrefix(c.Value, "-") {
				v = keepChecked
			}
			keepNext = v == argScalar && strings.HasPrefix(c.Value, "-") && !strings.Contains(c.Value, "=") && y.flags.kept(strings.TrimLeft(c.Value, "-"))
			y.scalar(c, v)
		}
	case yaml.MappingNode:
		name := ""
		for i := 0; i+1 < len(n.Content); i += 2 {
			if k := n.Content[i].Value; k == "name" || k == "key" {
				name = n.Content[i+1].Value
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			y.key(k)
			sub := append(slices.Clip(path), k.Value)
			if v.Kind == yaml.ScalarNode && k.Value == "value" && name != "" {
				sub = append(sub, name)
			}
			y.node(sub, v, depth+1)
		}
	case yaml.ScalarNode:
		y.scalar(n, y.f(path, n))
	}
}

// key puts a key back unless it has a secret's shape or is no name at all.
func (y *yamlMasker) key(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || len(n.Value) > 253 {
		return
	}
	y.scalar(n, keepChecked)
}

func (y *yamlMasker) scalar(n *yaml.Node, v verdict) {
	if v == dropScalar {
		if word := n.Value; n.Style == 0 && (word == "true" || word == "false" || word == "null" || word == "~") {
			v = keepScalar
		} else {
			return
		}
	}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		y.block(n, v)
		return
	}
	start, end, ok := y.span(n)
	if !ok {
		return // spread over lines or escaped: stays masked
	}
	text := y.out[start:end]
	copy(text, y.src[start:end])
	switch v {
	case argScalar:
		y.flags.argument(text)
	case keepChecked:
		Check(text)
	case configText:
		yamlInPlace(text, y.f)
	case redactedScalar:
		redacted(text)
	}
}

// Marker is what a key, token or password reads after redaction.
const Marker = "REDACTED"

// redacted writes Marker over a text, with spaces behind it; a shorter text is
// masked.
func redacted(b []byte) {
	if len(b) < len(Marker) {
		mask(b)
		return
	}
	for i := range b {
		b[i] = ' '
	}
	copy(b, Marker)
}

// span finds where a scalar of one line stands in the source.
func (y *yamlMasker) span(n *yaml.Node) (start, end int, ok bool) {
	if n.Line < 1 || n.Line > len(y.lines) {
		return 0, 0, false
	}
	line := y.lines[n.Line-1]
	stop := len(y.src)
	if n.Line < len(y.lines) {
		stop = y.lines[n.Line]
	}
	// Columns count characters, not bytes.
	start = line
	for range n.Column - 1 {
		if start >= stop {
			return 0, 0, false
		}
		start++
		for start < stop && y.src[start]&0xC0 == 0x80 {
			start++
		}
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		start++
	}
	end = start + len(n.Value)
	if end > stop || string(y.src[start:end]) != n.Value {
		return 0, 0, false
	}
	return start, end, true
}

// block puts back a block scalar line by line. Its lines must be, behind one
// indentation, those of the value.
func (y *yamlMasker) block(n *yaml.Node, v verdict) {
	if n.Style&yaml.LiteralStyle == 0 || n.Line >= len(y.lines) {
		return
	}
	value := strings.TrimRight(n.Value, "\n")
	lines := strings.Split(value, "\n")
	indent := -1
	type span struct{ from, to int }
	var spans []span
	for i, want := range lines {
		if n.Line+i >= len(y.lines) {
			return
		}
		from := y.lines[n.Line+i]
		to := len(y.src)
		if n.Line+i+1 < len(y.lines) {
			to = y.lines[n.Line+i+1] - 1
		}
		got := string(y.src[from:to])
		if strings.TrimSpace(got) == "" && strings.TrimSpace(want) == "" {
			spans = append(spans, span{to, to})
			continue
		}
		if indent < 0 {
			indent = len(got) - len(want)
		}
		if indent < 0 || len(got) < indent || got[indent:] != want || strings.TrimLeft(got[:indent], " ") != "" {
			return
		}
		spans = append(spans, span{from + indent, to})
	}
	// Work on the value as one text, then put its lines back.
	text := []byte(value)
	switch v {
	case configText:
		yamlInPlace(text, y.f)
	case argScalar, redactedScalar:
		mask(text)
	default:
		Check(text)
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if i < len(spans) && spans[i].to-spans[i].from == len(line) {
			copy(y.out[spans[i].from:spans[i].to], line)
		}
	}
}
