package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"coldplane/analyze"
	"coldplane/analyze/objectdiff"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules"
)

// A comparison is the answer of diff.
type comparison struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	A          string            `json:"a"`
	B          string            `json:"b"`
	New        []report.Finding  `json:"new"`        // findings only in B
	Gone       []report.Finding  `json:"gone"`       // answered in B and not found there
	Unanswered []report.Finding  `json:"unanswered"` // found in A, could not be looked for in B
	Changed    []changedFinding  `json:"changed"`    // the same finding with other words or severity
	Unchanged  int               `json:"unchanged"`
	Facts      []changedFact     `json:"facts"`
	FactsMore  int               `json:"factsMore,omitempty"` // changes a limit left out
	Objects    []objectdiff.Type `json:"objects"`             // nil when one side has no database
	NoObjects  string            `json:"noObjects,omitempty"` // why
}

type changedFinding struct {
	ID   string          `json:"id"`
	Rule string          `json:"rule"`
	Node string          `json:"node,omitempty"`
	A    string          `json:"a"`
	B    string          `json:"b"`
	SevA report.Severity `json:"severityA"`
	SevB report.Severity `json:"severityB"`
}

type changedFact struct {
	Path string `json:"path"`
	A    string `json:"a,omitempty"` // "" when it is not there
	B    string `json:"b,omitempty"`
}

const maxFacts = 300

func newDiff(e *env, g *globals) *cobra.Command {
	f := &analyzeFlags{}
	c := &cobra.Command{
		Use: "diff A B", Short: "Show what changed between two states of a cluster", Args: cobra.ExactArgs(2),
		Long: `Compare two states of one cluster, before and after an upgrade, an incident or a
restore: findings that are new, gone, changed; facts (versions, members,
certificates, sizes) that differ; and, where both sides hold a database, the
objects by type: only in A (what going to B loses), only in B, changed, and
recreated under the same name with another UID.

A and B are inputs as analyze takes them, several joined by commas, or reports
saved with -o json (then without objects).

Exit codes: 0 nothing new at or above --fail-on, 1 something is, 2 wrong usage,
4 the tool failed, 130 interrupted.`,
		Example: `  coldplane diff before.tar.zst after.tar.zst
  coldplane diff cp1-old.tar.zst,cp2-old.tar.zst cp1.tar.zst,cp2.tar.zst -o json
  coldplane diff snapshot-monday.db snapshot-tuesday.db`,
		RunE: func(c *cobra.Command, args []string) error { return runDiff(c.Context(), e, g, f, args[0], args[1]) },
	}
	f.addCommon(c)
	return c
}

// addCommon adds the flags that diff shares with analyze.
func (f *analyzeFlags) addCommon(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVarP(&f.output, "output", "o", "text", "output format: text, json, markdown")
	fs.StringVar(&f.asOf, "as-of", "", "time that judges ages on both sides (default: each collection's own)")
	fs.StringVar(&f.target, "target", "", "Kubernetes version of a pre-upgrade audit, e.g. v1.38.0")
	fs.StringSliceVar(&f.rules, "rules", nil, "rules to ask, by id prefix; a leading - leaves out")
	fs.StringVar(&f.failOn, "fail-on", "high", "exit 1 when something new is at or above this severity; none never fails")
	fs.StringVar(&f.config, "config", "", "file with parameters and waivers (coldplane.yaml)")
	fs.StringVar(&f.spool, "spool", "", "directory for large archive members (default: the temp directory)")
}

// A side is one of the two states.
type side struct {
	report  *report.Report
	objects *objects.Set
	why     string // why there are no objects
	close   func()
}

