// Command coldplane finds out, from files alone, what is wrong with a
// Kubernetes control plane. One file here per subcommand.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
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
}

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
	code := run(ctx, e, os.Args[1:])
	stop()
	os.Exit(code)
}
