package analyze

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"coldplane/report"
)

// A Rule is one documented question over facts. It describes itself: explain,
// the catalogue page, SARIF and the reports print this value and nothing else.
type Rule struct {
	ID    string // "DIR102"; never reused
	Name  string // "etcd-data-dir-not-in-kubeadm-config"; kebab case, fixed when first merged
	Scope Scope  // PerNode: asked once per node; PerCluster: once

	Severities []report.Severity // those the rule may give, gravest first
	Doc        Doc
	Params     []Param
	Needs      []Need // facts without which Run is not called
	Wants      []Need // used when present, listed as gaps when not
	Run        func(*Pass) error

	// Symptom rules never head a report when another finding explains them.
	Symptom bool
	// Latent rules (expiring soon, drift, hygiene) cannot be the cause of an
	// incident that is going on.
	Latent bool
	// Kubeadm rules are about paths and files kubeadm lays out; they do not
	// apply to other distributions.
	Kubeadm bool
	// Evidence rules are about the input itself: they are asked whatever it is.
	Evidence bool
	// Audit rules are asked only in a pre-upgrade audit (--target).
	Audit bool
}

// A Doc is a rule's documentation.
type Doc struct {
	Title string // one line: what is wrong
	Why   string // why it matters, in sentences
	Fix   string // what to do, in order; what must not be done first
	Links []string
	Since string // version that introduced the rule
}

// A Param is a named threshold, settable with --set RULE.NAME=VALUE.
type Param struct {
	Name    string
	Default float64
	Unit    string // "days", "bytes", "ratio", "per hour", ...
	Source  string // where the default comes from
}

// Family is the three letters of the rule's id.
func (r *Rule) Family() string { return r.ID[:min(3, len(r.ID))] }

// A Catalogue collects the rules of one family.
type Catalogue struct{ rules []*Rule }

// Add registers a rule and returns it, for use in a variable declaration.
func (c *Catalogue) Add(r *Rule) *Rule {
	c.rules = append(c.rules, r)
	return r
}

// List returns the rules sorted by id.
func (c *Catalogue) List() []*Rule {
	out := slices.Clone(c.rules)
	slices.SortFunc(out, func(a, b *Rule) int { return strings.Compare(a.ID, b.ID) })
	return out
}

var (
	ruleID   = regexp.MustCompile(`^[A-Z]{3}[0-9]{3}$`)
	ruleName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)
)

// Validate checks a catalogue: undocumented rules, duplicate ids or names,
// cyclic or unnamed needs are errors.
func Validate(rules []*Rule) error {
	var errs []string
	bad := func(format string, args ...any) { errs = append(errs, fmt.Sprintf(format, args...)) }
	ids, names := map[string]bool{}, map[string]bool{}
	facts := map[string]Need{}
	for _, r := range rules {
		switch {
		case !ruleID.MatchString(r.ID):
			bad("%q is no rule id", r.ID)
		case ids[r.ID]:
			bad("%s: duplicate id", r.ID)
		case names[r.Name] || !ruleName.MatchString(r.Name):
			bad("%s: name %q is not unique kebab case", r.ID, r.Name)
		case r.Doc.Title == "" || r.Doc.Why == "" || r.Doc.Fix == "" || r.Doc.Since == "":
			bad("%s: title, why, fix and since must be documented", r.ID)
		case len(r.Severities) == 0:
			bad("%s: no severities", r.ID)
		case r.Run == nil:
			bad("%s: no Run", r.ID)
		}
		ids[r.ID], names[r.Name] = true, true
		seen := map[string]bool{}
		for _, p := range r.Params {
			if p.Name == "" || p.Unit == "" || seen[p.Name] {
				bad("%s: parameter %q needs a unique name and a unit", r.ID, p.Name)
			}
			seen[p.Name] = true
		}
		for _, n := range slices.Concat(r.Needs, r.Wants) {
			if err := checkNeed(n, facts, nil); err != nil {
				bad("%s: %v", r.ID, err)
			}
			if r.Scope == PerCluster {
				continue
			}
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("rule catalogue: %s", strings.Join(errs, "; "))
	}
	return nil
}

func checkNeed(n Need, facts map[string]Need, path []string) error {
	in := n.info()
	if in.name == "" {
		return fmt.Errorf("a fact without a name")
	}
	if slices.Contains(path, in.name) {
		return fmt.Errorf("cyclic need %s", strings.Join(append(path, in.name), " → "))
	}
	if old, ok := facts[in.name]; ok {
		if old != n {
			return fmt.Errorf("two facts are named %s", in.name)
		}
		return nil
	}
	for _, m := range in.needs {
		if err := checkNeed(m, facts, append(path, in.name)); err != nil {
			return err
		}
	}
	facts[in.name] = n
	return nil
}
