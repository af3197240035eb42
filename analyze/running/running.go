// Package running joins what the evidence says about versions: of the
// components on a node, of the nodes as the API server last saw them, and the
// ClusterConfiguration wherever it is. It knows no rule.
package running

import (
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/analyze/releases"
	"coldplane/analyze/staticpod"
	"coldplane/analyze/yamlfile"
	"coldplane/bundle"
)

// Kubelet is the component name of the kubelet.
const Kubelet = "kubelet"

// How a version is known.
const (
	ByImage   = "image tag"
	ByLog     = "start line in the log"
	ByNode    = "Node object"
	ByAssumed = "assumed from the API server on this node"
)

// A Version is the version of one component of a node.
type Version struct {
	Component string
	Node      string
	Text      string // as written
	releases.Version
	How    string
	Vendor bool // the image does not come from the project's registry or a copy of it
	Ref    bundle.Ref
}

// Certain reports whether the version was read, not assumed.
func (v *Version) Certain() bool { return v.How != ByAssumed }

// A Node is the versions of one node by component.
type Node struct {
	Node     *bundle.Node
	Versions map[string]*Version
}

// Of returns the version of a component, or nil.
func (n *Node) Of(component string) *Version {
	if n == nil {
		return nil
	}
	return n.Versions[component]
}

// OnNode is the versions of a node's components. The kubelet's comes from its
// log, else from the Node object, else it is assumed to be the API server's.
var OnNode = &analyze.Fact[*Node]{
	Name:  "running.node",
	Kinds: []bundle.Kind{bundle.KindManifests, bundle.KindJournal},
	Needs: []analyze.Need{staticpod.Manifests, logs.OnNode, Nodes},
	Compute: func(c *analyze.Ctx) (*Node, error) {
		out := &Node{Node: c.Node(), Versions: map[string]*Version{}}
		m, err := staticpod.Manifests.Get(c)
		if err == nil {
			for _, name := range staticpod.Components() {
				if v := fromPod(c.Node(), m.Component(name), name); v != nil {
					out.Versions[name] = v
				}
			}
		}
		if v := kubeletVersion(c, out); v != nil {
			out.Versions[Kubelet] = v
		}
		if len(out.Versions) == 0 {
			if err == nil {
				err = analyze.Missing(bundle.KindManifests, c.Node().Name, bundle.NotCollected, "no image tag and no log names a version")
			}
			return nil, err
		}
		return out, nil
	},
}

func fromPod(n *bundle.Node, p *staticpod.Pod, name string) *Version {
	if p == nil {
		return nil
	}
	v, ok := releases.Parse(p.ImageTag())
	if !ok {
		return nil
	}
	return &Version{Component: name, Node: n.Name, Text: p.ImageTag(), Version: v, How: ByImage, Vendor: vendor(p.Spec.Containers[p.Main()].Image, name), Ref: p.ImageRef()}
}

// vendor reports whether an image is something other than the project's own or
// a mirror of it: mirrors keep the component's name and a plain tag.
func vendor(image, component string) bool {
	repo, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	tag, _, _ = strings.Cut(tag, "@")
	return repo != component || strings.ContainsAny(strings.TrimPrefix(tag, "v"), "+_") || strings.Contains(strings.ToLower(tag), "eks") || strings.Contains(tag, "rke")
}

func kubeletVersion(c *analyze.Ctx, n *Node) *Version {
	if l, err := logs.OnNode.Get(c); err == nil {
		if at, ok := l.Last(signature.Kubelet, "X28"); ok {
			if v, ok := releases.Parse(at.Value("kubeletVersion")); ok {
				return &Version{Component: Kubelet, Node: n.Node.Name, Text: at.Value("kubeletVersion"), Version: v, How: ByLog, Ref: at.Ref()}
			}
		}
	}
	if ns, err := Nodes.Get(c); err == nil {
		if o := ns.Named(n.Node.Name); o != nil && !o.Kubelet.IsZero() {
			return &Version{Component: Kubelet, Node: n.Node.Name, Text: o.KubeletText, Version: o.Kubelet, How: ByNode, Ref: o.Ref}
		}
	}
	if a := n.Versions[staticpod.APIServer]; a != nil {
		v := *a
		v.Component, v.How = Kubelet, ByAssumed
		return &v
	}
	return nil
}

// An Object is a Node object in the parts that upgrades ask for.
type Object struct {
	Name               string
	Ref                bundle.Ref
	Kubelet, KubeProxy releases.Version
	KubeletText        string
	Runtime            string // "containerd://1.7.2"
	Ready              corev1.ConditionStatus
	ReadyReason        string
	Heartbeat          time.Time
	Unschedulable      bool
	ControlPlane       bool
	Object             *corev1.Node
}

