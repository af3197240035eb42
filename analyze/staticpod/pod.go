package staticpod

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/bundle"
)

// A Pod is a decoded static pod with the places of its values.
type Pod struct {
	corev1.Pod
	Flags []Flag // of all containers, in order
	Env   []Env

	entry *Entry
}

// A Flag is one command-line flag of a container.
type Flag struct {
	Container int    // index of the container
	Name      string // without dashes
	Value     string
	Bare      bool       // given without a value
	Ref       bundle.Ref // the line it stands on
}

// Text is the flag as it would stand on a command line.
func (f Flag) Text() string {
	if f.Bare {
		return "--" + f.Name
	}
	return "--" + f.Name + "=" + f.Value
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

// An Env is one environment variable with a literal value.
type Env struct {
	Container   int
	Name, Value string
	Ref         bundle.Ref
}

// File is the manifest the pod was read from.
func (p *Pod) File() *bundle.File { return p.entry.File }

// Ref points at a value of the manifest.
func (p *Pod) Ref(pointer string) bundle.Ref { return p.entry.Doc.Ref(pointer) }

// Component names the control-plane component the pod runs, from its name,
// label or command; "" for any other pod.
func (p *Pod) Component() string {
	is := func(s string) string {
		for _, c := range Components() {
			if s == c {
				return c
			}
		}
		return ""
	}
	if c := is(p.Name); c != "" {
		return c
	}
	if p.Namespace == "kube-system" {
		if c := is(p.Labels["component"]); c != "" {
			return c
		}
	}
	for _, c := range p.Spec.Containers {
		if len(c.Command) > 0 {
			if c := is(path.Base(c.Command[0])); c != "" {
				return c
			}
		}
	}
	return ""
}

// Main is the index of the component's own container.
func (p *Pod) Main() int {
	want := p.Component()
	for i, c := range p.Spec.Containers {
		if c.Name == want {
			return i
		}
	}
	return 0
}

// parse fills Flags and Env.
func (p *Pod) parse() {
	for i, c := range p.Spec.Containers {
		base := fmt.Sprintf("/spec/containers/%d", i)
		var words []word
		for j, s := range c.Command {
			words = append(words, word{s, fmt.Sprintf("%s/command/%d", base, j)})
		}
		for j, s := range c.Args {
			words = append(words, word{s, fmt.Sprintf("%s/args/%d", base, j)})
		}
		p.Flags = append(p.Flags, p.flags(i, words)...)
		for j, e := range c.Env {
			p.Env = append(p.Env, Env{i, e.Name, e.Value, p.Ref(fmt.Sprintf("%s/env/%d", base, j))})
		}
	}
}

type word struct{ text, pointer string }

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
		f := Flag{Container: container, Name: name, Value: value, Bare: !has, Ref: p.Ref(words[i].pointer)}
		if !has && i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "-") {
			i++
			f.Value, f.Bare = words[i].text, false
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
			return Flag{Container: e.Container, Name: name, Value: e.Value, Ref: e.Ref}, true
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

// ImageTag is the tag of the component's image, "" when it has none.
func (p *Pod) ImageTag() string {
	img := p.Spec.Containers[p.Main()].Image
	img, _, _ = strings.Cut(img, "@")
	i := strings.LastIndexByte(img, ':')
	if i < 0 || strings.Contains(img[i:], "/") {
		return ""
	}
	return img[i+1:]
}

// ImageRef points at the component's image.
func (p *Pod) ImageRef() bundle.Ref {
	return p.Ref(fmt.Sprintf("/spec/containers/%d/image", p.Main()))
}

func itoa(i int) string { return strconv.Itoa(i) }
