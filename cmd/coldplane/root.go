package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"coldplane/report"
)

func visible(s string) string { return report.Visible(s, 0) }

// globals are the flags of every command.
type globals struct {
	verbose int
	quiet   bool
	limits  limits // of commands that read evidence
}

func (g *globals) logger(e *env) *slog.Logger {
	level := slog.LevelError + 4 // off
	switch {
	case g.verbose >= 2:
		level = slog.LevelDebug
	case g.verbose == 1:
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(e.err, &slog.HandlerOptions{Level: level}))
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, e *env, args []string) int {
	root := newRoot(e)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil && err != error(exitError(exitInterrupted)) {
		err = context.Canceled
	}
	return finish(e, err)
}

func newRoot(e *env) *cobra.Command {
	g := &globals{}
	root := &cobra.Command{
		Use:   "coldplane",
		Short: "Find out from files what is wrong with a Kubernetes control plane",
		Long: `coldplane reads what is left when an API server is dead: static-pod manifests,
certificates, kubeconfigs, the etcd database, logs. It says what is wrong, how
it knows, what it could not know, and what to do, in order. It needs no API
server, no network and no second machine, and never writes to its inputs.

` + exitHelp,
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(e.in)
	root.SetOut(e.out)
	root.SetErr(e.err)
	root.PersistentFlags().CountVarP(&g.verbose, "verbose", "v", "log what is done to stderr; twice for details")
	root.PersistentFlags().BoolVarP(&g.quiet, "quiet", "q", false, "no progress and no hints on stderr")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("see "+c.CommandPath()+" --help", "%s", err.Error())
	})
	root.AddCommand(newAnalyze(e, g), newDiff(e, g), newCerts(e, g), newCollect(e, g), newEtcd(e, g), newGet(e, g), newInspect(e, g), newLimits(e), newOpinion(e), newRender(e, g), newScrub(e, g), newVerify(e, g), newRules(e), newExplain(e), newVersion(e, g))
	for _, c := range root.Commands() {
		wrapArgs(c)
	}
	root.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("see coldplane --help", "unknown command %q", args[0])
		}
		return c.Help()
	}
	root.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := "see coldplane --help"
		if s := c.SuggestionsFor(args[0]); len(s) > 0 {
			hint = "did you mean " + strings.Join(s, " or ") + "?"
		}
		return usagef(hint, "unknown command %q", args[0])
	}
	addEtcdWAL(root, e, g)
	for _, c := range root.Commands() {
		switch c.Name() {
		case "analyze", "diff", "certs", "etcd", "get", "inspect", "render", "verify":
			confined(c)
		}
	}
	inConfinement(root, e, g)
	return root
}

// wrapArgs turns a wrong number of arguments into a usage error.
func wrapArgs(c *cobra.Command) {
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			var ue *usageError
			if errors.As(err, &ue) {
				return err
			}
			return usagef("usage: "+c.UseLine(), "%s", err.Error())
		}
		return nil
	}
	for _, s := range c.Commands() {
		wrapArgs(s)
	}
}
