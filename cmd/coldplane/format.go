package main

import (
	"io"
	"strings"

	"coldplane/report"
	"coldplane/report/formats"
	"coldplane/report/words"
	"coldplane/rules"
)

// An output is one format and where it goes; "" is stdout.
type output struct {
	format, file string
}

// outputs reads -o, --out and --report into what to write.
func outputs(format, file string, reports []string) ([]output, error) {
	check := func(f string) error {
		if formats.All()[f] == nil {
			return usagef("formats are "+strings.Join(formats.Names(), ", "), "unknown output format %q", f)
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

// checkLang refuses a language there are no words for.
func checkLang(lang string) error {
	if !words.Known(lang) {
		return usagef("languages are "+strings.Join(words.Languages(), ", "), "unknown language %q", lang)
	}
	return nil
}

// write renders the report to an output.
func (o output) write(e *env, t *target, r *report.Report, lang string) error {
	opts := report.Options{Width: e.width, Lang: lang, Rules: rules.Docs(rules.All())}
	render := formats.All()[o.format]
	if o.file == "" {
		opts.Color = e.outTTY && e.getenv("NO_COLOR") == "" && e.getenv("TERM") != "dumb"
		return render(e.out, r, opts)
	}
	opts.Width = 0 // the terminal's width means nothing in a file
	return t.write(e.out, func(w io.Writer) error { return render(w, r, opts) })
}

// formatHelp lists the formats for a flag's help.
func formatHelp() string {
	var out []string
	tables := 0
	for _, n := range formats.Names() {
		if strings.HasPrefix(n, "csv-") {
			tables++
			continue
		}
		out = append(out, n)
	}
	if tables > 0 {
		out = append(out, "csv-TABLE")
	}
	return strings.Join(out, ", ")
}
