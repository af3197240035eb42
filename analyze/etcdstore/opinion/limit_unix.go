//go:build unix

package opinion

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// limit bounds the child: 60 s of CPU, 6 GiB of address space (bbolt maps the
// file rounded up), no file of any size written.
func limit() error {
	debug.SetPanicOnFault(true)
	for _, l := range []struct {
		what int
		max  uint64
	}{{unix.RLIMIT_CPU, 60}, {unix.RLIMIT_AS, 6 << 30}, {unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_CORE, 0}} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return err
		}
		m := min(l.max, uint64(now.Max)) // what the parent is allowed cannot be exceeded
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: m, Max: m}); err != nil {
			return err
		}
	}
	return nil
}
