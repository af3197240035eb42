package pkitest

import (
	"fmt"
	"strings"
	"time"
)

// Made is when the certificates of a tree are made unless its spec says
// otherwise: two months before the default as-of of rule scripts.
var Made = time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

type spec struct {
	at           time.Time
	life, caLife time.Duration
	keys         string
	changes      []change
}

type change struct {
	node, name string
	fields     map[string]string
}

// takeSpec removes the spec from the files and reads it.
func takeSpec(files map[string][]byte) (*spec, error) {
	s := &spec{at: Made, life: 365 * day, caLife: 3650 * day, keys: "index"}
	for name, data := range files {
		if !strings.HasSuffix(name, "!pki") {
			continue
		}
		delete(files, name)
		for i, l := range strings.Split(string(data), "\n") {
			if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
				continue
			}
			if err := s.line(l); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
		}
	}
	return s, nil
}

func (s *spec) line(l string) error {
	verb, rest, _ := strings.Cut(l, " ")
	rest = strings.TrimSpace(rest)
	var err error
	switch verb {
	case "at":
		s.at, err = time.Parse(time.RFC3339, rest)
		return err
	case "life":
		s.life, err = days(rest)
		return err
	case "ca-life":
		s.caLife, err = days(rest)
		return err
	case "keys":
		s.keys = rest
		return nil
	}
	c := change{name: verb, fields: map[string]string{}}
	if n, name, ok := strings.Cut(verb, ":"); ok {
		c.node, c.name = n, name
	}
	for _, w := range strings.Fields(rest) {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			return fmt.Errorf("%q is not FIELD=VALUE", w)
		}
		c.fields[k] = v
	}
	s.changes = append(s.changes, c)
	return nil
}

func days(s string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		d, err := time.ParseDuration(n + "h")
		return d * 24, err
	}
	return time.ParseDuration(s)
}

// of gathers the changes of one name on one node; later lines win.
func (s *spec) of(node, name string) map[string]string {
	out := map[string]string{}
	for _, c := range s.changes {
		if c.name == name && (c.node == "" || c.node == node) {
			for k, v := range c.fields {
				out[k] = v
			}
		}
	}
	return out
}

// parse reads a time, or a day.
func parse(s string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, s)
}
