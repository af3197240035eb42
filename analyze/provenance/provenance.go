// Package provenance says which attributes of a node's files are those of the
// node. Version control and plain copies write files anew: their modes, owners
// and times are those of the copy and prove nothing about the node.
package provenance

import (
	"io/fs"
	"time"

	"coldplane/analyze"
	"coldplane/bundle"
)

// Attributes says what may be believed on one node. The strings say why not,
// and are empty where the attribute is the node's own.
type Attributes struct {
	Modes  string
	Owners string
	Times  string
}

// Why a kind of attribute is no evidence.
const (
	sameMode  = "every file has the same mode, as after version control or a plain copy"
	noOwner   = "the owners are not those of the node (no file belongs to root)"
	newer     = "every file is newer than the collection, as after version control or a plain copy"
	oneMoment = "every file was written within the same minutes, as by a plain copy"
	tooFew    = "too few files to tell a copy from the node"
)

// copyTakes is how long a plain copy of a node's small files may take. kubeadm
// needs seconds for a whole init; such a tree says nothing about ages either.
const copyTakes = 5 * time.Minute

// minFiles is how many files a judgement needs.
const minFiles = 3

// patterns are files that kubeadm, the kubelet and etcd write, never the
// collection. kubeadm gives them at least two modes and etcd several times.
var patterns = []string{
	"/etc/kubernetes/*", "/etc/kubernetes/manifests/*", "/etc/kubernetes/pki/*", "/etc/kubernetes/pki/etcd/*",
	"/etc/ssl/etcd/*", "/etc/ssl/etcd/ssl/*", "/var/lib/kubelet/*", "/var/lib/kubelet/pki/*",
	"/var/lib/etcd/member/snap/*", "/var/lib/etcd/member/wal/*", "/etc/containerd/*",
}

// OfNode judges a node's files. It never fails.
var OfNode = &analyze.Fact[Attributes]{
	Name:  "provenance.node",
	Kinds: []bundle.Kind{bundle.KindFiles},
	Compute: func(c *analyze.Ctx) (Attributes, error) {
		n := c.Node()
		if n.Live || n.Complete() || carriesMetadata(n) {
			return Attributes{}, nil
		}
		var files []*bundle.File
		for _, p := range patterns {
			for _, f := range n.Glob(p) {
				if f.Mode.IsRegular() && f.Refused == "" {
					files = append(files, f)
				}
			}
		}
		return judge(files, c.AsOf()), nil
	},
}

// carriesMetadata reports whether every input is a bundle that records modes,
// owners and times beside the contents.
func carriesMetadata(n *bundle.Node) bool {
	ins := n.Inputs()
	for _, in := range ins {
		if in.Format != bundle.FormatBundle {
			return false
		}
	}
	return len(ins) > 0
}

func judge(files []*bundle.File, asOf analyze.AsOf) Attributes {
	a := Attributes{Modes: sameMode, Owners: noOwner, Times: newer}
	if len(files) < minFiles {
		return Attributes{tooFew, tooFew, tooFew}
	}
	// Version control keeps the executable bit and nothing else.
	const kept = fs.FileMode(0o666)
	first, last := files[0].ModTime, files[0].ModTime
	for _, f := range files {
		if f.Mode&kept != files[0].Mode&kept {
			a.Modes = ""
		}
		if f.UID == 0 {
			a.Owners = ""
		}
		if f.ModTime.Before(first) {
			first = f.ModTime
		}
		if f.ModTime.After(last) {
			last = f.ModTime
		}
	}
	known := asOf.Source == "given" || asOf.Source == "collection"
	switch {
	case last.Sub(first) < copyTakes:
		a.Times = oneMoment
	case !known || first.Before(asOf.Time):
		a.Times = ""
	}
	return a
}
