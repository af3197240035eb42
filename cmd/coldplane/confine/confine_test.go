package confine

import "testing"

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		code          int
		signal, crash string
		spent         bool
		want          End
	}{
		{code: Exit(0), want: End{}},
		{code: Exit(130), want: End{Code: 130}},
		{code: 2, crash: "fatal error: runtime: out of memory\n\nruntime stack:", want: End{Died: "out of memory", Limit: "memory"}},
		{code: 2, crash: "runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort", want: End{Died: "out of memory", Limit: "memory"}},
		{code: 2, crash: "runtime: goroutine stack exceeds 1000000000-byte limit\n", want: End{Died: "runtime: goroutine stack exceeds 1000000000-byte limit"}},
		{code: -1, signal: "ended by signal killed", spent: true, want: End{Died: "its processor time is used up", Limit: "cpu"}},
		{code: -1, signal: "ended by signal killed", want: End{Died: "ended by signal killed"}},
		{code: 1, want: End{Died: "exit code 1"}},
	} {
		c.want.Crash = ""
		got := verdict(c.code, c.signal, c.crash, c.spent)
		got.Crash = ""
		if got != c.want {
			t.Errorf("%d %q %q: %+v, want %+v", c.code, c.signal, c.crash, got, c.want)
		}
	}
}

func TestLevel(t *testing.T) {
	for _, c := range []struct {
		abi  int
		want string
	}{{0, "no Landlock in this kernel"}, {1, "Landlock version 1 (files)"}, {4, "Landlock version 4 (files, TCP)"}} {
		if got := (Level{ABI: c.abi}).String(); got != c.want {
			t.Errorf("%d: %q, want %q", c.abi, got, c.want)
		}
	}
}
