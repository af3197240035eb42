package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"coldplane/bundle"
	"coldplane/bundle/archive"
	"coldplane/bundle/redact"
)

type scrubFlags struct{ level, out string }

func newScrub(e *env, g *globals) *cobra.Command {
	f := &scrubFlags{}
	c := &cobra.Command{
		Use:   "scrub DB OUT",
		Short: "Write a copy of an etcd database that can be shown to a stranger",
		Long: `Write a copy of a snapshot or database file in which values are overwritten. The
copy has the same size, pages, keys, revisions and lengths, so whatever can be
said about space, history and structure can be said about the copy too. Pages
that nothing points to, where deleted Secrets linger, are zero. The database is
never written to or locked; do not name the database of a running etcd.

  --level values     (default) of every kind only what is known to be harmless stays
  --level secrets    Secrets, ciphertext and password hashes are overwritten, all else stays:
                     ConfigMaps, environment variables and annotations too
  --level structure  of every object only type, name, namespace, uid and times stay

Names, labels, lengths and times stay and can say something by themselves. A
scrubbed copy cannot be restored.

Exit codes:
  0    written
  2    wrong usage, or a file that is no database
  4    the tool itself failed; nothing is left behind
  130  interrupted; nothing is left behind`,
		Example: `  coldplane scrub snapshot.db shared.db
  coldplane scrub snapshot.db - | ssh host 'cat > shared.db'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			out := f.out
			switch {
			case len(args) == 2 && out == "":
				out = args[1]
			case len(args) == 2 || out == "":
				return usagef("usage: coldplane scrub DB OUT", "name one output")
			}
			return runScrub(c.Context(), e, g, f, args[0], out)
		},
	}
	c.Flags().StringVar(&f.level, "level", string(redact.LevelValues), "how much is overwritten: secrets, values, structure")
	c.Flags().StringVarP(&f.out, "output", "o", "", "the file to write, instead of the second argument; - is stdout")
	return c
}

func runScrub(ctx context.Context, e *env, g *globals, f *scrubFlags, in, out string) error {
	level, ok := redact.ParseLevel(f.level)
	if !ok {
		return usagef("levels are secrets, values, structure", "--level %s: no such level", f.level)
	}
	src, size, err := openInput(in)
	if err != nil {
		return err
	}
	defer src.Close()
	if bundle.Sniff(src, size) != bundle.FormatDB {
		return &bundle.InputError{Path: in, What: "not an etcd database", Hint: "give a snapshot or a copy of member/snap/db; bundles are scrubbed when they are made"}
	}
	if out != "-" && samePath(in, out) {
		return usagef("choose another name for the copy", "%s would overwrite its own input", out)
	}
	scan := redact.NewScanner()
	o := redact.StoreOptions{Level: level, Workers: min(2, runtime.GOMAXPROCS(0)), Secret: scan.Secret}
	var res redact.StoreResult
	if out == "-" {
		res, err = scrubStdout(ctx, e, src, size, o)
	} else {
		res, err = scrubFile(ctx, src, size, out, o)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s: %w", in, err)
	}
	if !g.quiet {
		fmt.Fprintf(e.err, "coldplane: %s\n", res.Describe())
		if res.Trailer == redact.WrongTrailer {
			fmt.Fprintf(e.err, "coldplane: the SHA-256 of %s does not match its content\n", visible(in))
		}
	}
	return nil
}

// scrubFile writes OUT.partial and renames it when it is whole.
func scrubFile(ctx context.Context, src io.ReaderAt, size int64, out string, o redact.StoreOptions) (res redact.StoreResult, err error) {
	f, err := archive.Create(out)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			return res, usagef("remove it or choose another name", "%s", err.Error())
		}
		return res, err
	}
	defer func() { err = errors.Join(err, f.Remove()) }()
	if err := f.Truncate(size); err != nil {
		return res, err
	}
	if res, err = redact.Store(ctx, src, size, f, o); err != nil {
		return res, err
	}
	_, err = f.Publish(false)
	return res, err
}

// scrubStdout goes through an unlinked file: the copy is not written in order.
func scrubStdout(ctx context.Context, e *env, src io.ReaderAt, size int64, o redact.StoreOptions) (res redact.StoreResult, err error) {
	f, err := os.CreateTemp("", "coldplane-scrub-*")
	if err != nil {
		return res, err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return res, fmt.Errorf("%s: %w", filepath.Base(f.Name()), err)
	}
	if err := f.Truncate(size); err != nil {
		return res, err
	}
	if res, err = redact.Store(ctx, src, size, f, o); err != nil {
		return res, err
	}
	_, err = io.Copy(e.out, ctxReader{ctx, io.NewSectionReader(f, 0, size)})
	return res, err
}
