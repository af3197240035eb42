package analyze

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"coldplane/bundle"
	"coldplane/report"
)

// Options of an analysis.
type Options struct {
	AsOf   time.Time                     // judges ages everywhere; zero: each node's own
	Now    time.Time                     // the present, used only for the running system's root
	Target string                        // Kubernetes version of a pre-upgrade audit, or ""
	Params map[string]map[string]float64 // rule -> parameter -> value
	Jobs   int                           // parallel rules and scans; 0 is GOMAXPROCS

	// Witnesses give times seen inside the evidence, for inputs that do not
	// say when they were taken. The newest wins.
	Witnesses []Witness

	// Kubeadm reports whether a node is laid out by kubeadm; nil means all are.
	Kubeadm func(*Ctx) (ok bool, what string)

	// Mixed says why questions about the cluster as a whole have no meaning for
	// this input, "" when they have; nil means they always have. Rules about the
	// evidence itself (Evidence) are asked all the same.
	Mixed func(*Ctx) string

	// Progress, when set, is called from several goroutines after each
	// question, with how many are done of how many.
	Progress func(done, total int)

	// Defect is told about panics of ours, for the log.
	Defect func(what string, stack []byte)
}

// A Witness returns the newest time it knows on a node, and where it was seen.
type Witness func(c *Ctx) (time.Time, string)

// AsOf is a time that judges ages and where it comes from.
type AsOf struct {
	Time   time.Time
	Source string // "given", "collection", "inferred", "now"; "" when unknown
	Detail string // what an inferred time was read from
}

// An Engine computes facts and asks rules over one set.
type Engine struct {
	ctx   context.Context
	set   *bundle.Set
	opts  Options
	cache sync.Map // cacheKey -> *cacheEntry

	asOfMu sync.Mutex
	asOf   map[*bundle.Node]AsOf
}

// New makes an engine over a set.
func New(ctx context.Context, set *bundle.Set, o Options) *Engine {
	if o.Jobs <= 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	return &Engine{ctx: ctx, set: set, opts: o, asOf: map[*bundle.Node]AsOf{}}
}

// Set is the evidence.
func (e *Engine) Set() *bundle.Set { return e.set }

// Ctx gives access to facts outside a rule, for the report's inventory. n is
// nil for the cluster.
func (e *Engine) Ctx(n *bundle.Node) *Ctx { return &Ctx{e, n} }

// Jobs is how many things may run at once.
func (c *Ctx) Jobs() int { return c.engine.opts.Jobs }

// Context is cancelled when the analysis is to stop.
func (c *Ctx) Context() context.Context { return c.engine.ctx }

// AsOf is the time that judges ages on the context's node, or of the cluster.
func (c *Ctx) AsOf() AsOf { return c.engine.AsOf(c.node) }

// StatedAsOf is AsOf as far as it was given or is the collection's own; the
// zero time otherwise. Facts that inference itself reads use it.
func (c *Ctx) StatedAsOf() time.Time {
	o := c.engine.opts
	switch {
	case !o.AsOf.IsZero():
		return o.AsOf.UTC()
	case c.node == nil:
		return time.Time{}
	case c.node.Live:
		return o.Now.UTC()
	}
	return c.node.CollectedAt.UTC()
}

func (e *Engine) defect(what string, stack []byte) {
	if e.opts.Defect != nil {
		e.opts.Defect(what, stack)
	}
}

// AsOf decides the time that judges ages on n. For the cluster (nil) it is
// the newest of its nodes.
func (e *Engine) AsOf(n *bundle.Node) AsOf {
	if !e.opts.AsOf.IsZero() {
		return AsOf{Time: e.opts.AsOf.UTC(), Source: "given"}
	}
	e.asOfMu.Lock()
	a, ok := e.asOf[n]
	e.asOfMu.Unlock()
	if ok {
		return a
	}
	if n == nil {
		for _, m := range e.set.All() {
			if b := e.AsOf(m); b.Time.After(a.Time) {
				a = b
			}
		}
	} else {
		a = e.nodeAsOf(n)
	}
	e.asOfMu.Lock()
	e.asOf[n] = a
	e.asOfMu.Unlock()
	return a
}

func (e *Engine) nodeAsOf(n *bundle.Node) AsOf {
	if n.Live {
		return AsOf{Time: e.opts.Now.UTC(), Source: "now"}
	}
	if !n.CollectedAt.IsZero() {
		return AsOf{Time: n.CollectedAt.UTC(), Source: "collection"}
	}
	var a AsOf
	for _, w := range e.opts.Witnesses {
		if t, what := e.witness(w, n); t.After(a.Time) {
			a = AsOf{Time: t.UTC(), Source: "inferred", Detail: what}
		}
	}
	return a
}

func (e *Engine) witness(w Witness, n *bundle.Node) (t time.Time, what string) {
	defer func() {
		if r := recover(); r != nil {
			e.defect(fmt.Sprintf("time witness: %v", r), debug.Stack())
			t, what = time.Time{}, ""
		}
	}()
	return w(&Ctx{e, n})
}