// Objects are the Node objects, by name.
type Objects []*Object

// Named returns the object of a name, or nil.
func (os Objects) Named(name string) *Object {
	i := slices.IndexFunc(os, func(o *Object) bool { return o.Name == name })
	if i < 0 || name == "" {
		return nil
	}
	return os[i]
}

// Nodes are the Node objects of the cluster's database.
var Nodes = &analyze.Fact[Objects]{
	Name:  "running.nodes",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindStore},
	Needs: []analyze.Need{objects.Cluster},
	Compute: func(c *analyze.Ctx) (Objects, error) {
		set, err := objects.Cluster.Get(c)
		if err != nil {
			return nil, err
		}
		l := set.Nodes()
		if len(l.Items) == 0 {
			return nil, analyze.Missing(bundle.KindStore, "", bundle.NotCollected, "no Node object in the database")
		}
		var out Objects
		for _, it := range l.Items {
			n := it.Value
			o := &Object{Name: n.Name, Ref: it.Ref, KubeletText: n.Status.NodeInfo.KubeletVersion, Runtime: n.Status.NodeInfo.ContainerRuntimeVersion,
				Unschedulable: n.Spec.Unschedulable, Object: n, Ready: corev1.ConditionUnknown}
			o.Kubelet, _ = releases.Parse(n.Status.NodeInfo.KubeletVersion)
			o.KubeProxy, _ = releases.Parse(n.Status.NodeInfo.KubeProxyVersion) //nolint:staticcheck // the only record up to 1.32
			for _, r := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
				if _, ok := n.Labels[r]; ok {
					o.ControlPlane = true
				}
			}
			for _, cond := range n.Status.Conditions {
				if cond.Type == corev1.NodeReady {
					o.Ready, o.ReadyReason, o.Heartbeat = cond.Status, cond.Reason, cond.LastHeartbeatTime.UTC()
				}
			}
			out = append(out, o)
		}
		slices.SortFunc(out, func(a, b *Object) int { return strings.Compare(a.Name, b.Name) })
		return out, nil
	},
}

// Config is the ClusterConfiguration: a file's, else the ConfigMap in the
// cluster's database.
var Config = &analyze.Fact[*kubeadm.Config]{
	Name:  "running.config",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindKubeadmConfig},
	Needs: []analyze.Need{kubeadm.Cluster, objects.Cluster},
	Compute: func(c *analyze.Ctx) (*kubeadm.Config, error) {
		cfg, err := kubeadm.Cluster.Get(c)
		if err == nil || bundle.ReasonOf(err) != bundle.NotCollected {
			return cfg, err
		}
		d, derr := stored(c, "kubeadm-config", "ClusterConfiguration")
		if derr != nil {
			return nil, err
		}
		cfg, derr = kubeadm.FromDoc(d)
		if derr != nil || cfg == nil {
			return nil, analyze.Missing(bundle.KindKubeadmConfig, "", bundle.Damaged, "the kubeadm-config ConfigMap in the database holds no ClusterConfiguration")
		}
		cfg.Source = "store"
		return cfg, nil
	},
}

// KubeletConfig is the kubelet-config ConfigMap in the cluster's database,
// which kubeadm writes to every node on upgrade.
var KubeletConfig = &analyze.Fact[*yamlfile.Doc]{
	Name:  "running.kubelet-config",
	Scope: analyze.PerCluster,
	Kinds: []bundle.Kind{bundle.KindStore},
	Needs: []analyze.Need{objects.Cluster},
	Compute: func(c *analyze.Ctx) (*yamlfile.Doc, error) {
		return stored(c, "kubelet-config", "kubelet")
	},
}

// stored parses one key of a ConfigMap of kube-system.
func stored(c *analyze.Ctx, name, key string) (*yamlfile.Doc, error) {
	set, err := objects.Cluster.Get(c)
	if err != nil {
		return nil, err
	}
	cm, err := set.ConfigMap("kube-system", name)
	if err != nil {
		return nil, err
	}
	docs, err := yamlfile.FromBytes(cm.Ref, []byte(cm.Value.Data[key]))
	if err == nil && len(docs) == 0 {
		err = errors.New("empty")
	}
	if err != nil {
		return nil, analyze.Missing(bundle.KindStore, "", bundle.Damaged, name+": "+err.Error())
	}
	return docs[0], nil
}

// Target is the version of a pre-upgrade audit.
func Target(text string) (releases.Version, bool) { return releases.Parse(text) }
