package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"coldplane/analyze"
	"coldplane/rules"
)

func newRules(e *env) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "rules", Short: "List the rules", Args: cobra.NoArgs,
		Long: "List the rules: id, gravest severity, title. -o markdown prints the whole catalogue as a document.",
		RunE: func(*cobra.Command, []string) error {
			all := rules.All()
			switch format {
			case "text":
				for _, r := range all {
					if _, err := fmt.Fprintf(e.out, "%s  %-8s  %s\n", r.ID, r.Severities[0], r.Doc.Title); err != nil {
						return err
					}
				}
				return nil
			case "json":
				return writeJSON(e, ruleDocs(all))
			case "markdown":
				_, err := fmt.Fprint(e.out, rules.Markdown(all))
				return err
			}
			return usagef("one of text, json, markdown", "unknown output format %q", format)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", "output format: text, json, markdown")
	return c
}

// ruleDoc is a rule's documentation as JSON.
type ruleDoc struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Title      string      `json:"title"`
	Why        string      `json:"why"`
	Fix        string      `json:"fix"`
	Severities []string    `json:"severities"`
	Links      []string    `json:"links,omitempty"`
	Since      string      `json:"since"`
	Params     []ruleParam `json:"params,omitempty"`
}

type ruleParam struct {
	Name    string  `json:"name"`
	Default float64 `json:"default"`
	Unit    string  `json:"unit"`
	Source  string  `json:"source,omitempty"`
}

func ruleDocs(rs []*analyze.Rule) []ruleDoc {
	out := []ruleDoc{}
	for _, r := range rs {
		d := ruleDoc{ID: r.ID, Name: r.Name, Title: r.Doc.Title, Why: r.Doc.Why, Fix: r.Doc.Fix, Links: r.Doc.Links, Since: r.Doc.Since}
		for _, s := range r.Severities {
			d.Severities = append(d.Severities, string(s))
		}
		for _, p := range r.Params {
			d.Params = append(d.Params, ruleParam{p.Name, p.Default, p.Unit, p.Source})
		}
		out = append(out, d)
	}
	return out
}

func writeJSON(e *env, v any) error {
	enc := json.NewEncoder(e.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func newExplain(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "explain RULE", Short: "Print a rule's documentation", Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, r := range rules.All() {
				ids = append(ids, r.ID+"\t"+r.Doc.Title)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			r := rules.Find(args[0])
			if r == nil {
				var near []string
				for _, x := range rules.All() {
					if strings.HasPrefix(x.ID, strings.ToUpper(args[0][:min(3, len(args[0]))])) {
						near = append(near, x.ID)
					}
				}
				hint := "coldplane rules lists them"
				if len(near) > 0 {
					hint = "there are " + strings.Join(near, ", ")
				}
				return usagef(hint, "no rule %q", args[0])
			}
			_, err := fmt.Fprint(e.out, rules.Explain(r))
			return err
		},
	}
}
