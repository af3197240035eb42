package kubeconfig

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// MaxFiles bounds how many kubeconfigs of a node are read.
const MaxFiles = 64

// A Use says which process was told to use a kubeconfig, and where.
type Use struct {
	Process string
	Path    string     // on the host
	Text    string     // the flag or mount as written
	Ref     bundle.Ref // its line
}

// A Node is the kubeconfigs of one node.
type Node struct {
	Configs []*Config // sorted by path
	Broken  []*Broken // files that should be kubeconfigs and cannot be read as such
	Uses    []Use     // in the order of the manifests
}

// Broken is a kubeconfig that cannot be read.
type Broken struct {
	Path string
	Err  error
}

// Get returns the kubeconfig at a path of the node, or nil.
func (n *Node) Get(p string) *Config {
	for _, c := range n.Configs {
		if c.File.Origin == p || c.File.Resolved == p {
			return c
		}
	}
	return nil
}

// Role returns the node's kubeconfig of a role, or nil.
func (n *Node) Role(r Role) *Config {
	for _, c := range n.Configs {
		if c.Role == r {
			return c
		}
	}
	return nil
}

// UsesOf returns who uses the kubeconfig at a path.
func (n *Node) UsesOf(p string) []Use {
	var out []Use
	for _, u := range n.Uses {
		if u.Path == p {
			out = append(out, u)
		}
	}
	return out
}

// Files are the kubeconfigs of a node: those kubeadm writes, copies in home
// directories, and whatever a flag or a mount of a static pod names.
var Files = &analyze.Fact[*Node]{
	Name:  "kubeconfig.files",
	Kinds: []bundle.Kind{bundle.KindKubeconfig},
	Needs: []analyze.Need{staticpod.Manifests, kubelet.CommandLine},
	Compute: func(c *analyze.Ctx) (*Node, error) {
		n := c.Node()
		out := &Node{}
		if d, err := staticpod.Manifests.Get(c); err == nil {
			out.Uses = fromPods(d)
		}
		if fs, err := kubelet.CommandLine.Get(c); err == nil {
			for _, f := range fs {
				if (f.Name == "kubeconfig" || f.Name == "bootstrap-kubeconfig") && path.IsAbs(f.Value) {
					out.Uses = append(out.Uses, Use{"kubelet", path.Clean(f.Value), "--" + f.Name + "=" + f.Value, f.Ref})
				}
			}
		}
		paths := []string{}
		for _, g := range []string{"/etc/kubernetes/*.conf", "/root/.kube/config", "/home/*/.kube/config"} {
			for _, f := range n.Glob(g) {
				paths = append(paths, f.Origin)
			}
		}
		named := map[string]bool{}
		for _, u := range out.Uses {
			paths, named[u.Path] = append(paths, u.Path), true
		}
		slices.Sort(paths)
		for _, p := range slices.Compact(paths) {
			if len(out.Configs) == MaxFiles {
				break
			}
			f, err := n.Stat(p)
			if err == nil {
				var cfg *Config
				if cfg, err = Read(f); err == nil {
					out.Configs = append(out.Configs, cfg)
					continue
				}
			}
			if r, _ := role(p); r != Other || named[p] {
				out.Broken = append(out.Broken, &Broken{p, err})
			}
		}
		if len(out.Configs) == 0 && len(out.Broken) == 0 {
			return nil, analyze.Missing(bundle.KindKubeconfig, n.Name, bundle.NotCollected, "")
		}
		return out, nil
	},
}

var kubeconfigFlags = []string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"}

// fromPods finds kubeconfigs in flags of the control plane's pods and in
// hostPath mounts of a single *.conf file of any static pod.
func fromPods(d *staticpod.Dir) []Use {
	var out []Use
	for _, p := range d.Pods() {
		name := p.Component()
		if name == "" {
			name = p.Name
		}
		for _, flag := range kubeconfigFlags {
			f, ok := p.Flag(flag)
			if !ok || !path.IsAbs(f.Value) {
				continue
			}
			host := path.Clean(f.Value)
			if m := p.Resolve(f.Container, f.Value); m.Kind == staticpod.Host {
				host = m.HostPath
			}
			out = append(out, Use{name, host, f.Text(), f.Ref})
		}
		if p.Component() != "" {
			continue
		}
		for i, v := range p.Spec.Volumes {
			if v.HostPath == nil {
				continue
			}
			host := path.Clean(v.HostPath.Path)
			if strings.HasPrefix(host, "/etc/kubernetes/") && strings.HasSuffix(host, ".conf") || strings.HasSuffix(host, "/.kube/config") {
				out = append(out, Use{name, host, "hostPath " + host, p.Ref("/spec/volumes/" + itoa(i) + "/hostPath/path")})
			}
		}
	}
	return out
}

func itoa(i int) string { return strconv.Itoa(i) }
