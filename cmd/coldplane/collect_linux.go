package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"coldplane/bundle"
	"coldplane/bundle/archive"
	"coldplane/bundle/redact"
	"coldplane/collect"
)

type collectFlags struct {
	root, out, etcd, level, compress, spool, caseID, node string
	recipients, recipientFiles, labels, only, skip        []string
	nodes                                                 []string
	sshConfig                                             string
	since, timeout                                        time.Duration
	rate, reserve                                         int64
	dryRun, estimate, low                                 bool
}

func (f *collectFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.root, "root", "/", "a dead node's mounted disk instead of the running system; with --nodes, %n stands for the node's name")
	fs.StringVarP(&f.out, "output", "o", "", "the bundle; - is stdout (default ./coldplane-NODE-TIME.tar.zst; with --nodes a directory)")
	fs.DurationVar(&f.since, "since", 24*time.Hour, "how far back logs and journals go")
	fs.StringVar(&f.etcd, "etcd", "scrubbed", "what of the database: scrubbed, summary (facts only), full (needs --recipient), none")
	fs.StringVar(&f.level, "level", string(redact.LevelValues), "how much a scrubbed database loses: secrets, values, structure")
	fs.StringArrayVar(&f.recipients, "recipient", nil, "encrypt to this age or ssh public key; may be repeated")
	fs.StringArrayVar(&f.recipientFiles, "recipients-file", nil, "encrypt to every key in this file; may be repeated")
	fs.StringSliceVar(&f.nodes, "nodes", nil, "collect from these nodes over ssh, one bundle each, e.g. cp1,cp2,cp3")
	fs.StringVar(&f.sshConfig, "ssh-config", "", "configuration file for ssh (default: your own)")
	fs.BoolVar(&f.dryRun, "dry-run", false, "list what would be taken, from where and how it is treated; take nothing")
	fs.BoolVar(&f.estimate, "estimate-only", false, "say how many bytes would be read; take nothing")
	fs.BoolVar(&f.low, "low-priority", true, "give way to everything else on the node")
	fs.Int64Var(&f.rate, "rate", 20<<20, "bytes per second read from large files; 0 is no limit")
	fs.Int64Var(&f.reserve, "reserve", -1, "bytes that stay free on the disk (default: the larger of 1 GiB and a tenth, where etcd's data lie, else 64 MiB)")
	fs.StringVar(&f.spool, "spool", "", "directory of the temporary file (default: that of the output, else the temp directory)")
	fs.StringVar(&f.compress, "compress", "zstd", "zstd, gzip, none")
	fs.StringVar(&f.caseID, "case-id", "", "the ticket this is for; kept in the bundle")
	fs.StringArrayVar(&f.labels, "label", nil, "a note kept in the bundle; may be repeated")
	fs.StringVar(&f.node, "node", "", "the node's name (default: found out)")
	fs.DurationVar(&f.timeout, "timeout", 10*time.Minute, "the whole collection ends after this, with what it has")
	fs.StringSliceVar(&f.only, "only", nil, "only these sources")
	fs.StringSliceVar(&f.skip, "skip", nil, "not these sources")
}

func newCollect(e *env, g *globals) *cobra.Command {
	f := &collectFlags{}
	c := &cobra.Command{
		Use:   "collect",
		Short: "Make one safe bundle from a node",
		Long: `Collect what analyze needs from this node, or from a dead node's mounted disk, or
from several nodes over ssh. No private key, token, password or Secret value
enters a bundle: see coldplane inspect for what did. Nothing is locked, nothing
is written but the output and an unlinked temporary file, and whatever hangs is
left behind after its deadline.

Exit codes:
  0    a bundle was written; its status may be degraded, see stderr
  2    wrong usage
  4    no bundle: the disk is full, a secret was about to enter, or the tool failed;
       nothing is left behind
  130  interrupted; a bundle named *.interrupted holds what was whole, if anything was`,
		Example: `  sudo coldplane collect
  ssh cp1 sudo coldplane collect -o - > cp1.tar.zst
  coldplane collect --nodes cp1,cp2,cp3 -o bundles/
  coldplane collect --root /mnt/dead-disk --recipient age1...`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error { return runCollect(c.Context(), e, g, f) },
	}
	f.add(c.Flags())
	return c
}

