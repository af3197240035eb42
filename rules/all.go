package rules

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/rules/adm"
	"coldplane/rules/bun"
	"coldplane/rules/cap"
	"coldplane/rules/dir"
	"coldplane/rules/ext"
	"coldplane/rules/hav"
	"coldplane/rules/nod"
	"coldplane/rules/pki"
	"coldplane/rules/qrm"
	"coldplane/rules/rst"
	"coldplane/rules/sta"
	"coldplane/rules/upg"
)

// All returns every rule, sorted by id.
func All() []*analyze.Rule {
	all := slices.Concat(
		adm.Rules.List(),
		bun.Rules.List(),
		cap.Rules.List(),
		dir.Rules.List(),
		ext.Rules.List(),
		hav.Rules.List(),
		nod.Rules.List(),
		pki.Rules.List(),
		qrm.Rules.List(),
		rst.Rules.List(),
		sta.Rules.List(),
		upg.Rules.List(),
	)
	slices.SortFunc(all, func(a, b *analyze.Rule) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Find returns the rule of an id or a name, or nil.
func Find(s string) *analyze.Rule {
	for _, r := range All() {
		if strings.EqualFold(r.ID, s) || r.Name == s {
			return r
		}
	}
	return nil
}

// Select picks rules by a list of id prefixes; a leading "-" leaves out.
// Without an including prefix all are picked first. An unknown prefix is an
// error.
func Select(all []*analyze.Rule, selectors []string) ([]*analyze.Rule, error) {
	in, out := []string{}, []string{}
	for _, s := range selectors {
		s = strings.ToUpper(strings.TrimSpace(s))
		if s == "" {
			continue
		}
		p := strings.TrimPrefix(s, "-")
		if !slices.ContainsFunc(all, func(r *analyze.Rule) bool { return strings.HasPrefix(r.ID, p) }) {
			return nil, fmt.Errorf("no rule begins with %q", p)
		}
		if p != s {
			out = append(out, p)
		} else {
			in = append(in, p)
		}
	}
	match := func(list []string, r *analyze.Rule) bool {
		return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(r.ID, p) })
	}
	var picked []*analyze.Rule
	for _, r := range all {
		if (len(in) == 0 || match(in, r)) && !match(out, r) {
			picked = append(picked, r)
		}
	}
	return picked, nil
}
