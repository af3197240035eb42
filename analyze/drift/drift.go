// Package drift compares a node's static pods with what kubeadm would write
// from the ClusterConfiguration: edits made by hand that the next upgrade
// undoes, and what an upgrade to a target rewrites. It knows no rule.
package drift

import (
	"net/netip"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/kubeadm/render"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// Annotations by which kubeadm finds its endpoints.
const (
	apiServerEndpoint = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"
	etcdClientURLs    = "kubeadm.kubernetes.io/etcd.advertise-client-urls"
)

// A Component is one manifest beside what kubeadm of its own minor would have
// written.
type Component struct {
	Name    string
	Pod     *staticpod.Pod
	Minor   int // of the kubeadm it was compared with
	Want    *corev1.Pod
	Edits   []render.Change
	Patched []*bundle.File // files of a patches directory for this component, which explain edits
	// Rewrites are the changes that an upgrade to the target makes, edits
	// included; nil without a target or when its defaults are not modelled.
	Rewrites []render.Change
	Target   *corev1.Pod
}

// A Node is the comparison of one node.
type Node struct {
	Config     *kubeadm.Config
	Components []*Component
	Unknown    []string // components whose minor is not modelled, with the reason
}

// Of returns the comparison of a component, or nil.
func (n *Node) Of(name string) *Component {
	for _, c := range n.Components {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// patchDirs are where people keep the directory given to --patches.
var patchDirs = []string{
	"/etc/kubernetes/patches", "/etc/kubernetes/kubeadm-patches", "/etc/kubernetes/kubeadm/patches", "/etc/kubeadm/patches",
	"/etc/kubernetes/patch", "/var/lib/kubeadm/patches", "/root/patches", "/root/kubeadm-patches",
}

// OnNode compares a node's manifests.
var OnNode = &analyze.Fact[*Node]{
	Name:  "drift.node",
	Kinds: []bundle.Kind{bundle.KindManifests, bundle.KindKubeadmConfig},
	Needs: []analyze.Need{staticpod.Manifests, running.Config},
	Compute: func(c *analyze.Ctx) (*Node, error) {
		m, err := staticpod.Manifests.Get(c)
		if err != nil {
			return nil, err
		}
		cfg, err := running.Config.Get(c)
		if err != nil {
			return nil, err
		}
		out := &Node{Config: cfg}
		minor := minorOf(m.Component(staticpod.APIServer))
		for _, name := range staticpod.Components() {
			pod := m.Component(name)
			if pod == nil || name == staticpod.Etcd && cfg.External() {
				continue
			}
			own := minorOf(pod)
			if name == staticpod.Etcd {
				own = minor
			}
			switch {
			case own == 0:
				out.Unknown = append(out.Unknown, name+": the image tag names no version")
				continue
			case !render.Known(own):
				out.Unknown = append(out.Unknown, name+": kubeadm 1."+strconv.Itoa(own)+" is not modelled")
				continue
			}
			h := host(c.Node(), m)
			d := compare(pod, name, own, cfg, h)
			for _, dir := range patchDirs {
				for _, f := range c.Node().Glob(path.Join(dir, name+"*")) {
					if f.Mode.IsRegular() {
						d.Patched = append(d.Patched, f)
					}
				}
			}
			if t, ok := releases.Parse(c.Target()); ok && t.Major == 1 && render.Known(t.Minor) {
				d.Target = render.Pods(t.Minor, "v"+t.String(), &cfg.ClusterConfiguration, h)[name]
				if d.Target != nil {
					d.Rewrites = render.Compare(&pod.Pod, pod.Main(), flagsOf(pod), d.Target)
				}
			}
			out.Components = append(out.Components, d)
		}
		return out, nil
	},
}

func minorOf(p *staticpod.Pod) int {
	if p == nil {
		return 0
	}
	v, ok := releases.Parse(p.ImageTag())
	if !ok || v.Major != 1 {
		return 0
	}
	return v.Minor
}

// host reads what kubeadm knows of the node from the annotations kubeadm
// itself reads, else from the flags.
func host(n *bundle.Node, m *staticpod.Dir) render.Host {
	h := render.Host{Name: n.Name, BindPort: 6443}
	if p := m.Component(staticpod.APIServer); p != nil {
		addr := p.Annotations[apiServerEndpoint]
		if ap, err := netip.ParseAddrPort(addr); err == nil {
			h.AdvertiseAddress, h.BindPort = ap.Addr().String(), int32(ap.Port())
		} else {
			if f, ok := p.Flag("advertise-address"); ok {
				h.AdvertiseAddress = f.Value
			}
			if f, ok := p.Flag("secure-port"); ok {
				if n, err := strconv.ParseInt(f.Value, 10, 32); err == nil {
					h.BindPort = int32(n)
				}
			}
		}
	}
	if p := m.Component(staticpod.Etcd); p != nil {
		if f, ok := p.Setting("name"); ok {
			h.Name = f.Value
		}
		if h.AdvertiseAddress == "" {
			u := p.Annotations[etcdClientURLs]
			if f, ok := p.Setting("advertise-client-urls"); u == "" && ok {
				u = f.Value
			}
			h.AdvertiseAddress = endpoint.Host(u)
		}
	}
	if p := m.Component(staticpod.ControllerManager); p != nil {
		// kubeadm gives an empty signing key when the CA's key is elsewhere.
		if f, ok := p.Flag("cluster-signing-key-file"); ok && f.Value == "" {
			h.ExternalCA = true
		}
	}
	return h
}

func flagsOf(p *staticpod.Pod) []render.Flag {
	var out []render.Flag
	for _, f := range p.Flags {
		if f.Container != p.Main() {
			continue
		}
		v := f.Value
		if f.Bare {
			v = "true"
		}
		out = append(out, render.Flag{Name: f.Name, Value: v, Pointer: f.Ref.Pointer})
	}
	return out
}

// compare compares with kubeadm of the manifest's own minor. An etcd manifest
// may be older than the API server beside it: kubeadm leaves it alone when the
// version of etcd does not change.
func compare(pod *staticpod.Pod, name string, minor int, cfg *kubeadm.Config, h render.Host) *Component {
	out := &Component{Name: name, Pod: pod, Minor: minor}
	var others []*corev1.Pod
	for m := render.OldestMinor; m <= render.NewestMinor; m++ {
		if m != minor {
			others = append(others, render.Pods(m, "", &cfg.ClusterConfiguration, h)[name])
		}
	}
	oldest := minor
	if name == staticpod.Etcd {
		oldest = max(minor-4, render.OldestMinor)
	}
	for m := minor; m >= oldest; m-- {
		want := render.Pods(m, "", &cfg.ClusterConfiguration, h)[name]
		if want == nil {
			continue
		}
		edits := render.Compare(&pod.Pod, pod.Main(), flagsOf(pod), want, others...)
		if out.Want == nil || len(edits) < len(out.Edits) {
			out.Minor, out.Want, out.Edits = m, want, edits
		}
	}
	return out
}

// Skip reports whether a change is asked about by a rule of its own: the data
// directory (DIR102).
func Skip(name string, c render.Change) bool {
	return name == staticpod.Etcd && (c.Item == "--data-dir" || c.Kind == render.MountChange && !strings.Contains(c.Item, "pki"))
}
