package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"coldplane/bundle"
	"coldplane/report"
	"coldplane/report/certtable"
	"coldplane/rules"
)

type certsFlags struct {
	output, out, sort, asOf, failOn, spool string
	identity                               []string
}

func newCerts(e *env, g *globals) *cobra.Command {
	f := &certsFlags{}
	c := &cobra.Command{
		Use:   "certs INPUT...",
		Short: "Show every certificate: expiry, trust, key, who uses it",
		Long: `Show every certificate of the inputs: kubeadm's, those in kubeconfigs and
their copies in home directories, the kubelet's, CA bundles, and files nobody
uses. Dates are judged at the time of collection (or --as-of). CHAIN says
whether the CA that the verifier's own flag names accepts the certificate, KEY
whether the private key belongs to it; ? means that the evidence does not tell.

Findings of the PKI rules follow the table and decide the exit code.

` + exitHelp,
		Example: `  coldplane certs /
  coldplane certs cp1.tar.zst cp2.tar.zst cp3.tar.zst --sort node
  coldplane certs /mnt/dead-disk -o html --out certs.html`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runCerts(c.Context(), e, g, f, args) },
	}
	fs := c.Flags()
	fs.StringVarP(&f.output, "output", "o", "text", "format: "+strings.Join(certtable.Names(), ", "))
	fs.StringVar(&f.out, "out", "", "write to this file instead of stdout")
	fs.StringVar(&f.sort, "sort", "expires", "order: "+strings.Join(certtable.Sorts(), ", "))
	fs.StringVar(&f.asOf, "as-of", "", "time that judges dates, RFC 3339 or YYYY-MM-DD (default: the collection's own, else inferred)")
	fs.StringVar(&f.failOn, "fail-on", "high", "exit 1 when a finding is at or above this severity; none never fails")
	fs.StringVar(&f.spool, "spool", "", "directory for large archive members (default: the temp directory)")
	identityFlag(c, &f.identity)
	return c
}

func runCerts(ctx context.Context, e *env, g *globals, f *certsFlags, inputs []string) error {
	write, ok := certtable.Formats()[f.output]
	if !ok {
		return usagef("formats are "+strings.Join(certtable.Names(), ", "), "unknown output format %q", f.output)
	}
	if !slices.Contains(certtable.Sorts(), f.sort) {
		return usagef("orders are "+strings.Join(certtable.Sorts(), ", "), "unknown order %q", f.sort)
	}
	for _, in := range inputs {
		if f.out != "" && samePath(f.out, in) {
			return usagef("choose another name for the table", "%s is an input and would be overwritten", f.out)
		}
	}
	a := &analyzeFlags{asOf: f.asOf, failOn: f.failOn, rules: []string{"PKI"}}
	o, fail, err := a.options(e, g)
	if err != nil {
		return err
	}
	ids, err := identities(f.identity)
	if err != nil {
		return err
	}
	to, err := newTarget(f.out)
	if err != nil {
		return err
	}
	defer to.discard()
	e.enter(g, inputs, to)
	set, err := bundle.Open(ctx, inputs, bundle.Options{Limits: g.limits.archives(), SpoolDir: e.spoolDir(f.spool), Identities: ids})
	if err != nil {
		return err
	}
	defer set.Close()
	r, err := rules.Evaluate(ctx, set, o)
	if err != nil {
		return err
	}
	t := certtable.New(r)
	if err := t.Sort(f.sort); err != nil {
		return err
	}
	opts := report.Options{Width: e.width, Color: f.out == "" && e.outTTY && e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb"}
	if err := to.write(e.out, func(w io.Writer) error { return write(w, t, opts) }); err != nil {
		return err
	}
	if !g.quiet {
		for _, p := range set.Problems {
			fmt.Fprintf(e.err, "coldplane: %s: %s; the other inputs were read\n", visible(p.Evidence), visible(p.Detail))
		}
	}
	return exitCode(r, fail, false)
}
