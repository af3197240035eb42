package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"coldplane/cmd/coldplane/confine"
)

// A child is what a process knows that runs as a confined child.
type child struct{ scratch string }

// childArgs recognizes the command line of a confined child.
func childArgs(args []string) (*child, []string) {
	if len(args) < 2 || args[0] != confine.Command {
		return nil, args
	}
	return &child{args[1]}, args[2:]
}

// confined marks commands that read foreign evidence.
func confined(cs ...*cobra.Command) {
	for _, c := range cs {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations["confined"] = "yes"
		confined(c.Commands()...)
	}
}

func isConfined(c *cobra.Command) bool { return c.Annotations["confined"] != "" && c.Runnable() }

// inConfinement has every command below c that reads foreign evidence run in a
// confined child.
func inConfinement(c *cobra.Command, e *env, g *globals) {
	for _, s := range c.Commands() {
		inConfinement(s, e, g)
	}
	if run := c.RunE; run != nil && isConfined(c) {
		addLimitFlag(c.Flags(), &g.limits)
		c.RunE = func(c *cobra.Command, args []string) error {
			if e.child != nil {
				confine.Limit(g.limits.process())
			}
			if done, err := inChild(c.Context(), e, g, c); done {
				return err
			}
			return run(c, args)
		}
	}
}

// inChild runs a command that reads foreign evidence in a confined child. done is
// false when it is to run in this process: it is the child, the command reads no
// evidence, or no child can be started.
func inChild(ctx context.Context, e *env, g *globals, c *cobra.Command) (done bool, err error) {
	if e.spawn == nil || !isConfined(c) {
		return false, nil
	}
	spool := ""
	if f := c.Flags().Lookup("spool"); f != nil {
		spool = f.Value.String()
	}
	end, ok := e.spawn(ctx, spool, g.limits.process().CPU)
	switch {
	case !ok:
		return false, nil
	case end.Died == "":
		return true, exitError(end.Code)
	case ctx.Err() != nil:
		return true, ctx.Err()
	}
	if g.verbose > 0 {
		fmt.Fprint(e.err, visible(end.Crash))
	}
	return true, &diedError{end, g.limits}
}

// A diedError is the death of a child.
type diedError struct {
	confine.End
	limits limits
}

func (d *diedError) Error() string {
	s := "the analysis ended early: " + d.Died
	for _, x := range limitTable() {
		if x.name == d.Limit {
			v := d.limits.of(x.name)
			s += fmt.Sprintf("; its limit %s is %s, --limit %s=%s doubles it", x.name, x.unit.format(v), x.name, x.unit.format(2*v))
		}
	}
	return s
}

// enter takes from the process what it does not need from here on: everything but
// reading the inputs, finishing the opened outputs and the scratch directory.
func (e *env) enter(g *globals, inputs []string, outs ...*target) {
	if e.child == nil {
		return
	}
	p := confine.Policy{Read: inputs}
	if e.child.scratch != "" {
		p.Write = []string{e.child.scratch}
	}
	for _, t := range outs {
		if t != nil && t.tmp != "" {
			p.Renew = append(p.Renew, filepath.Dir(t.name))
		}
	}
	level := confine.Enter(p)
	g.logger(e).Info("confined", "level", level.String(), "memory", size.format(g.limits.of("memory")), "cpu", duration.format(g.limits.of("cpu")))
	if e.root && !g.quiet && !slices.ContainsFunc(inputs, isRoot) {
		e.warn("analyzing as root: evidence from elsewhere is better read as an ordinary user")
	}
}

// isRoot tells the running system's own root, which only root can read.
func isRoot(p string) bool {
	a, err := filepath.Abs(p)
	return err == nil && a == string(filepath.Separator)
}

// spoolDir is where large members go.
func (e *env) spoolDir(flag string) string {
	if e.child != nil && e.child.scratch != "" {
		return e.child.scratch
	}
	return flag
}
