package analyze

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"coldplane/bundle"
)

// MissingError says that evidence is not there or not usable.
type MissingError = bundle.MissingError

// Missing makes a MissingError about a kind of evidence.
func Missing(k bundle.Kind, node string, r bundle.Reason, detail string) *MissingError {
	return &MissingError{Evidence: string(k), Node: node, Reason: r, Detail: detail}
}

// A Scope says whether a fact or a rule is about one node or the whole cluster.
type Scope int

// Scopes.
const (
	PerNode Scope = iota
	PerCluster
)

// A Need is a fact as a rule declares it.
type Need interface {
	info() *factInfo
	probe(e *Engine, n *bundle.Node) error
}

type factInfo struct {
	name  string
	scope Scope
	kinds []bundle.Kind
	needs []Need
}

// A Fact is a typed, immutable value computed once from evidence and cached,
// per node or per cluster. Compute returns a *MissingError when the evidence
// is not there; any other error is a failure of ours. The value must not be
// changed after Compute returned it.
type Fact[T any] struct {
	Name    string        // unique; "staticpod.dir"
	Scope   Scope         // PerNode unless set
	Kinds   []bundle.Kind // evidence it reads
	Needs   []Need        // facts its Compute asks for
	Compute func(c *Ctx) (T, error)
}

func (f *Fact[T]) info() *factInfo { return &factInfo{f.Name, f.Scope, f.Kinds, f.Needs} }

func (f *Fact[T]) probe(e *Engine, n *bundle.Node) error {
	_, err := f.at(e, n)
	return err
}

// A Ctx is what a fact's Compute may use.
type Ctx struct {
	engine *Engine
	node   *bundle.Node
}

// Set is the evidence.
func (c *Ctx) Set() *bundle.Set { return c.engine.set }

// Node is the node a PerNode fact is computed for; nil in a PerCluster fact.
func (c *Ctx) Node() *bundle.Node { return c.node }

// Nodes returns the nodes of the cluster and the shared pseudo-node, if any.
func (c *Ctx) Nodes() []*bundle.Node { return c.engine.set.All() }

// Target is the Kubernetes version of a pre-upgrade audit ("v1.38.0"), or "".
func (c *Ctx) Target() string { return c.engine.opts.Target }

// Get returns the fact for the context's node, or for the cluster.
func (f *Fact[T]) Get(c *Ctx) (T, error) { return f.at(c.engine, c.node) }

// Of returns a PerNode fact for a given node.
func (f *Fact[T]) Of(c *Ctx, n *bundle.Node) (T, error) { return f.at(c.engine, n) }

type cacheKey struct {
	fact string
	node *bundle.Node
}

type cacheEntry struct {
	once sync.Once
	val  any
	err  error
}

// at computes the fact once and returns it. A panic inside Compute becomes a
// MissingError with reason failed: a defect of ours must not end the report.
func (f *Fact[T]) at(e *Engine, n *bundle.Node) (T, error) {
	if f.Scope == PerCluster {
		n = nil
	} else if n == nil {
		var zero T
		return zero, fmt.Errorf("fact %s: no node", f.Name)
	}
	v, _ := e.cache.LoadOrStore(cacheKey{f.Name, n}, &cacheEntry{})
	ce := v.(*cacheEntry)
	ce.once.Do(func() {
		defer func() {
			if r := recover(); r != nil {
				e.defect(fmt.Sprintf("fact %s: %v", f.Name, r), debug.Stack())
				ce.val, ce.err = *new(T), &MissingError{Evidence: f.evidence(), Node: nodeName(n), Reason: bundle.FactFailed, Detail: "the analysis of this evidence failed (a defect of coldplane)"}
			}
		}()
		if e.ctx.Err() != nil {
			ce.val, ce.err = *new(T), e.ctx.Err()
			return
		}
		val, err := f.Compute(&Ctx{e, n})
		ce.val, ce.err = val, f.name(err, n)
	})
	val, _ := ce.val.(T)
	return val, ce.err
}

func nodeName(n *bundle.Node) string {
	if n == nil {
		return ""
	}
	return n.Name
}

func (f *Fact[T]) evidence() string {
	if len(f.Kinds) == 0 {
		return f.Name
	}
	return string(f.Kinds[0])
}

// name fills in what a MissingError leaves open.
func (f *Fact[T]) name(err error, n *bundle.Node) error {
	var m *MissingError
	if !errors.As(err, &m) {
		return err
	}
	c := *m
	if c.Node == "" {
		c.Node = nodeName(n)
	}
	if c.Evidence == "" || strings.HasPrefix(c.Evidence, "/") {
		if c.Evidence != "" {
			if c.Detail == "" {
				c.Detail = c.Evidence
			} else {
				c.Detail = c.Evidence + ": " + c.Detail
			}
		}
		c.Evidence = f.evidence()
	}
	return &c
}
