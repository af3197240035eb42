package main

import (
	"io"
	"os"
	"slices"
	"strings"

	"coldplane/report"
	"coldplane/report/jsonfmt"
	"coldplane/report/text"
)

// A renderer writes a report in one format.
type renderer func(io.Writer, *report.Report, renderOptions) error

type renderOptions struct {
	width int
	color bool
}

// formats are the report formats by name.
func formats() map[string]renderer {
	return map[string]renderer{
		"text": func(w io.Writer, r *report.Report, o renderOptions) error {
			return text.Write(w, r, text.Options{Width: o.width, Color: o.color})
		},
		"wide": func(w io.Writer, r *report.Report, o renderOptions) error {
			return text.Write(w, r, text.Options{Width: max(o.width, 160), Color: o.color, Wide: true})
		},
		"json": func(w io.Writer, r *report.Report, _ renderOptions) error { return jsonfmt.JSON(w, r) },
		"yaml": func(w io.Writer, r *report.Report, _ renderOptions) error { return jsonfmt.YAML(w, r) },
	}
}

func formatNames() []string {
	var out []string
	for n := range formats() {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// An output is one format and where it goes; "" is stdout.
type output struct {
	format, file string
}

// outputs reads -o, --out and --report into what to write.
func outputs(format, file string, reports []string) ([]output, error) {
	check := func(f string) error {
		if formats()[f] == nil {
			return usagef("formats are "+strings.Join(formatNames(), ", "), "unknown output format %q", f)
		}
		return nil
	}
	if err := check(format); err != nil {
		return nil, err
	}
	outs := []output{{format, file}}
	for _, r := range reports {
		f, path, ok := strings.Cut(r, "=")
		if !ok || path == "" {
			return nil, usagef("for example --report json=report.json", "--report %q is not FORMAT=FILE", r)
		}
		if err := check(f); err != nil {
			return nil, err
		}
		outs = append(outs, output{f, path})
	}
	return outs, nil
}

// write renders the report to every output. A file appears whole or not at all.
func (o output) write(e *env, r *report.Report) error {
	opts := renderOptions{width: e.width}
	if o.file == "" {
		opts.color = e.outTTY && e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb"
		return formats()[o.format](e.out, r, opts)
	}
	tmp := o.file + ".partial"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = formats()[o.format](f, r, opts)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, o.file)
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}
