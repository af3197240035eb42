package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"coldplane/bundle"
	"coldplane/bundle/archive"
)

func newInspect(e *env, g *globals) *cobra.Command {
	var identity []string
	var output, cat string
	c := &cobra.Command{
		Use:   "inspect BUNDLE",
		Short: "List what a bundle holds and what was done to it",
		Long: `List every entry of a bundle: its size, its treatment (kept, redacted, scrubbed,
derived, dropped, link, failed) and where it came from, then what each source of
the collection gave and what was looked for and not there. Read this before a
bundle leaves the house; --cat prints one entry as it is.

Exit codes:
  0    listed
  2    wrong usage, or a file that is no bundle
  3    the bundle is incomplete, altered or ambiguous; what was readable is listed
  4    the tool itself failed
  130  interrupted`,
		Example: `  coldplane inspect cp1.tar.zst
  coldplane inspect cp1.tar.zst --cat etc/kubernetes/manifests/etcd.yaml
  coldplane inspect cp1.tar.zst -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return usagef("formats are text, json", "unknown output format %q", output)
			}
			ids, err := identities(identity)
			if err != nil {
				return err
			}
			e.enter(g, args)
			f, _, err := openInput(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			r, err := archive.Unwrap(ctxReader{c.Context(), f}, ids)
			if errors.Is(err, archive.ErrNeedIdentity) {
				return usagef("give the key: --identity FILE", "%s: encrypted with age", args[0])
			}
			if err != nil {
				return &bundle.InputError{Path: args[0], What: err.Error(), Hint: "name a bundle of coldplane collect"}
			}
			if cat != "" {
				return catEntry(e, r, args[0], cat)
			}
			v := archive.Verify(r, archive.Limits{})
			if c.Context().Err() != nil {
				return c.Context().Err()
			}
			if v.Header == nil {
				return &bundle.InputError{Path: args[0], What: "not a coldplane bundle", Hint: "its first entry must be " + archive.HeaderPath}
			}
			if output == "json" {
				err = inspectJSON(e, v)
			} else {
				err = inspectText(e, v)
			}
			if err == nil && v.State != archive.Intact {
				return exitError(exitIncomplete)
			}
			return err
		},
	}
	fs := c.Flags()
	fs.StringVarP(&output, "output", "o", "text", "format: text, json")
	fs.StringVar(&cat, "cat", "", "print the content of this entry instead")
	identityFlag(c, &identity)
	return c
}

func inspectJSON(e *env, v *archive.Verification) error {
	enc := json.NewEncoder(e.out)
	enc.SetIndent("", " ")
	return enc.Encode(map[string]any{"state": v.State, "problems": v.Problems, "fingerprint": v.Fingerprint, "header": v.Header, "manifest": v.Manifest})
}

func inspectText(e *env, v *archive.Verification) error {
	h := v.Header
	fmt.Fprintf(e.out, "%s  node %s  collected %s  %s, redaction %s\n", v.State, visible(h.Node), h.CollectedAt.UTC().Format("2006-01-02T15:04:05Z"), visible(h.Sensitivity), visible(h.Policy.Redaction))
	for _, p := range v.Problems {
		fmt.Fprintf(e.out, "problem: %s\n", visible(p))
	}
	if v.Manifest == nil {
		return nil
	}
	w := tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\nTREATMENT\tBYTES\tOF\tENTRY\tNOTE")
	for _, x := range v.Manifest.Entries {
		of := ""
		if x.Source != nil {
			of = fmt.Sprint(x.Source.Size)
		}
		size := "-"
		if x.Stored {
			size = fmt.Sprint(x.Size)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", x.Treatment, size, of, visible(x.Path), visible(note(x)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := len(v.Manifest.Absent); n > 0 {
		fmt.Fprintf(e.out, "\nLooked for and not there (%d):\n", n)
		for _, p := range v.Manifest.Absent {
			fmt.Fprintln(e.out, "  "+visible(p))
		}
	}
	_, err := fmt.Fprintf(e.out, "\nstatus %s, fingerprint %s\n", v.Manifest.Status, v.Fingerprint)
	return err
}

func note(x archive.Entry) string {
	var parts []string
	for _, p := range []string{x.Rule, x.Consistency, x.Error} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	n := 0
	for _, c := range x.Counts {
		n += c
	}
	if n > 0 {
		parts = append(parts, fmt.Sprintf("%d places overwritten", n))
	}
	if x.Source != nil && x.Source.Link != "" {
		parts = append(parts, "-> "+x.Source.Link)
	}
	return strings.Join(parts, "; ")
}

func catEntry(e *env, r io.Reader, path, name string) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return &bundle.InputError{Path: path, What: "no entry " + name, Hint: "coldplane inspect lists them"}
		}
		if err != nil {
			return &bundle.InputError{Path: path, What: err.Error(), Hint: "coldplane verify says how far it is good"}
		}
		if h.Name == strings.TrimPrefix(name, "/") {
			if e.outTTY {
				b, err := io.ReadAll(io.LimitReader(tr, 64<<20))
				if err != nil {
					return err
				}
				for line := range strings.Lines(string(b)) {
					fmt.Fprintln(e.out, visible(strings.TrimSuffix(line, "\n")))
				}
				return nil
			}
			_, err := io.Copy(e.out, tr)
			return err
		}
	}
}