func runDiff(ctx context.Context, e *env, g *globals, f *analyzeFlags, a, b string) error {
	if !slices.Contains([]string{"text", "json", "markdown"}, f.output) {
		return usagef("formats are text, json, markdown", "unknown output format %q", f.output)
	}
	o, fail, err := f.options(e, g)
	if err != nil {
		return err
	}
	e.enter(g, append(strings.Split(a, ","), strings.Split(b, ",")...))
	x, err := openSide(ctx, e, g, f, o, a)
	if err != nil {
		return err
	}
	defer x.close()
	y, err := openSide(ctx, e, g, f, o, b)
	if err != nil {
		return err
	}
	defer y.close()
	d, err := compareSides(ctx, x, y)
	if err != nil {
		return err
	}
	d.A, d.B = a, b
	if err := d.write(e.out, f.output); err != nil {
		return err
	}
	for _, n := range d.New {
		if fail != "" && n.Severity.AtLeast(fail) {
			return exitError(exitFindings)
		}
	}
	return nil
}

func openSide(ctx context.Context, e *env, g *globals, f *analyzeFlags, o rules.Options, arg string) (*side, error) {
	if strings.HasSuffix(arg, ".json") {
		r, err := readReport(e, arg)
		if err != nil {
			return nil, err
		}
		return &side{report: r, why: arg + " is a report", close: func() {}}, nil
	}
	set, err := bundle.Open(ctx, strings.Split(arg, ","), bundle.Options{Limits: g.limits.archives(), SpoolDir: e.spoolDir(f.spool)})
	if err != nil {
		return nil, err
	}
	r, err := rules.Evaluate(ctx, set, o)
	if err != nil {
		set.Close()
		return nil, err
	}
	s := &side{report: r, close: func() { set.Close() }}
	s.objects, err = objects.Cluster.Get(analyze.New(ctx, set, o.Options).Ctx(nil))
	if err != nil {
		s.why = arg + ": " + err.Error()
	}
	return s, nil
}

func compareSides(ctx context.Context, x, y *side) (*comparison, error) {
	b := y.report.Against(x.report)
	d := &comparison{APIVersion: report.APIVersion, Kind: "Diff", New: []report.Finding{}, Gone: b.Fixed, Unanswered: b.Unanswered, Changed: []changedFinding{}, Facts: []changedFact{}}
	for _, id := range b.New {
		d.New = append(d.New, *y.report.Find(id))
	}
	for _, n := range y.report.Findings {
		old := x.report.Find(n.ID)
		switch {
		case old == nil:
		case old.Severity != n.Severity || old.Message != n.Message:
			d.Changed = append(d.Changed, changedFinding{ID: n.ID, Rule: n.Rule, Node: n.Node, A: old.Message, B: n.Message, SevA: old.Severity, SevB: n.Severity})
		default:
			d.Unchanged++
		}
	}
	d.facts(x.report.Facts, y.report.Facts)
	if x.objects == nil || y.objects == nil {
		d.NoObjects = strings.Trim(x.why+"; "+y.why, "; ")
		return d, nil
	}
	var err error
	d.Objects, err = objectdiff.Compare(ctx, x.objects, y.objects)
	return d, err
}

// facts compares the values of both sides' facts by path.
func (d *comparison) facts(a, b map[string]any) {
	fa, fb := flat(a), flat(b)
	paths := map[string]bool{}
	for p := range fa {
		paths[p] = true
	}
	for p := range fb {
		paths[p] = true
	}
	for _, p := range slices.Sorted(mapKeys(paths)) {
		if fa[p] == fb[p] {
			continue
		}
		if len(d.Facts) == maxFacts {
			d.FactsMore++
			continue
		}
		d.Facts = append(d.Facts, changedFact{p, fa[p], fb[p]})
	}
}

