// Package confine runs a command that reads foreign evidence in a child process
// of the same binary: with limits on memory, processor time and file size, and,
// where the kernel has Landlock, without the network and with no file but those
// that the command line names.
//
// Everything is best effort. What a system does not have is left out, and Level
// says what is in force.
package confine

import (
	"fmt"
	"strings"
	"time"
)

// Command is the hidden first argument of a confined child. The second is its
// scratch directory, "" when there is none.
const Command = "__confined"

// Limits bound a confined process. Zero is no limit.
type Limits struct {
	Memory int64         // bytes of address space
	CPU    time.Duration // processor time, whole seconds
	File   int64         // bytes of the largest file written
}

// A Policy names what a confined process may touch.
type Policy struct {
	Read  []string // files and directories that are read, with all below them
	Renew []string // directories in which finished outputs are renamed; nothing is opened there
	Write []string // the directories that temporary files are made in
}

// Level is what Enter put, or would put, in force, in words for people.
type Level struct {
	ABI    int // of Landlock; 0 when the kernel has none
	Failed error
}

func (l Level) String() string {
	switch {
	case l.Failed != nil:
		return "no Landlock (" + l.Failed.Error() + ")"
	case l.ABI <= 0:
		return "no Landlock in this kernel"
	}
	parts := []string{"files"}
	for _, p := range []struct {
		abi  int
		what string
	}{{4, "TCP"}, {5, "devices"}, {6, "signals"}, {9, "local sockets"}, {10, "UDP"}} {
		if l.ABI >= p.abi {
			parts = append(parts, p.what)
		}
	}
	return fmt.Sprintf("Landlock version %d (%s)", l.ABI, strings.Join(parts, ", "))
}

// An End is how a child ended.
type End struct {
	Code  int    // the exit code it chose; meaningful when Died is empty
	Died  string // why it ended without choosing one
	Crash string // the beginning of what the runtime said when it died
	Limit string // the name of the limit that ended it, if one did
}

// ended is added to a code that a child chooses, so that the runtime's own exit
// codes are told from it.
const ended = 64

// Exit is the process exit code of a child for a command's exit code.
func Exit(code int) int { return code + ended }

// crashBytes is how much of a crash's text is read.
const crashBytes = 4 << 10

// verdict turns a child's process exit code, the signal that ended it, the
// beginning of its crash's text and whether its processor time was spent into an End.
func verdict(code int, signal, crash string, cpuSpent bool) End {
	first, _, _ := strings.Cut(strings.TrimSpace(crash), "\n")
	first = strings.TrimPrefix(first, "fatal error: ")
	switch {
	case code >= ended:
		return End{Code: code - ended}
	case cpuSpent:
		return End{Died: "its processor time is used up", Limit: "cpu", Crash: crash}
	case strings.Contains(crash, "out of memory"), strings.Contains(crash, "cannot allocate memory"), strings.Contains(crash, "pthread_create failed"): // no room for a stack
		return End{Died: "out of memory", Limit: "memory", Crash: crash}
	case first != "":
		return End{Died: first, Crash: crash}
	case signal != "":
		return End{Died: signal}
	}
	return End{Died: fmt.Sprintf("exit code %d", code)}
}
