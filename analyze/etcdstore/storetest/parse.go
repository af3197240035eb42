package storetest

import (
	"fmt"
	"strconv"
	"strings"
)

// A line is one instruction of a spec.
type line struct {
	n    int // number in the spec
	verb string
	args []string          // words without "="
	opts map[string]string // words with it
	body string            // YAML of an object
}

func parse(spec string) ([]line, error) {
	var out []line
	rows := strings.Split(spec, "\n")
	for i := 0; i < len(rows); i++ {
		text := strings.TrimSpace(rows[i])
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		l := line{n: i + 1, opts: map[string]string{}}
		for j, w := range strings.Fields(text) {
			k, v, ok := strings.Cut(w, "=")
			switch {
			case j == 0:
				l.verb = w
			case ok && !strings.HasPrefix(w, "/"):
				l.opts[k] = v
			default:
				l.args = append(l.args, w)
			}
		}
		if l.verb == "object" {
			var b strings.Builder
			for i++; ; i++ {
				if i >= len(rows) {
					return nil, fmt.Errorf("line %d: object without end", l.n)
				}
				if strings.TrimSpace(rows[i]) == "end" {
					break
				}
				b.WriteString(rows[i] + "\n")
			}
			l.body = b.String()
		}
		out = append(out, l)
	}
	return out, nil
}

func (l line) arg(i int) string {
	if i < len(l.args) {
		return l.args[i]
	}
	return ""
}

// number returns an option as a number, def when it is not given.
func (l line) number(name string, def int64) (int64, error) {
	v, ok := l.opts[name]
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseInt(v, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%s=%s is no number", name, v)
	}
	return n, nil
}

func ids(list string) ([]uint64, error) {
	var out []uint64
	for _, w := range strings.Split(list, ",") {
		if w == "" {
			continue
		}
		id, err := strconv.ParseUint(w, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no hexadecimal id", w)
		}
		out = append(out, id)
	}
	return out, nil
}
