package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"coldplane/cmd/coldplane/confine"
)

// version is set by the release build; otherwise the build information says
// what is known.
var version string

func toolVersion() string {
	if version != "" {
		return version
	}
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return bi.Main.Version
	}
	return "devel"
}

func newVersion(e *env, g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version; with -v how commands are confined here", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(e.out, "coldplane %s %s %s/%s\n", toolVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if err == nil && g.verbose > 0 {
				_, err = fmt.Fprintf(e.out, "confinement of commands that read evidence: %s\n", confinement())
			}
			return err
		},
	}
}

// confinement says what is in force when a command reads evidence here.
func confinement() string {
	if runtime.GOOS != "linux" {
		return "none on " + runtime.GOOS
	}
	var l limits
	return fmt.Sprintf("a child process with at most %s of memory, %s of processor time and %s per file written; %s",
		size.format(l.of("memory")), duration.format(l.of("cpu")), size.format(l.of("file")), confine.Supported())
}
