package facts

import (
	"cmp"
	"fmt"
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/host"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/analyze/releases"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

// maxKubelets bounds the rows of kubelets; versions beyond are in the objects.
const maxKubelets = 200

// versions is what runs where, and how that is known.
func versions(e *analyze.Engine) []report.Version {
	var out []report.Version
	add := func(node, component, version, source string, ref bundle.Ref) {
		if version == "" || slices.ContainsFunc(out, func(v report.Version) bool {
			return v.Node == node && v.Component == component && v.Version == version && v.Source == source
		}) {
			return
		}
		out = append(out, report.Version{Node: node, Component: component, Version: version, Source: source, Path: ref.Path})
	}
	api := releases.Version{} // the newest API server, which kubelets are held against
	for _, n := range e.Set().Nodes {
		c := e.Ctx(n)
		if d, err := staticpod.Manifests.Get(c); err == nil {
			for _, name := range staticpod.Components() {
				if p := d.Component(name); p != nil {
					add(n.Name, name, p.ImageTag(), "manifest", p.ImageRef())
					if v, ok := releases.Parse(p.ImageTag()); ok && name == staticpod.APIServer && api.Less(v) {
						api = v
					}
				}
			}
		}
		if l, err := logs.OnNode.Get(c); err == nil {
			if at, ok := l.Last(signature.Etcd, "E52"); ok {
				add(n.Name, staticpod.Etcd, cmp.Or(at.Value("etcd-version"), at.Value("etcdversion")), "log", at.Ref())
			}
		}
		if dbs, err := etcddb.OnNode.Get(c); err == nil {
			if d := dbs.Live(); d != nil && d.Store != nil {
				add(n.Name, "etcd cluster", d.Store.Meta.ClusterVersion, "etcd", d.Ref())
				add(n.Name, "etcd storage", d.Store.Meta.StorageVersion, "etcd", d.Ref())
			}
		}
		if v, err := cri.OnNode.Get(c); err == nil && v.Version != "" {
			add(n.Name, cmp.Or(v.Runtime, "container runtime"), v.Version, "runtime", bundle.Ref{})
		}
		if m, err := host.Machine.Get(c); err == nil {
			add(n.Name, "kernel", m.Kernel, "host", m.Ref)
		}
	}
	c := e.Ctx(nil)
	if cfg, err := kubeadm.Cluster.Get(c); err == nil {
		add("", "kubeadm-config", cfg.KubernetesVersion, "kubeadm-config", cfg.Ref(""))
	}
	if s, err := objects.Cluster.Get(c); err == nil {
		for i, o := range s.Nodes().Items {
			if i == maxKubelets {
				break
			}
			info := o.Value.Status.NodeInfo
			add(o.Value.Name, "kubelet", info.KubeletVersion, "kubelet node status", o.Ref)
			add(o.Value.Name, "container runtime", info.ContainerRuntimeVersion, "kubelet node status", o.Ref)
		}
	}
	for i := range out {
		v, ok := releases.Parse(out[i].Version)
		if ok && out[i].Component == "kubelet" && !api.IsZero() && v.Minor != api.Minor {
			out[i].Note = fmt.Sprintf("%d minor versions behind the API server", api.Minor-v.Minor)
			if v.Minor > api.Minor {
				out[i].Note = "newer than the API server, which is not supported"
			}
		}
	}
	slices.SortStableFunc(out, func(a, b report.Version) int { return cmp.Compare(a.Node, b.Node) })
	return out
}
