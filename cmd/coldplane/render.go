package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"coldplane/report"
	"coldplane/report/jsonfmt"
	"coldplane/report/words"
)

// reportBytes is the most that a report read back may have.
const reportBytes = 256 << 20

func newRender(e *env, g *globals) *cobra.Command {
	var format, file, lang string
	var reports []string
	c := &cobra.Command{
		Use: "render REPORT.json", Short: "Write a saved JSON report in another format", Args: cobra.ExactArgs(1),
		Long: `Write a report saved with -o json in any other format: on another machine,
without the evidence. - reads it from standard input.

Exit codes: 0 rendered, 2 wrong usage or no report, 4 the tool failed.`,
		Example: `  coldplane analyze cp1.tar.zst -o json --out report.json
  coldplane render report.json -o html --out report.html
  coldplane render report.json -o csv-certificates`,
		RunE: func(_ *cobra.Command, args []string) error {
			outs, err := outputs(format, file, reports)
			if err != nil {
				return err
			}
			if err := checkLang(lang); err != nil {
				return err
			}
			for _, o := range outs {
				if o.file != "" && samePath(o.file, args[0]) {
					return usagef("choose another name for the output", "%s is the report and would be overwritten", o.file)
				}
			}
			targets, err := openTargets(outs)
			if err != nil {
				return err
			}
			defer discardAll(targets)
			e.enter(g, args, targets...)
			r, err := readReport(e, args[0])
			if err != nil {
				return err
			}
			for i, o := range outs {
				if err := o.write(e, targets[i], r, lang); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", "report format: "+formatHelp())
	c.Flags().StringVar(&file, "out", "", "write to this file instead of stdout")
	c.Flags().StringArrayVar(&reports, "report", nil, "one more format, FORMAT=FILE; may be repeated")
	c.Flags().StringVar(&lang, "lang", "en", "language of the report: "+strings.Join(words.Languages(), ", "))
	return c
}

// readReport reads a saved report.
func readReport(e *env, path string) (*report.Report, error) {
	in := e.in
	if path != "-" {
		f, err := os.Open(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, usagef("make one with coldplane analyze INPUT -o json --out "+path, "%s: does not exist", path)
		case err != nil:
			return nil, usagef("check the path", "%s", err.Error())
		}
		defer f.Close()
		in = f
	}
	l := &io.LimitedReader{R: in, N: reportBytes + 1}
	r, err := jsonfmt.Read(l)
	switch {
	case l.N <= 0:
		return nil, usagef("a report is at most 256 MiB", "%s: too large for a report", path)
	case err != nil:
		return nil, usagef("give what coldplane analyze -o json wrote", "%s is no report: %s", path, err.Error())
	}
	return r, nil
}
