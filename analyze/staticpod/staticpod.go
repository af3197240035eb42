// Package staticpod holds facts about a node's static pods: every entry of
// the manifest directory as the kubelet would see it, its flags with their
// lines, and where on the host each path in a flag really lies.
package staticpod

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/yamlfile"
	"coldplane/bundle"
	"coldplane/bundle/decode/yamldoc"
)

// Names of kubeadm's control-plane components.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Etcd              = "etcd"
)

// Components lists the control-plane components in the order reports use.
func Components() []string { return []string{APIServer, ControllerManager, Scheduler, Etcd} }

// A Dir is a static-pod directory.
type Dir struct {
	Node    *bundle.Node
	Path    string     // on the node
	From    bundle.Ref // what names the directory; zero: kubeadm's default
	Entries []*Entry   // all of them, sorted by name as the kubelet sorts
}

// An Entry is one name in the static-pod directory.
type Entry struct {
	File    *bundle.File
	Ignored string // why the kubelet does not read it: "hidden", "directory", "not a regular file"; "" when it does
	Err     error  // *bundle.MissingError: unreadable or not a Pod; nil when Pod is set
	Pod     *Pod
	Kind    string // apiVersion and kind found, when it is YAML of something else
	Doc     *yamlfile.Doc
	Dups    []yamldoc.Duplicate
	MoreDoc bool // further documents follow; the kubelet reads the first only
}

// Manifests is the static-pod directory of a node.
var Manifests = &analyze.Fact[*Dir]{
	Name:  "staticpod.manifests",
	Kinds: []bundle.Kind{bundle.KindManifests},
	Needs: []analyze.Need{kubelet.StaticPods},
	Compute: func(c *analyze.Ctx) (*Dir, error) {
		sp, err := kubelet.StaticPods.Get(c)
		if err != nil {
			return nil, err
		}
		if sp.Path == "" {
			sp.Path = kubelet.DefaultStaticPods
		}
		files, err := c.Node().ReadDir(sp.Path)
		if err != nil && sp.Path != kubelet.DefaultStaticPods {
			if more, err2 := c.Node().ReadDir(kubelet.DefaultStaticPods); err2 == nil {
				files, err = more, nil
				sp = kubelet.StaticPodPath{Path: kubelet.DefaultStaticPods}
			}
		}
		if err != nil {
			return nil, err
		}
		d := &Dir{Node: c.Node(), Path: sp.Path, From: sp.Ref}
		for _, f := range files {
			d.Entries = append(d.Entries, readEntry(c.Node(), f))
		}
		return d, nil
	},
}

// readEntry treats one entry as the kubelet's file source does: names with a
// leading dot are skipped, directories are not entered, any extension is read.
func readEntry(n *bundle.Node, f *bundle.File) *Entry {
	e := &Entry{File: f}
	if strings.HasPrefix(f.Name(), ".") {
		e.Ignored = "hidden"
		return e
	}
	if t, err := n.Stat(f.Origin); err != nil {
		e.Err = err
		return e
	} else if t.Mode.IsDir() {
		e.Ignored = "directory"
		return e
	} else if !t.Mode.IsRegular() {
		e.Ignored = "not a regular file"
		return e
	}
	y, err := yamlfile.Read(f)
	if y != nil && len(y.Docs) > 0 {
		e.Doc, e.Dups, e.MoreDoc = y.Docs[0], y.Duplicates, len(y.Docs) > 1
		e.Kind = strings.TrimPrefix(e.Doc.String("/apiVersion")+" "+e.Doc.String("/kind"), " ")
	}
	if err != nil {
		if e.Doc == nil {
			e.Err = err
			return e
		}
		// The first document is whole: a fault behind it does not concern the kubelet.
		e.MoreDoc = true
	}
	e.Pod, e.Err = decodePod(f, e)
	return e
}

func decodePod(f *bundle.File, e *Entry) (*Pod, error) {
	fault := func(line int, msg string) error {
		return yamlfile.Fault(f, &yamldoc.Error{Class: yamldoc.Shape, Line: line, Msg: msg})
	}
	switch {
	case e.Doc == nil || e.Doc.Root == nil:
		return nil, fault(0, "an empty file")
	case e.Doc.String("/kind") != "Pod":
		k := e.Doc.String("/kind")
		if k == "" {
			return nil, fault(e.Doc.Line("/kind"), "no kind; a static pod needs kind: Pod")
		}
		return nil, fault(e.Doc.Line("/kind"), "kind is "+k+", not Pod")
	case e.Doc.String("/apiVersion") != "v1":
		return nil, fault(e.Doc.Line("/apiVersion"), "apiVersion is "+quoted(e.Doc.String("/apiVersion"))+", not v1")
	}
	p := &Pod{entry: e}
	if err := e.Doc.Decode(&p.Pod); err != nil {
		return nil, yamlfile.Fault(f, err)
	}
	switch {
	case p.Name == "":
		return nil, fault(e.Doc.Line("/metadata/name"), "metadata.name is empty")
	case len(p.Spec.Containers) == 0:
		return nil, fault(e.Doc.Line("/spec/containers"), "spec.containers is empty")
	}
	for i, c := range p.Spec.Containers {
		if c.Name == "" || c.Image == "" {
			return nil, fault(e.Doc.Line("/spec/containers/"+itoa(i)), "a container without a name or an image")
		}
	}
	if p.Namespace == "" {
		p.Namespace = corev1.NamespaceDefault
	}
	p.parse()
	return p, nil
}

func quoted(s string) string {
	if s == "" {
		return "missing"
	}
	return `"` + s + `"`
}

// Pods returns the pods the kubelet would run, one per namespace and name:
// its store is keyed by them, so the last file by name wins.
func (d *Dir) Pods() []*Pod {
	var out []*Pod
	for _, e := range d.Entries {
		if e.Pod == nil {
			continue
		}
		out = slices.DeleteFunc(out, func(p *Pod) bool { return p.Namespace == e.Pod.Namespace && p.Name == e.Pod.Name })
		out = append(out, e.Pod)
	}
	return out
}

// Component returns the pod of a control-plane component, or nil. Where
// several give it, the one named most plainly counts, then the one whose file
// has the component's own name, then the last, as for the kubelet.
func (d *Dir) Component(name string) *Pod {
	var found *Pod
	best := -1
	for _, e := range d.Entries {
		if e.Pod == nil {
			continue
		}
		c, rank := e.Pod.identify()
		if c != name {
			continue
		}
		rank *= 2
		if path.Base(e.File.Origin) == name+".yaml" {
			rank++
		}
		if rank >= best {
			found, best = e.Pod, rank
		}
	}
	return found
}

// Broken returns the entry that should hold a component by its file name and
// holds no Pod the kubelet could run, or nil.
func (d *Dir) Broken(component string) *Entry {
	for _, e := range d.Entries {
		if e.Err == nil || e.Ignored != "" {
			continue
		}
		base := strings.TrimSuffix(e.File.Name(), path.Ext(e.File.Name()))
		if base == component || e.Doc != nil && e.Doc.String("/kind") == "Pod" && e.Doc.String("/metadata/name") == component {
			return e
		}
	}
	return nil
}

// ControlPlane reports whether the directory holds any control-plane pod
// other than etcd.
func (d *Dir) ControlPlane() bool {
	for _, c := range []string{APIServer, ControllerManager, Scheduler} {
		if d.Component(c) != nil {
			return true
		}
	}
	return false
}
