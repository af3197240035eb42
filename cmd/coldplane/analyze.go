package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"coldplane/analyze"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/report/words"
	"coldplane/rules"
)

// analyzeFlags are the flags of analyze.
type analyzeFlags struct {
	output, out, config  string
	reports, rules, sets []string
	identity             []string
	asOf, target, failOn string
	strict, noDigest     bool
	baseline             string
	lang                 string
	spool                string
	jobs                 int
}

func (f *analyzeFlags) add(fs *pflag.FlagSet) {
	fs.StringVarP(&f.output, "output", "o", "text", "report format: "+formatHelp())
	fs.StringVar(&f.out, "out", "", "write the report to this file instead of stdout")
	fs.StringArrayVar(&f.reports, "report", nil, "one more report, FORMAT=FILE; may be repeated")
	fs.StringVar(&f.lang, "lang", "en", "language of the report: "+strings.Join(words.Languages(), ", ")+" (what has no translation stays English)")
	fs.StringVar(&f.asOf, "as-of", "", "time that judges ages, RFC 3339 or YYYY-MM-DD (default: the collection's own, else inferred)")
	fs.StringVar(&f.baseline, "baseline", "", "earlier report (-o json): show what is new, fixed and unchanged; exit 1 only for what is new")
	fs.StringVar(&f.target, "target", "", "Kubernetes version to be upgraded to, for a pre-upgrade audit, e.g. v1.38.0")
	fs.StringSliceVar(&f.rules, "rules", nil, "rules to ask, by id prefix; a leading - leaves out, e.g. CAP,PKI1,-PKI207")
	fs.StringVar(&f.failOn, "fail-on", "high", "exit 1 when a finding is at or above this severity; none never fails")
	fs.BoolVar(&f.strict, "strict", false, "exit 3 when evidence is damaged or incomplete")
	fs.StringVar(&f.config, "config", "", "file with parameters and waivers (coldplane.yaml)")
	fs.StringArrayVar(&f.sets, "set", nil, "set a rule's parameter, RULE.NAME=VALUE; may be repeated")
	fs.BoolVar(&f.noDigest, "no-digest", false, "do not compute the SHA-256 of the inputs")
	fs.StringVar(&f.spool, "spool", "", "directory for large archive members (default: the temp directory)")
	fs.IntVar(&f.jobs, "jobs", 0, "parallel workers (default: the number of processors)")
}