func mapKeys(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// flat turns facts into path -> value. Members of lists are named by what
// identifies them, so that order does not matter; what names the input or the
// time of the collection is left out.
func flat(facts map[string]any) map[string]string {
	out := map[string]string{}
	raw, err := json.Marshal(facts)
	var v any
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		err = dec.Decode(&v)
	}
	if err != nil {
		return out
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch x := v.(type) {
		case map[string]any:
			for k, in := range x {
				switch k {
				case "asOf", "asOfSource", "asOfDetail", "input", "inputs", "ref", "path", "source",
					"evidence", "offset", "line", "revision", "time", "ageSeconds", "lastWrite", "hot", "series":
					continue
				}
				walk(path+"/"+k, in)
			}
		case []any:
			for i, in := range x {
				walk(path+"/"+identity(in, i), in)
			}
		case nil:
		default:
			out[strings.TrimPrefix(path, "/")] = fmt.Sprint(x)
		}
	}
	walk("", v)
	return out
}

func identity(v any, i int) string {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(i)
	}
	var parts []string
	for _, k := range []string{"node", "id", "name", "type", "file", "component"} {
		if s, ok := m[k].(string); ok && s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return fmt.Sprint(i)
	}
	return strings.Join(parts, " ")
}

func (d *comparison) write(w io.Writer, format string) error {
	if format == "json" {
		b, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return err
		}
		_, err = w.Write(append(b, '\n'))
		return err
	}
	md := format == "markdown"
	var b strings.Builder
	head := func(s string) {
		if md {
			fmt.Fprintf(&b, "\n**%s**\n\n", s)
		} else {
			fmt.Fprintf(&b, "\n%s\n", s)
		}
	}
	line := func(mark, s string) {
		s = visible(s)
		if md {
			fmt.Fprintf(&b, "- `%s %s`\n", mark, strings.ReplaceAll(s, "`", "'"))
			return
		}
		fmt.Fprintf(&b, "  %s %s\n", mark, s)
	}
	if md {
		fmt.Fprintf(&b, "### coldplane diff\n")
	}
	fmt.Fprintf(&b, "%d findings new, %d gone, %d changed, %d not answered any more, %d unchanged\n", len(d.New), len(d.Gone), len(d.Changed), len(d.Unanswered), d.Unchanged)
	for _, s := range []struct {
		head, mark string
		fs         []report.Finding
	}{{"New", "+", d.New}, {"Gone", "-", d.Gone}, {"Not answered any more", "?", d.Unanswered}} {
		if len(s.fs) == 0 {
			continue
		}
		head(s.head)
		for _, f := range s.fs {
			line(s.mark, strings.TrimSpace(fmt.Sprintf("%s %s %s: %s", f.Severity, f.Rule, f.Node, f.Message)))
		}
	}
	if len(d.Changed) > 0 {
		head("Changed")
		for _, f := range d.Changed {
			line("~", fmt.Sprintf("%s %s: %s (%s) → %s (%s)", f.Rule, f.Node, f.A, f.SevA, f.B, f.SevB))
		}
	}
	if len(d.Facts) > 0 {
		head("Facts")
		for _, f := range d.Facts {
			line("~", fmt.Sprintf("%s: %s → %s", f.Path, orNone(f.A), orNone(f.B)))
		}
		if d.FactsMore > 0 {
			line("…", fmt.Sprintf("%d more (-o json has %d)", d.FactsMore, maxFacts))
		}
	}
	head("Objects")
	if d.Objects == nil {
		line("?", "not compared: "+d.NoObjects)
	}
	same := 0
	for _, t := range d.Objects {
		if t.OnlyA+t.OnlyB+t.Changed+t.Recreated == 0 {
			same++
			continue
		}
		line("~", fmt.Sprintf("%s: %d only in A, %d only in B, %d changed, %d recreated, %d unchanged", t.Type, t.OnlyA, t.OnlyB, t.Changed, t.Recreated, t.Unchanged))
		for i, k := range t.SamplesA {
			if i < 5 {
				line("  -", k)
			}
		}
		for i, k := range t.SamplesB {
			if i < 5 {
				line("  +", k)
			}
		}
		for i, k := range t.Others {
			if i < 5 {
				line("  !", k+" (another UID)")
			}
		}
	}
	if same > 0 {
		line("=", fmt.Sprintf("%d types without a difference", same))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}
