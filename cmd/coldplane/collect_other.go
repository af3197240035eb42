//go:build !linux

package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

// newCollect answers where there is no collector: it reads /proc, opens files
// with openat2 and knows Linux's mounts. Everything else works everywhere.
func newCollect(*env, *globals) *cobra.Command {
	return &cobra.Command{
		Use:                "collect",
		Short:              "Make one safe bundle from a node (runs on Linux)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return usagef("run it on the node, for example: ssh cp1 sudo coldplane collect -o - > cp1.tar.zst", "collect runs on Linux, not on %s", runtime.GOOS)
		},
	}
}
