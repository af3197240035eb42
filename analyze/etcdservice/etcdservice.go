// Package etcdservice holds the settings of an etcd that a node runs as a
// service instead of a static pod: its unit, drop-ins and environment files.
package etcdservice

import (
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

const maxBytes = 1 << 20 // of one unit or environment file

// A Service is an etcd service as its files configure it.
type Service struct {
	Unit  *bundle.File // nil when only environment files are there
	flags []staticpod.Flag
	env   []staticpod.Flag
}

// Setting returns a setting by its flag's name: flags count before the
// environment, the last of a name before earlier ones.
func (s *Service) Setting(name string) (staticpod.Flag, bool) {
	for _, list := range [][]staticpod.Flag{s.flags, s.env} {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Name == name {
				return list[i], true
			}
		}
	}
	return staticpod.Flag{}, false
}

// files are where distributions, kubespray and etcd's own examples put the
// configuration of the service.
var files = []string{
	"/etc/etcd.env", "/etc/etcd/etcd.env", "/etc/etcd/etcd.conf", "/etc/default/etcd", "/etc/sysconfig/etcd",
	"/usr/lib/systemd/system/etcd.service", "/lib/systemd/system/etcd.service", "/etc/systemd/system/etcd.service",
}

// OnNode is the etcd service of a node, nil when no file speaks of one: most
// nodes have none.
var OnNode = &analyze.Fact[*Service]{
	Name:  "etcdservice.service",
	Kinds: []bundle.Kind{bundle.KindHost},
	Compute: func(c *analyze.Ctx) (*Service, error) {
		n := c.Node()
		s := &Service{}
		found := false
		var list []*bundle.File
		for _, p := range files {
			if f, err := n.Stat(p); err == nil && f.Mode.IsRegular() {
				list = append(list, f)
			}
		}
		list = append(list, n.Glob("/etc/systemd/system/etcd.service.d/*.conf")...)
		for _, f := range list {
			b, err := f.Bytes(maxBytes)
			if err != nil {
				return nil, err
			}
			found = true
			if strings.HasSuffix(f.Origin, ".service") {
				s.Unit = f
			}
			s.read(f, string(b))
		}
		if !found {
			return nil, nil
		}
		return s, nil
	},
}

// read takes NAME=value lines, Environment= and ExecStart= of a file.
func (s *Service) read(f *bundle.File, text string) {
	command := false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			command = false
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.TrimSpace(strings.TrimPrefix(key, "export "))
		switch {
		case command:
			s.words(f, i+1, line)
		case key == "ExecStart":
			s.words(f, i+1, value)
			command = true
		case key == "Environment":
			for _, w := range strings.Fields(strings.NewReplacer(`"`, " ", `'`, " ").Replace(value)) {
				name, v, _ := strings.Cut(w, "=")
				s.variable(f, i+1, name, v)
			}
		default:
			s.variable(f, i+1, key, strings.Trim(strings.TrimSpace(value), `"'`))
		}
		command = command && strings.HasSuffix(line, `\`)
	}
}

func (s *Service) variable(f *bundle.File, line int, name, value string) {
	if short, ok := strings.CutPrefix(name, "ETCD_"); ok {
		flag := strings.ToLower(strings.ReplaceAll(short, "_", "-"))
		s.env = append(s.env, staticpod.EnvFlag(flag, name, value, f.Line(line)))
	}
}

// words reads flags of one line of a command.
func (s *Service) words(f *bundle.File, line int, text string) {
	ws := strings.Fields(strings.TrimSuffix(text, `\`))
	for i := 0; i < len(ws); i++ {
		name, ok := strings.CutPrefix(ws[i], "-")
		if !ok {
			continue
		}
		name, value, has := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if !has && i+1 < len(ws) && !strings.HasPrefix(ws[i+1], "-") {
			i++
			value, has = ws[i], true
		}
		s.flags = append(s.flags, staticpod.Flag{Name: name, Value: strings.Trim(value, `"'`), Bare: !has, Dynamic: strings.Contains(value, "$"), Ref: f.Line(line)})
	}
}
