package pki

import (
	"path"
	"slices"
	"strings"
	"time"

	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
)

// Limits of one node.
const (
	MaxFiles = 1024 // PEM files read of a node
	maxDepth = 4    // directories below /etc/kubernetes/pki that are entered
)

// A Source is one place PEM was read from: a file, or a kubeconfig's field.
type Source struct {
	Node     *bundle.Node
	Path     string // on the node
	Resolved string // after following links; "" for inline data
	Name     string // short, for messages: "etcd/server.crt", "admin.conf"
	Ref      bundle.Ref
	ModTime  time.Time // zero for inline data and when not known
	PEM      spki.File
	Err      error // why it cannot be read; nil when PEM is set
	inline   bool
}

// Line points at a block of the source: its own line in a file, the field's
// line in a kubeconfig.
func (s *Source) Line(b *spki.Block) bundle.Ref {
	if s.inline || b == nil {
		return s.Ref
	}
	return s.Ref.At(b.Line, "")
}

// Certificates returns the certificate blocks, readable or not.
func (s *Source) Certificates() []*spki.Block {
	var out []*spki.Block
	for i := range s.PEM.Blocks {
		if s.PEM.Blocks[i].Kind == spki.Certificate {
			out = append(out, &s.PEM.Blocks[i])
		}
	}
	return out
}

// reader reads each PEM file of a node once.
type reader struct {
	node  *bundle.Node
	keys  *Keys
	files map[string]*Source
}

func (r *reader) source(p string) *Source {
	p = path.Clean("/" + p)
	if s, ok := r.files[p]; ok {
		return s
	}
	s := &Source{Node: r.node, Path: p, Name: shortName(p), Ref: r.node.Ref(p)}
	if len(r.files) >= MaxFiles {
		s.Err = &bundle.MissingError{Evidence: p, Node: r.node.Name, Reason: bundle.LimitReached}
		return s
	}
	r.files[p] = s
	f, err := r.node.Stat(p)
	if err != nil {
		s.Err = err
		return s
	}
	s.Resolved, s.Ref, s.ModTime = f.Resolved, f.Ref(), f.ModTime
	b, err := f.Bytes(spki.MaxBytes)
	if err != nil {
		s.Err = err
		return s
	}
	s.PEM = spki.Parse(b)
	clear(b) // it may have held a key
	return s
}

// walk returns the files below a directory whose names look like PEM, sorted.
func (r *reader) walk(dir string, depth int) []string {
	files, err := r.node.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range files {
		switch {
		case f.Mode.IsDir():
			if depth < maxDepth {
				out = append(out, r.walk(f.Origin, depth+1)...)
			}
		case slices.Contains([]string{".crt", ".pem", ".cer", ".cert"}, path.Ext(f.Name())) && len(out) < MaxFiles:
			out = append(out, f.Origin)
		}
	}
	return out
}

// shortName is how messages name a file: below kubeadm's directory the path
// from there, else the whole path.
func shortName(p string) string {
	if s, ok := strings.CutPrefix(p, "/etc/kubernetes/pki/"); ok {
		return s
	}
	if path.Dir(p) == "/etc/kubernetes" {
		return path.Base(p)
	}
	if path.Dir(p) == kubeletPKI {
		return path.Base(p)
	}
	return p
}