func (f *collectFlags) options(e *env) (o collect.Options, err error) {
	level, ok := redact.ParseLevel(f.level)
	if !ok {
		return o, usagef("levels are secrets, values, structure", "--level %s: no such level", f.level)
	}
	mode := collect.EtcdMode(f.etcd)
	switch mode {
	case collect.EtcdScrubbed, collect.EtcdSummary, collect.EtcdFull, collect.EtcdNone:
	default:
		return o, usagef("modes are scrubbed, summary, full, none", "--etcd %s: no such mode", f.etcd)
	}
	comp := archive.Compression(f.compress)
	switch comp {
	case archive.Zstd, archive.Gzip, archive.None:
	default:
		return o, usagef("one of zstd, gzip, none", "--compress %s: no such compression", f.compress)
	}
	rs, err := f.recipientList()
	if err != nil {
		return o, err
	}
	if mode == collect.EtcdFull && len(rs) == 0 {
		return o, usagef("add --recipient age1..., or leave --etcd at scrubbed", "--etcd full needs a recipient: the bundle would hold every Secret in clear")
	}
	if f.since <= 0 || f.timeout <= 0 || f.rate < 0 {
		return o, usagef("for example --since 24h --timeout 10m --rate 20000000", "--since and --timeout must be positive, --rate not negative")
	}
	return collect.Options{
		Root: f.root, Node: f.node, Since: f.since, Etcd: mode, Level: level, CaseID: f.caseID, Labels: f.labels, Budget: f.timeout, Rate: f.rate,
		SpoolDir: f.spool, Only: f.only, Skip: f.skip, Compression: comp, Recipients: rs, Now: e.now,
		Tool: archive.Tool{Name: "coldplane", Version: toolVersion()},
	}, nil
}

func (f *collectFlags) recipientList() (out []age.Recipient, err error) {
	for _, s := range f.recipients {
		r, err := archive.ParseRecipient(s)
		if err != nil {
			return nil, usagef("age1..., ssh-ed25519 AAAA... or ssh-rsa AAAA...", "--recipient: %s", err.Error())
		}
		out = append(out, r)
	}
	for _, p := range f.recipientFiles {
		file, err := os.Open(p)
		if err != nil {
			return nil, usagef("check the path", "--recipients-file: %s", err.Error())
		}
		rs, err := archive.ParseRecipients(file)
		file.Close()
		if err != nil {
			return nil, usagef("one recipient a line", "--recipients-file %s: %s", p, err.Error())
		}
		out = append(out, rs...)
	}
	return out, nil
}

func runCollect(ctx context.Context, e *env, g *globals, f *collectFlags) error {
	o, err := f.options(e)
	if err != nil {
		return err
	}
	if len(f.nodes) > 0 {
		return collectNodes(ctx, e, g, f)
	}
	if fi, err := os.Stat(f.root); err != nil || !fi.IsDir() {
		return usagef("name the directory that corresponds to the node's /", "--root %s: not a directory", f.root)
	}
	if f.dryRun || f.estimate {
		return collectPlan(ctx, e, f, o)
	}
	if f.low {
		collect.LowPriority()
	}
	o.Progress = func(ev collect.Event) { collectProgress(e, g, ev) }
	if f.out == "-" {
		if o.SpoolDir == "" {
			o.SpoolDir = os.TempDir()
		}
		o.Room = f.room(o.SpoolDir)
		rep, err := collect.Run(ctx, e.out, o)
		return finishCollect(ctx, e, g, rep, "stdout", err)
	}
	if o.Node == "" {
		if o.Node, err = collect.NodeName(f.root); err != nil {
			return err
		}
	}
	out := f.out
	if out == "" {
		out = bundleName(o.Node, e.now(), o)
	} else if fi, err := os.Stat(out); err == nil && fi.IsDir() {
		out = filepath.Join(out, bundleName(o.Node, e.now(), o))
	}
	dir := filepath.Dir(out)
	if o.SpoolDir == "" {
		o.SpoolDir = dir
	}
	o.Room = f.room(dir)
	if room := o.Room(dir); room < 32<<20 {
		return fmt.Errorf("%s: %s is free above the reserve, too little for a bundle; use -o - over ssh, or -o on another disk", dir, bundle.FormatBytes(max(room, 0)))
	}
	file, err := archive.Create(out)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			return usagef("another collection runs, or was killed: remove it or choose another name", "%s", err.Error())
		}
		return err
	}
	defer file.Remove()
	rep, err := collect.Run(ctx, &guard{w: file, dir: dir, room: o.Room}, o)
	if err != nil {
		if rerr := file.Remove(); rerr != nil {
			err = errors.Join(err, rerr)
		}
		return finishCollect(ctx, e, g, rep, "", err)
	}
	name, err := file.Publish(rep.Status == archive.Interrupted)
	return finishCollect(ctx, e, g, rep, name, err)
}

