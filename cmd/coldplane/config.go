package main

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"coldplane/rules"
)

// A config is coldplane.yaml: parameters and waivers.
type config struct {
	Params  map[string]map[string]float64 `json:"params"` // rule -> parameter -> value
	Rules   []string                      `json:"rules"`  // selectors, as --rules
	Waivers []struct {
		Rule    string `json:"rule"`
		Node    string `json:"node"`
		Subject string `json:"subject"`
		Reason  string `json:"reason"`
		Expires string `json:"expires"` // a day, YYYY-MM-DD; not valid from then on
	} `json:"waivers"`
}

const configBytes = 1 << 20

// readConfig reads a configuration file strictly.
func readConfig(path string) (*config, error) {
	c := &config{}
	if path == "" {
		return c, nil
	}
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef("check the path given to --config", "%s: does not exist", path)
	case err != nil:
		return nil, usagef("check the path given to --config", "%s", err.Error())
	case !fi.Mode().IsRegular() || fi.Size() > configBytes:
		return nil, usagef("a configuration is a small YAML file", "%s: not a regular file of at most 1 MiB", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("check the path given to --config", "%s", err.Error())
	}
	if err := yaml.UnmarshalStrict(b, c); err != nil {
		return nil, usagef("keys are params, rules, waivers", "%s: %s", path, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "))
	}
	for rule, ps := range c.Params {
		for name := range ps {
			if err := checkParam(rule, name); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// waivers turns the file's waivers into rules.Waiver.
func (c *config) waivers(path string) ([]rules.Waiver, error) {
	var out []rules.Waiver
	for i, w := range c.Waivers {
		if rules.Find(w.Rule) == nil {
			return nil, usagef("coldplane rules lists them", "%s: waiver %d: no rule %q", path, i+1, w.Rule)
		}
		if strings.TrimSpace(w.Reason) == "" {
			return nil, usagef("say why, for whoever reads the report next", "%s: waiver %d (%s): reason is empty", path, i+1, w.Rule)
		}
		x := rules.Waiver{Rule: rules.Find(w.Rule).ID, Node: w.Node, Subject: w.Subject, Reason: w.Reason}
		if w.Expires != "" {
			t, err := time.Parse(time.DateOnly, w.Expires)
			if err != nil {
				return nil, usagef("write it as 2026-12-31", "%s: waiver %d (%s): expires %q is no day", path, i+1, w.Rule, w.Expires)
			}
			x.Expires = t
		}
		out = append(out, x)
	}
	return out, nil
}

// setParams applies --set RULE.NAME=VALUE over the file's parameters.
func (c *config) setParams(sets []string) error {
	if c.Params == nil {
		c.Params = map[string]map[string]float64{}
	}
	for _, s := range sets {
		key, value, ok := strings.Cut(s, "=")
		rule, name, ok2 := strings.Cut(key, ".")
		if !ok || !ok2 {
			return usagef("for example --set CAP102.high=0.85", "--set %q is not RULE.NAME=VALUE", s)
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return usagef("for example --set CAP102.high=0.85", "--set %s: %q is no number", key, value)
		}
		if err := checkParam(rule, name); err != nil {
			return err
		}
		if c.Params[rule] == nil {
			c.Params[rule] = map[string]float64{}
		}
		c.Params[rule][name] = v
	}
	return nil
}

func checkParam(rule, name string) error {
	r := rules.Find(rule)
	if r == nil || r.ID != rule {
		return usagef("coldplane rules lists them", "no rule %q", rule)
	}
	var names []string
	for _, p := range r.Params {
		if p.Name == name {
			return nil
		}
		names = append(names, p.Name)
	}
	hint := rule + " has no parameters"
	if len(names) > 0 {
		hint = rule + " has " + strings.Join(names, ", ")
	}
	return usagef(hint, "rule %s has no parameter %q", rule, name)
}
