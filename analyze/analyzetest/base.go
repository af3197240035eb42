package analyzetest

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

//go:embed all:base
var baseFS embed.FS

// A machine is one node of a base tree.
type machine struct{ Name, IP string }

var machines = []machine{{"cp1", "10.0.0.11"}, {"cp2", "10.0.0.12"}, {"cp3", "10.0.0.13"}}

// Base returns a healthy kubeadm tree of Kubernetes 1.34 as files by input
// path: "single" is one node, "ha" three under nodes/, "external" one node
// with etcd elsewhere. Certificates are placeholders until a generator makes
// them.
func Base(name string) (map[string][]byte, error) {
	out := map[string][]byte{}
	switch name {
	case "single":
		return out, render(out, "", "node", machines[:1], machines[0], false)
	case "external":
		return out, render(out, "", "node", machines[:1], machines[0], true)
	case "ha":
		for _, m := range machines {
			if err := render(out, "nodes/"+m.Name, "node", machines, m, false); err != nil {
				return nil, err
			}
			delete(out, "nodes/"+m.Name+"/kubeadm-config.yaml")
		}
		tmp := map[string][]byte{}
		if err := render(tmp, "", "node", machines, machines[0], false); err != nil {
			return nil, err
		}
		out["kubeadm-config.yaml"] = tmp["kubeadm-config.yaml"]
		return out, nil
	}
	return nil, fmt.Errorf("no base %q", name)
}

func render(out map[string][]byte, prefix, dir string, all []machine, m machine, external bool) error {
	root := "base/" + dir
	var initial []string
	for _, x := range all {
		initial = append(initial, x.Name+"=https://"+x.IP+":2380")
	}
	data := struct {
		machine
		Initial  string
		External bool
		HA       bool
	}{m, strings.Join(initial, ","), external, len(all) > 1}
	return fs.WalkDir(baseFS, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := baseFS.ReadFile(p)
		if err != nil {
			return err
		}
		tm, err := template.New(p).Parse(string(b))
		if err != nil {
			return err
		}
		var buf bytes.Buffer
		if err := tm.Execute(&buf, data); err != nil {
			return err
		}
		if len(bytes.TrimSpace(buf.Bytes())) == 0 {
			return nil
		}
		out[path.Join(prefix, strings.TrimPrefix(p, root+"/"))] = buf.Bytes()
		return nil
	})
}
