package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"coldplane/analyze/etcdstore"
	"coldplane/analyze/etcdstore/opinion"
)

// opinionLimit is the size up to which bbolt and etcd are asked, in bytes.
const opinionLimit = 1 << 30

// newOpinion is the hidden subcommand that a second opinion runs in.
func newOpinion(e *env) *cobra.Command {
	return &cobra.Command{
		Use: opinion.Command + " FILE REVISION", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			rev, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return usagef("it is started by coldplane itself", "%q is no revision", args[1])
			}
			return opinion.Child(e.out, args[0], rev)
		},
	}
}

// secondOpinion asks bbolt and etcd about a store whose pages are sound and that
// is not larger than limit. ok is false when it was not asked.
func secondOpinion(ctx context.Context, e *env, s *etcdstore.Store, limit int64) (o opinion.Opinion, ok bool, err error) {
	if !s.Clean() || s.Pages.DBSize > limit || e.getenv("COLDPLANE_SECOND_OPINION") == "off" {
		return o, false, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return o, false, err
	}
	o, err = opinion.Ask(ctx, exe, "", s.File(), s.File().Size(), 0)
	if err != nil {
		return o, false, err
	}
	return o, true, nil
}

// opinionText is an opinion in a line.
func opinionText(o opinion.Opinion) string {
	if o.Etcd == "" {
		return "bbolt: " + o.Bolt
	}
	t := fmt.Sprintf("bbolt %s it, etcd %s on it", o.Bolt, o.Etcd)
	if o.Hash != 0 {
		t += fmt.Sprintf(", KV hash %d at revision %d, compacted at %d", o.Hash, o.HashRev, max(o.Compact, 0))
	}
	return t
}