// guard ends a bundle before it eats the reserve.
type guard struct {
	w    io.Writer
	dir  string
	room func(string) int64
	n    int64
}

func (g *guard) Write(p []byte) (int, error) {
	const step = 16 << 20
	if (g.n+int64(len(p)))/step != g.n/step && g.room(g.dir) < step {
		return 0, errors.New("the disk is nearly full: the reserve would be touched")
	}
	n, err := g.w.Write(p)
	g.n += int64(n)
	return n, err
}

// room is the free space above the reserve: a large one on etcd's own disk.
func (f *collectFlags) room(dir string) func(string) int64 {
	reserve := f.reserve
	if reserve < 0 {
		reserve = 64 << 20
		for _, d := range []string{"/var/lib/etcd", "/var/lib"} {
			if p := filepath.Join(f.root, d); f.root == "/" && collect.SameFS(dir, p) {
				reserve = -1
				break
			}
		}
	}
	return collect.Room(reserve)
}

func bundleName(node string, now time.Time, o collect.Options) string {
	s := "coldplane-" + node + "-" + now.UTC().Format("20060102T150405Z") + o.Compression.Suffix()
	if len(o.Recipients) > 0 {
		s += ".age"
	}
	return s
}

func collectProgress(e *env, g *globals, ev collect.Event) {
	if g.quiet {
		return
	}
	switch {
	case ev.Result == nil && e.errTTY:
		fmt.Fprintf(e.err, "\r\x1b[K[%d/%d] %s", ev.Index, ev.Total, ev.Source)
	case ev.Result == nil:
	default:
		clear := ""
		if e.errTTY {
			clear = "\r\x1b[K"
		}
		r := ev.Result
		if r.Outcome == archive.OK || r.Outcome == archive.Missing || r.Outcome == archive.Skipped {
			if e.errTTY || g.verbose > 0 {
				fmt.Fprintf(e.err, "%s[%d/%d] %s: %s, %s\n", clear, ev.Index, ev.Total, ev.Source, r.Outcome, bundle.FormatBytes(r.Stored))
			}
			return
		}
		detail := r.Error
		if detail == "" && len(r.Notes) > 0 {
			detail = r.Notes[0]
		}
		if detail == "" {
			detail = strings.Join(r.Caps, ", ")
		}
		fmt.Fprintf(e.err, "%scoldplane: %s: %s: %s\n", clear, ev.Source, r.Outcome, visible(detail))
	}
}

func finishCollect(ctx context.Context, e *env, g *globals, rep collect.Report, name string, err error) error {
	if err != nil {
		if errors.Is(err, redact.ErrLeak) {
			return fmt.Errorf("%w; nothing was written. This is a defect of coldplane: please report it, without the file", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	if !g.quiet {
		fmt.Fprintf(e.err, "coldplane: %s: %s, node %s\ncoldplane: fingerprint %s\n", visible(name), rep.Status, visible(rep.Node), rep.Fingerprint)
	}
	if rep.Status == archive.Interrupted {
		return exitError(exitInterrupted)
	}
	return nil
}

func collectPlan(ctx context.Context, e *env, f *collectFlags, o collect.Options) error {
	items, err := collect.Plan(ctx, o)
	if err != nil {
		return err
	}
	var sum int64
	for _, it := range items {
		sum += it.Bytes
		if f.dryRun {
			fmt.Fprintln(e.out, visible(it.String()))
		}
	}
	_, err = fmt.Fprintf(e.out, "%d files and sources, %s to read; the bundle is usually a tenth of that or less\n", len(items), bundle.FormatBytes(sum))
	return err
}
