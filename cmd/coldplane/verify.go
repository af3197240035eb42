package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"coldplane/bundle"
	"coldplane/bundle/archive"
)

const verifyExitHelp = `Exit codes:
  0    intact, or unsealed and sound
  2    wrong usage, or a file that is no bundle and no snapshot
  3    incomplete, altered or ambiguous
  4    the tool itself failed
  130  interrupted`

func newVerify(e *env, g *globals) *cobra.Command {
	var identity []string
	c := &cobra.Command{
		Use:   "verify BUNDLE|SNAPSHOT...",
		Short: "Check that a bundle or a snapshot is what was written",
		Long: `Check every byte of a bundle against its own manifest; or a snapshot against the
SHA-256 that etcdctl appended to it, page by page and record by record, and say
whether it can be restored, and how. The answer is one of

  intact      everything is there and unchanged
  incomplete  cut off, or the collection was interrupted; what is there is good
  ambiguous   a name twice, or bytes after the end: two readers may see two bundles
  altered     something differs from what was written
  unsealed    a copy of member/snap/db, without a SHA-256; its pages are sound

The fingerprint of an intact bundle must be the one that collect printed: only
that comparison shows that nobody wrote the bundle anew.

` + verifyExitHelp,
		Example: `  coldplane verify cp1.tar.zst
  coldplane verify --identity key.txt cp1.tar.zst.age`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ids, err := identities(identity)
			if err != nil {
				return err
			}
			e.enter(g, args)
			worst := error(nil)
			for _, p := range args {
				ok, err := verifyOne(c.Context(), e, p, ids)
				if err != nil {
					return err
				}
				if !ok {
					worst = exitError(exitIncomplete)
				}
			}
			return worst
		},
	}
	identityFlag(c, &identity)
	return c
}

func identityFlag(c *cobra.Command, v *[]string) {
	c.Flags().StringArrayVar(v, "identity", nil, "age identity file or ssh private key that opens encrypted bundles; may be repeated")
}

// identities reads the files given with --identity.
func identities(files []string) (out []age.Identity, err error) {
	for _, p := range files {
		f, err := os.Open(p)
		if err != nil {
			return nil, usagef("check the path given to --identity", "%s", err.Error())
		}
		ids, err := archive.ParseIdentities(f)
		f.Close()
		if err != nil {
			return nil, usagef("an age identity file (age-keygen) or an ssh private key without a passphrase", "--identity %s: %s", p, err.Error())
		}
		out = append(out, ids...)
	}
	return out, nil
}

// ctxReader ends a read when the context does.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func verifyOne(ctx context.Context, e *env, p string, ids []age.Identity) (ok bool, err error) {
	f, size, err := openInput(p)
	if err != nil {
		return false, err
	}
	defer f.Close()
	switch bundle.Sniff(f, size) {
	case bundle.FormatDB:
		return verifyDB(ctx, e, p, f, size)
	case bundle.FormatArchive, bundle.FormatEncrypted:
	default:
		return false, &bundle.InputError{Path: p, What: "neither a bundle nor an etcd snapshot", Hint: "bundles are tar.zst, tar.gz, tar or these with .age"}
	}
	r, err := archive.Unwrap(ctxReader{ctx, f}, ids)
	if errors.Is(err, archive.ErrNeedIdentity) {
		return false, usagef("give the key: --identity FILE", "%s: encrypted with age", p)
	}
	v := &archive.Verification{}
	if err != nil {
		v = archive.NewChecker().Finish(err, 0)
	} else {
		v = archive.Verify(r, archive.Limits{})
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if v.Header == nil && v.State == archive.Altered {
		return false, &bundle.InputError{Path: p, What: "not a coldplane bundle: " + v.Detail(), Hint: "only bundles of coldplane collect carry what is needed to check them"}
	}
	fmt.Fprintf(e.out, "%s: %s\n", visible(p), v.State)
	if h := v.Header; h != nil {
		fmt.Fprintf(e.out, "  node         %s, collected %s\n", visible(h.Node), h.CollectedAt.UTC().Format("2006-01-02T15:04:05Z"))
	}
	if m := v.Manifest; m != nil {
		fmt.Fprintf(e.out, "  status       %s, %d entries, %s\n", m.Status, m.Totals.Entries, bundle.FormatBytes(m.Totals.Bytes))
	}
	if v.Fingerprint != "" {
		fmt.Fprintf(e.out, "  fingerprint  %s\n", v.Fingerprint)
	}
	for _, x := range v.Problems {
		fmt.Fprintf(e.out, "  problem      %s\n", visible(x))
	}
	if v.Dropped > 0 {
		fmt.Fprintf(e.out, "  problem      %d more\n", v.Dropped)
	}
	return v.State == archive.Intact, nil
}

// openInput opens a regular file.
func openInput(p string) (*os.File, int64, error) {
	fi, err := os.Stat(p)
	if err != nil {
		return nil, 0, &bundle.InputError{Path: p, What: pathError(err), Hint: "check the path"}
	}
	if !fi.Mode().IsRegular() {
		return nil, 0, &bundle.InputError{Path: p, What: "not a regular file", Hint: "name a bundle or a snapshot"}
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, 0, &bundle.InputError{Path: p, What: pathError(err), Hint: "run as a user who may read it"}
	}
	return f, fi.Size(), nil
}

func pathError(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
