package bundle

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"coldplane/bundle/archive"
)

// A Set is everything one analysis looks at: inputs, merged into the nodes of
// one cluster. Close it to remove the spool.
type Set struct {
	Inputs []*Input // in the order given
	Nodes  []*Node  // sorted by name
	Shared *Node    // files beside nodes/, of the cluster as a whole; never nil

	// Problems are inputs, or parts of them, that could not be used while
	// others could.
	Problems []*MissingError

	spool   *spool
	closers []io.Closer
	digests sync.WaitGroup
}

// An Input is one thing named on the command line.
type Input struct {
	ID          string // "b1", "b2", ... in order
	Path        string // as given
	Format      Format
	Node        string // the node it belongs to; "" when several or none
	CollectedAt time.Time
	SHA256      string // of the file, hex; "" for directories or when not computed; valid after Set.WaitDigests
	Size        int64  // bytes of the file; 0 for directories

	// State is "read", or for coldplane bundles what verification found:
	// "intact", "incomplete", "altered", "ambiguous"; "damaged" for an archive
	// that ends early.
	State  string
	Detail string // one line about State, may be empty

	Refusals        []Refusal // archive entries not accepted
	RefusalsDropped int       // further ones, not kept by name

	// Verification is what checking a coldplane bundle found; nil for other inputs.
	Verification *archive.Verification

	claims bool // the bundle itself says what was looked for
}

// WaitDigests waits for the SHA-256 of the inputs, which are computed beside
// the analysis.
func (s *Set) WaitDigests() { s.digests.Wait() }

// Close ends the use of the set and removes its spool.
func (s *Set) Close() error {
	s.digests.Wait()
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c.Close())
	}
	if s.spool != nil {
		errs = append(errs, s.spool.close())
	}
	return errors.Join(errs...)
}

// Node returns the node of that name, or nil.
func (s *Set) Node(name string) *Node {
	for _, n := range s.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// All returns the nodes and, when it holds anything, the shared pseudo-node.
func (s *Set) All() []*Node {
	out := slices.Clone(s.Nodes)
	if len(s.Shared.layers) > 0 {
		out = append(out, s.Shared)
	}
	return out
}

// Of returns the set as if only some of its nodes had been given. It shares all
// files with s and is not closed.
func (s *Set) Of(nodes []*Node) *Set {
	return &Set{Inputs: s.Inputs, Nodes: nodes, Shared: s.Shared, Problems: s.Problems}
}

func (s *Set) sortNodes() {
	slices.SortStableFunc(s.Nodes, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
}

// attach adds a layer to the node of that name, or makes the node. A second
// root of the same node becomes a node of its own ("cp1~2"): two observations
// at two times are never mixed.
func (s *Set) attach(name string, l *layer, root bool) *Node {
	if n := s.Node(name); n != nil {
		if !root || !n.hasRoot() {
			n.layers = append(n.layers, l)
			if root {
				n.StoreOnly = false
			}
			return n
		}
		base := name
		for i := 2; ; i++ {
			if name = base + "~" + strconv.Itoa(i); s.Node(name) == nil {
				break
			}
		}
	}
	n := &Node{Name: name, layers: []*layer{l}, StoreOnly: !root}
	s.Nodes = append(s.Nodes, n)
	return n
}

func (n *Node) hasRoot() bool { return !n.StoreOnly }

// hashFile is what WaitDigests waits for; a failure leaves the digest empty.
func (s *Set) hashFile(in *Input, open func() (*os.File, error)) {
	s.digests.Go(func() {
		f, err := open()
		if err != nil {
			return
		}
		defer f.Close()
		if sum, err := sha256Of(f); err == nil {
			in.SHA256 = sum
		}
	})
}