// Evaluate asks every rule and returns findings and results, both in a fixed
// order. Only a cancelled context is an error.
func (e *Engine) Evaluate(rules []*Rule) ([]report.Finding, []report.Result, error) {
	var passes []*Pass
	for _, r := range rules {
		if r.Audit && e.opts.Target == "" {
			continue
		}
		params := e.params(r)
		if r.Scope == PerCluster {
			passes = append(passes, &Pass{rule: r, engine: e, params: params})
			continue
		}
		for _, n := range e.set.Nodes {
			passes = append(passes, &Pass{rule: r, engine: e, node: n, params: params})
		}
	}
	var g errgroup.Group
	g.SetLimit(e.opts.Jobs)
	var done atomic.Int64
	for _, p := range passes {
		g.Go(func() error {
			e.run(p)
			if n := done.Add(1); e.opts.Progress != nil {
				e.opts.Progress(int(n), len(passes))
			}
			return nil
		})
	}
	_ = g.Wait()
	if err := e.ctx.Err(); err != nil {
		return nil, nil, err
	}
	findings, results := []report.Finding{}, []report.Result{}
	for _, p := range passes {
		r := p.result()
		if r.Outcome == report.Fail {
			findings = append(findings, dedupe(p.findings)...)
		}
		results = append(results, r)
	}
	return findings, results, nil
}

// dedupe keeps the gravest of findings with one id.
func dedupe(fs []report.Finding) []report.Finding {
	at := map[string]int{}
	var out []report.Finding
	for _, f := range fs {
		i, ok := at[f.ID]
		if !ok {
			at[f.ID] = len(out)
			out = append(out, f)
			continue
		}
		if f.Severity.Rank() > out[i].Severity.Rank() {
			f.Evidence = append(f.Evidence, out[i].Evidence...)
			out[i] = f
			continue
		}
		for _, ev := range f.Evidence {
			if !slices.Contains(out[i].Evidence, ev) {
				out[i].Evidence = append(out[i].Evidence, ev)
			}
		}
	}
	return out
}

func (e *Engine) params(r *Rule) map[string]float64 {
	m := map[string]float64{}
	for _, p := range r.Params {
		m[p.Name] = p.Default
		if v, ok := e.opts.Params[r.ID][p.Name]; ok {
			m[p.Name] = v
		}
	}
	return m
}

// run asks one question. A panic becomes the outcome "error".
func (e *Engine) run(p *Pass) {
	defer func() {
		if r := recover(); r != nil {
			p.err = fmt.Errorf("%v", r)
			e.defect(fmt.Sprintf("rule %s: %v", p.rule.ID, r), debug.Stack())
		}
	}()
	if e.ctx.Err() != nil {
		p.err = e.ctx.Err()
		return
	}
	if p.node != nil && p.rule.Kubeadm && e.opts.Kubeadm != nil {
		if ok, what := e.opts.Kubeadm(&Ctx{e, p.node}); !ok {
			p.na = what
			return
		}
	}
	if p.node == nil && !p.rule.Evidence && e.opts.Mixed != nil {
		if why := e.opts.Mixed(&Ctx{e, nil}); why != "" {
			p.na = why
			return
		}
	}
	if !p.needs() {
		p.unknown = true
		return
	}
	p.wants()
	p.err = p.rule.Run(p)
}

// needs computes the needed facts. For a cluster rule a node fact must be
// there on at least one node; the nodes without it are gaps.
func (p *Pass) needs() bool {
	ok := true
	for _, n := range p.rule.Needs {
		if n.info().scope == PerCluster || p.node != nil {
			if err := n.probe(p.engine, p.node); err != nil {
				p.miss(err)
				ok = false
			}
			continue
		}
		any := false
		var errs []error
		for _, node := range p.engine.set.All() {
			if err := n.probe(p.engine, node); err != nil {
				if node.Name != "" {
					errs = append(errs, err)
				}
				continue
			}
			any = true
		}
		for _, err := range errs {
			p.miss(err)
		}
		if !any {
			if len(errs) == 0 {
				kinds := n.info().kinds
				ev := n.info().name
				if len(kinds) > 0 {
					ev = string(kinds[0])
				}
				p.gap(report.Gap{Evidence: ev, Reason: string(bundle.NotCollected)})
			}
			ok = false
		}
	}
	return ok
}

// wants records what would have helped and is not there.
func (p *Pass) wants() {
	for _, n := range p.rule.Wants {
		if n.info().scope == PerCluster || p.node != nil {
			if err := n.probe(p.engine, p.node); err != nil {
				p.miss(err)
			}
			continue
		}
		for _, node := range p.engine.set.Nodes {
			if err := n.probe(p.engine, node); err != nil {
				p.miss(err)
			}
		}
	}
}
