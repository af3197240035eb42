package staticpod

import (
	"fmt"
	"strconv"
	"strings"

	"coldplane/bundle"
)

// A Flag is one command-line flag of a container.
type Flag struct {
	Container int    // index of the container
	Name      string // without dashes
	Value     string
	Bare      bool       // given without a value
	Dynamic   bool       // holds a $(VARIABLE) whose value is not in the manifest
	Ref       bundle.Ref // the line it stands on

	env string // the environment variable it was taken from, if any
}

// Text is the flag as it stands in the manifest.
func (f Flag) Text() string {
	if f.env != "" {
		return f.env + "=" + f.Value
	}
	if f.Bare {
		return "--" + f.Name
	}
	return "--" + f.Name + "=" + f.Value
}

// EnvFlag is the setting that an environment variable gives.
func EnvFlag(name, env, value string, ref bundle.Ref) Flag {
	return Flag{Name: name, Value: value, Dynamic: strings.Contains(value, "$("), Ref: ref, env: env}
}

// List splits a comma-separated value.
func (f Flag) List() []string {
	var out []string
	for s := range strings.SplitSeq(f.Value, ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// An Env is one environment variable of a container.
type Env struct {
	Container   int
	Name, Value string
	Dynamic     bool // the value comes from elsewhere (valueFrom) or holds such a variable
	Ref         bundle.Ref
}

// parse fills Flags and Env.
func (p *Pod) parse() {
	for i, c := range p.Spec.Containers {
		base := fmt.Sprintf("/spec/containers/%d", i)
		vars := map[string]Env{}
		for j, e := range c.Env {
			v := Env{Container: i, Name: e.Name, Dynamic: e.ValueFrom != nil, Ref: p.Ref(fmt.Sprintf("%s/env/%d", base, j))}
			if !v.Dynamic {
				v.Value, v.Dynamic = expand(e.Value, vars, len(c.EnvFrom) > 0)
			}
			vars[e.Name] = v
			p.Env = append(p.Env, v)
		}
		var words []word
		add := func(s, pointer string) {
			text, dynamic := expand(s, vars, len(c.EnvFrom) > 0)
			words = append(words, word{text, dynamic, pointer})
		}
		for j, s := range c.Command {
			add(s, fmt.Sprintf("%s/command/%d", base, j))
		}
		for j, s := range c.Args {
			add(s, fmt.Sprintf("%s/args/%d", base, j))
		}
		p.Flags = append(p.Flags, p.flags(i, words)...)
	}
}

type word struct {
	text    string
	dynamic bool
	pointer string
}

// expand replaces $(NAME) as the kubelet does: "$$" is a dollar sign, and a
// name that is not defined stays as written. dynamic is true when a variable's
// value is not in the manifest; more says that there are variables not named here.
func expand(s string, vars map[string]Env, more bool) (text string, dynamic bool) {
	if !strings.Contains(s, "$") {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch end := strings.IndexByte(s[i:], ')'); {
		case s[i+1] == '$':
			b.WriteByte('$')
			i++
		case s[i+1] == '(' && end > 0:
			v, ok := vars[s[i+2:i+end]]
			switch {
			case ok && !v.Dynamic:
				b.WriteString(v.Value)
			default:
				b.WriteString(s[i : i+end+1])
				dynamic = dynamic || ok || more
			}
			i += end
		default:
			b.WriteByte('$')
		}
	}
	return b.String(), dynamic
}

// flags reads --name=value, --name value and the single-dash forms that Go's
// own flag package (etcd) accepts.
func (p *Pod) flags(container int, words []word) []Flag {
	var out []Flag
	for i := 0; i < len(words); i++ {
		w := words[i].text
		name, ok := strings.CutPrefix(w, "--")
		if !ok {
			if name, ok = strings.CutPrefix(w, "-"); !ok || len(name) < 2 || name[0] < 'a' || name[0] > 'z' {
				continue
			}
		}
		if name == "" {
			break // everything after "--" is not a flag
		}
		name, value, has := strings.Cut(name, "=")
		f := Flag{Container: container, Name: name, Value: value, Bare: !has, Dynamic: words[i].dynamic, Ref: p.Ref(words[i].pointer)}
		if !has && i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "-") {
			i++
			f.Value, f.Bare, f.Dynamic = words[i].text, false, words[i].dynamic
		}
		out = append(out, f)
	}
	return out
}

// Flag returns the last flag of a name in the component's container: the one
// that counts for a flag given twice.
func (p *Pod) Flag(name string) (Flag, bool) {
	m := p.Main()
	for i := len(p.Flags) - 1; i >= 0; i-- {
		if f := p.Flags[i]; f.Name == name && f.Container == m {
			return f, true
		}
	}
	return Flag{}, false
}

// FlagAll returns every flag of a name in the component's container.
func (p *Pod) FlagAll(name string) []Flag {
	var out []Flag
	for _, f := range p.Flags {
		if f.Name == name && f.Container == p.Main() {
			out = append(out, f)
		}
	}
	return out
}

// Setting is Flag for etcd, whose ETCD_* environment counts where the flag is
// not given.
func (p *Pod) Setting(name string) (Flag, bool) {
	if f, ok := p.Flag(name); ok {
		return f, true
	}
	if p.Component() != Etcd {
		return Flag{}, false
	}
	env := "ETCD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	for i := len(p.Env) - 1; i >= 0; i-- {
		if e := p.Env[i]; e.Name == env && e.Container == p.Main() {
			return Flag{Container: e.Container, Name: name, Value: e.Value, Dynamic: e.Dynamic, Ref: e.Ref, env: e.Name}, true
		}
	}
	return Flag{}, false
}

// True reports whether a boolean flag is on.
func (f Flag) True() bool {
	if f.Bare {
		return true
	}
	v, err := strconv.ParseBool(f.Value)
	return err == nil && v
}
