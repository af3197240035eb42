package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"coldplane/bundle"
)

// Exit codes, the same for every format.
const (
	exitOK          = 0   // nothing at or above --fail-on
	exitFindings    = 1   // findings at or above it
	exitUsage       = 2   // the command line is wrong, or an input is nothing we know
	exitIncomplete  = 3   // evidence damaged or incomplete, only with --strict
	exitFailure     = 4   // the tool failed
	exitInterrupted = 130 // a signal
)

const exitHelp = `Exit codes:
  0    nothing at or above --fail-on (default high)
  1    findings at or above it
  2    wrong usage, or an input that does not exist or is nothing coldplane knows
  3    with --strict: evidence is damaged or incomplete
  4    the tool itself failed
  130  interrupted`

// A usageError means the command line is wrong; hint says what to try.
type usageError struct {
	msg, hint string
}

func (e *usageError) Error() string { return e.msg }

func usagef(hint, format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...), hint}
}

// An exitError ends the command with a code and no message: the result was
// printed already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// finish prints an error as one line, with a hint below it, and returns the
// exit code.
func finish(e *env, err error) int {
	if err == nil {
		return exitOK
	}
	var code exitError
	if errors.As(err, &code) {
		return int(code)
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(e.err, "coldplane: interrupted")
		return exitInterrupted
	}
	line := func(s string) string { return strings.ReplaceAll(visible(s), "\n", " ") }
	var ue *usageError
	var ie *bundle.InputError
	switch {
	case errors.As(err, &ue):
		fmt.Fprintf(e.err, "coldplane: error: %s\n", line(ue.msg))
		if ue.hint != "" {
			fmt.Fprintf(e.err, "coldplane: %s\n", line(ue.hint))
		}
		return exitUsage
	case errors.As(err, &ie):
		fmt.Fprintf(e.err, "coldplane: error: %s\ncoldplane: %s\n", line(ie.Error()), line(ie.Hint))
		return exitUsage
	}
	fmt.Fprintf(e.err, "coldplane: error: %s\n", line(err.Error()))
	return exitFailure
}
