// Package yamlfile reads a YAML file of a node and keeps, for every value,
// the place it was read at. Facts over configuration files use it.
package yamlfile

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"coldplane/bundle"
	"coldplane/bundle/decode/yamldoc"
)

// A File is a parsed YAML file with its origin.
type File struct {
	Source     *bundle.File
	Docs       []*Doc
	Duplicates []yamldoc.Duplicate
}

// A Doc is one document, possibly inside a string of another one.
type Doc struct {
	*yamldoc.Doc
	ref     bundle.Ref
	offset  int    // lines to add: the document begins inside another file
	pointer string // pointer prefix inside the outer document
}

// Read parses a file. The error is a *bundle.MissingError; what was parsed
// before a fault is returned with it.
func Read(f *bundle.File) (*File, error) {
	b, err := f.Bytes(yamldoc.MaxBytes)
	if err != nil {
		return nil, err
	}
	return parse(f, b)
}

func parse(f *bundle.File, b []byte) (*File, error) {
	y, err := yamldoc.Parse(b)
	out := &File{Source: f, Duplicates: y.Duplicates}
	for _, d := range y.Docs {
		out.Docs = append(out.Docs, &Doc{Doc: d, ref: f.Ref()})
	}
	if err != nil {
		return out, Fault(f, err)
	}
	return out, nil
}

// Fault turns an error of yamldoc into a gap with its place.
func Fault(f *bundle.File, err error) *bundle.MissingError {
	m := &bundle.MissingError{Evidence: f.Origin, Node: f.Node.Name, Reason: bundle.Damaged, Detail: err.Error(), Ref: f.Ref()}
	var e *yamldoc.Error
	if errors.As(err, &e) {
		if e.Class == yamldoc.Refused {
			m.Reason = bundle.Refused
		}
		m.Ref.Line = e.Line
	}
	return m
}

// Ref points at the value a pointer names, or the nearest one above it.
func (d *Doc) Ref(pointer string) bundle.Ref {
	return d.ref.At(d.Line(pointer)+d.offset, d.pointer+pointer)
}

// Inner parses the string a pointer names as YAML, e.g. the
// ClusterConfiguration inside a ConfigMap. Lines stay those of the file.
func (d *Doc) Inner(pointer string) ([]*Doc, error) {
	n := d.At(pointer)
	if n == nil || n.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("%s is not a string", pointer)
	}
	y, err := yamldoc.Parse([]byte(n.Value))
	var out []*Doc
	for _, in := range y.Docs {
		out = append(out, &Doc{Doc: in, ref: d.ref, offset: d.offset + yamldoc.BlockLine(n) - 1, pointer: d.pointer + pointer})
	}
	return out, err
}

// FromBytes parses a document that is not a file of its own, e.g. a value of
// the store; lines count from its own beginning and ref says where it was read.
func FromBytes(ref bundle.Ref, b []byte) ([]*Doc, error) {
	y, err := yamldoc.Parse(b)
	var out []*Doc
	for _, in := range y.Docs {
		out = append(out, &Doc{Doc: in, ref: ref})
	}
	return out, err
}
