// Command coldplane finds out, from files alone, what is wrong with a
// Kubernetes control plane. One file here per subcommand.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"coldplane/cmd/coldplane/confine"
)

// An env is everything a command takes from the process it runs in.
type env struct {
	in       io.Reader
	out, err io.Writer
	now      func() time.Time
	getenv   func(string) string
	outTTY   bool // stdout is a terminal
	errTTY   bool
	width    int // columns of stdout; 0 when not a terminal
	root     bool

	// child is set in a confined child; spawn starts one and is nil where commands
	// run in this process.
	child *child
	spawn func(ctx context.Context, scratchIn string, cpu time.Duration) (confine.End, bool)
}

// warn prints a line that is no error.
func (e *env) warn(s string) { fmt.Fprintf(e.err, "coldplane: warning: %s\n", s) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	e := &env{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, now: time.Now, getenv: os.Getenv,
		outTTY: term.IsTerminal(int(os.Stdout.Fd())), errTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if e.outTTY {
		if w, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			e.width = w
		}
	}
	e.root = os.Geteuid() == 0
	var args []string
	if e.child, args = childArgs(os.Args[1:]); e.child != nil {
		e.err = confine.NoteCrash(e.child.scratch)
	} else {
		e.spawn = func(ctx context.Context, scratchIn string, cpu time.Duration) (confine.End, bool) {
			return confine.Spawn(ctx, args, scratchIn, cpu)
		}
	}
	code := run(ctx, e, args)
	stop()
	if e.child != nil {
		code = confine.Exit(code)
	}
	os.Exit(code)
}
