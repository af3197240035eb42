// Package nod holds the rules about the node, its kernel and its runtime (family NOD).
package nod

import (
	"fmt"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/logs"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
)

// Rules is the family.
var Rules analyze.Catalogue

// etcdPath is the directory etcd writes to on this host, and where that was
// read; "" when etcd does not run here or that is not known.
func etcdPath(p *analyze.Pass) (string, bundle.Ref) {
	if m, err := staticpod.Manifests.Try(p, p.Node()); err == nil {
		if pod := m.Component(staticpod.Etcd); pod != nil {
			if dir, _ := etcddir.HostPaths(pod); dir != "" {
				ref := pod.File().Ref()
				if f, ok := pod.Setting("data-dir"); ok {
					ref = f.Ref
				}
				return dir, ref
			}
		}
	}
	return "", bundle.Ref{}
}

// controlPlane reports whether the node runs any part of the control plane, as
// far as its manifests tell.
func controlPlane(p *analyze.Pass) bool {
	m, err := staticpod.Manifests.Try(p, p.Node())
	return err == nil && (m.ControlPlane() || m.Component(staticpod.Etcd) != nil)
}

// seeAll makes evidence of up to n occurrences, the newest last.
func seeAll(hits []logs.At, n int) []analyze.Evidence {
	var out []analyze.Evidence
	for i, h := range hits {
		if i < n-1 || i == len(hits)-1 {
			out = append(out, analyze.Context(h.Ref(), h.Excerpt()))
		}
	}
	return out
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " at " + clock(t)
}

// full is how much of a file system is used, of what programs may use.
func full(m hostfacts.Mount) float64 {
	if m.Size <= 0 {
		return 0
	}
	return 1 - float64(m.Available)/float64(m.Size)
}

func percent(v float64) string { return fmt.Sprintf("%.0f %%", v*100) }
