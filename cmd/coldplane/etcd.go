package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/objects"
	"coldplane/bundle"
)

// storeFlags are what the commands over etcd databases share.
type storeFlags struct {
	output, out, spool string
	to                 *target // what out names, opened by openStores
}

func (f *storeFlags) register(c *cobra.Command, formats string) {
	fs := c.Flags()
	fs.StringVarP(&f.output, "output", "o", "text", "format: "+formats)
	fs.StringVar(&f.out, "out", "", "write to this file instead of stdout")
	fs.StringVar(&f.spool, "spool", "", "directory for large archive members (default: the temp directory)")
}

const etcdExitHelp = `Exit codes:
  0    answered
  2    wrong usage, or an input that holds no etcd database
  4    the tool itself failed
  130  interrupted`

func newEtcd(e *env, g *globals) *cobra.Command {
	c := &cobra.Command{
		Use:   "etcd",
		Short: "Look into etcd databases: sizes, what fills them, members, history",
		Long: `Look into the etcd databases of the inputs: snapshots, data directories, whole
nodes and bundles. Files are read page by page and never opened for writing or
locked, whole or damaged, of etcd 3.4 to 3.7.

` + etcdExitHelp,
	}
	c.AddCommand(newEtcdStatus(e, g), newEtcdTop(e, g), newEtcdMembers(e, g), newEtcdHistory(e, g))
	for _, s := range c.Commands() {
		wrapArgs(s)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("see coldplane etcd --help", "unknown command %q", args[0])
		}
		return c.Help()
	}
	return c
}

// A stores is the opened inputs with their databases.
type stores struct {
	set *bundle.Set
	eng *analyze.Engine
	dbs []*etcddb.DB
	to  *target
}

func (s *stores) close() {
	s.set.Close()
	s.to.discard()
}

// openStores reads every database of the inputs.
func openStores(ctx context.Context, e *env, g *globals, f *storeFlags, inputs []string) (*stores, error) {
	for _, in := range inputs {
		if f.out != "" && samePath(f.out, in) {
			return nil, usagef("choose another name for the output", "%s is an input and would be overwritten", f.out)
		}
	}
	// The key table is most of the memory and holds no pointers: collecting often is
	// cheap, and more than halves the peak.
	debug.SetGCPercent(10)
	to, err := newTarget(f.out)
	if err != nil {
		return nil, err
	}
	f.to = to
	e.enter(g, inputs, to)
	set, err := bundle.Open(ctx, inputs, bundle.Options{Limits: g.limits.archives(), SpoolDir: e.spoolDir(f.spool)})
	if err != nil {
		to.discard()
		return nil, err
	}
	s := &stores{to: to, set: set, eng: analyze.New(ctx, set, analyze.Options{Now: e.now()})}
	for _, n := range set.All() {
		dbs, err := etcddb.OnNode.Get(s.eng.Ctx(n))
		if ctx.Err() != nil {
			s.close()
			return nil, ctx.Err()
		}
		if err == nil {
			s.dbs = append(s.dbs, dbs...)
		}
	}
	if len(s.dbs) == 0 {
		s.close()
		return nil, &bundle.InputError{Path: strings.Join(inputs, " "), What: "no etcd database in it", Hint: "a snapshot, a member/snap/db, a data directory, a node root or a bundle"}
	}
	if !g.quiet {
		for _, p := range set.Problems {
			fmt.Fprintf(e.err, "coldplane: %s: %s; the other inputs were read\n", visible(p.Evidence), visible(p.Detail))
		}
	}
	return s, nil
}

// name is a database in tables: its node and path.
func dbName(d *etcddb.DB) string {
	if n := d.File.Node.Name; n != "" && !strings.Contains(d.File.Path, n+"/") {
		return n + ":" + d.File.Path
	}
	return d.File.Path
}

// chosen is the database whose objects stand for the cluster.
func (s *stores) chosen() (*objects.Set, error) { return objects.Cluster.Get(s.eng.Ctx(nil)) }

// print writes a value as JSON, or the text that fn makes.
func (f *storeFlags) print(e *env, v any, fn func(w *tabwriter.Writer)) error {
	return f.to.write(e.out, func(w io.Writer) error {
		switch f.output {
		case "json":
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(v)
		case "text", "wide":
			tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			fn(tw)
			return tw.Flush()
		}
		return usagef("formats are text, json", "unknown output format %q", f.output)
	})
}

// row writes cells, each cleaned for a terminal.
func row(w io.Writer, cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		fmt.Fprint(w, strings.ReplaceAll(visible(fmt.Sprint(c)), "\t", " "))
	}
	fmt.Fprintln(w)
}