func newAnalyze(e *env, g *globals) *cobra.Command {
	f := &analyzeFlags{}
	c := &cobra.Command{
		Use:   "analyze INPUT...",
		Short: "Find out what is wrong, why, and what to do",
		Long: `Analyze one or more inputs of one cluster. An input is recognised by its content:

  a directory laid out like a node's / (a node's root, a dead node's disk, or
  nodes/<name>/ for several nodes), the same in a tar, tar.gz or tar.zst,
  an etcd snapshot or database file, an etcd data directory.

Inputs are never written to.

` + exitHelp,
		Example: `  coldplane analyze /
  coldplane analyze cp1.tar.zst cp2.tar.zst cp3.tar.zst
  coldplane analyze /mnt/dead-disk --report html=report.html
  coldplane analyze snapshot.db -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runAnalyze(c.Context(), e, g, f, args) },
	}
	f.add(c.Flags())
	identityFlag(c, &f.identity)
	return c
}

func runAnalyze(ctx context.Context, e *env, g *globals, f *analyzeFlags, inputs []string) error {
	outs, err := outputs(f.output, f.out, f.reports)
	if err != nil {
		return err
	}
	if err := checkLang(f.lang); err != nil {
		return err
	}
	o, fail, err := f.options(e, g)
	if err != nil {
		return err
	}
	for _, out := range outs {
		for _, in := range inputs {
			if out.file != "" && samePath(out.file, in) {
				return usagef("choose another name for the report", "%s is an input and would be overwritten", out.file)
			}
		}
	}
	show := newProgress(e, g)
	defer show.done()
	ids, err := identities(f.identity)
	if err != nil {
		return err
	}
	targets, err := openTargets(outs)
	if err != nil {
		return err
	}
	defer discardAll(targets)
	reads := inputs
	if f.baseline != "" {
		reads = append(slices.Clone(inputs), f.baseline)
	}
	e.enter(g, reads, targets...)
	set, err := bundle.Open(ctx, inputs, bundle.Options{Limits: g.limits.archives(), SpoolDir: e.spoolDir(f.spool), Digest: !f.noDigest, Progress: show.input, Identities: ids})
	if err != nil {
		return err
	}
	defer set.Close()
	o.Progress = show.question
	r, err := rules.Evaluate(ctx, set, o)
	if err != nil {
		return err
	}
	if f.baseline != "" {
		old, err := readReport(e, f.baseline)
		if err != nil {
			return err
		}
		r.Baseline = r.Against(old)
	}
	if !f.noDigest {
		show.step("digests of the inputs")
		rules.FillDigests(set, r)
	}
	show.done()
	for i, out := range outs {
		if err := out.write(e, targets[i], r, f.lang); err != nil {
			return err
		}
	}
	if !g.quiet {
		for _, p := range set.Problems {
			fmt.Fprintf(e.err, "coldplane: %s: %s; the other inputs were analyzed\n", visible(p.Evidence), visible(p.Detail))
		}
	}
	return exitCode(r, fail, f.strict)
}

// exitCode decides how the command ends.
func exitCode(r *report.Report, fail report.Severity, strict bool) error {
	if strict && incomplete(r) {
		return exitError(exitIncomplete)
	}
	if fail == "" {
		return nil
	}
	for _, x := range r.Findings {
		if r.Baseline != nil && !slices.Contains(r.Baseline.New, x.ID) {
			continue
		}
		if x.Severity.AtLeast(fail) && x.Rule != mixedInputs {
			return exitError(exitFindings)
		}
	}
	return nil
}

// mixedInputs is the rule about inputs of several clusters: what was given, not
// what is wrong with a cluster, so it does not decide the exit code.
const mixedInputs = "BUN102"

// incomplete reports whether evidence was damaged, unusable or missing.
func incomplete(r *report.Report) bool {
	for _, in := range r.Inputs {
		if in.State != "read" && in.State != "intact" || len(in.Refused) > 0 {
			return true
		}
	}
	oc := r.Outcomes()
	return oc[report.Unknown] > 0 || oc[report.Errored] > 0
}

// options checks the flags and turns them into what Evaluate takes.
func (f *analyzeFlags) options(e *env, g *globals) (o rules.Options, fail report.Severity, err error) {
	if f.failOn != "none" {
		if fail, err = report.ParseSeverity(f.failOn); err != nil {
			return o, "", usagef("one of critical, high, medium, low, info, none", "--fail-on: %s", err.Error())
		}
	}
	cfg, err := readConfig(f.config)
	if err != nil {
		return o, "", err
	}
	if err := cfg.setParams(f.sets); err != nil {
		return o, "", err
	}
	if o.Waivers, err = cfg.waivers(f.config); err != nil {
		return o, "", err
	}
	sel := cfg.Rules
	if len(f.rules) > 0 {
		sel = f.rules
	}
	if o.Rules, err = rules.Select(rules.All(), sel); err != nil {
		return o, "", usagef("coldplane rules lists them", "--rules: %s", err.Error())
	}
	if f.asOf != "" {
		if o.AsOf, err = parseTime(f.asOf); err != nil {
			return o, "", err
		}
	}
	if f.target != "" {
		if o.Target, err = parseTarget(f.target); err != nil {
			return o, "", err
		}
	}
	if f.jobs < 0 {
		return o, "", usagef("give 1 or more, or leave it out", "--jobs %d is negative", f.jobs)
	}
	log := g.logger(e)
	o.Options = analyze.Options{
		AsOf: o.AsOf, Target: o.Target, Now: e.now(), Params: cfg.Params, Jobs: f.jobs,
		Defect: func(what string, stack []byte) { log.Error(what, "stack", string(stack)) },
	}
	o.Version = toolVersion()
	return o, fail, nil
}

func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, usagef("write it as 2026-01-31T08:00:00Z or 2026-01-31", "--as-of %q is no time", s)
}

var targetVersion = regexp.MustCompile(`^v?(\d+)\.(\d+)(\.\d+)?([-+].*)?$`)

func parseTarget(s string) (string, error) {
	m := targetVersion.FindStringSubmatch(s)
	if m == nil {
		return "", usagef("for example --target v1.38.0", "--target %q is no Kubernetes version", s)
	}
	if m[3] == "" {
		m[3] = ".0"
	}
	return "v" + m[1] + "." + m[2] + m[3] + m[4], nil
}

func samePath(a, b string) bool {
	pa, err1 := filepath.Abs(a)
	pb, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && pa == pb
}
