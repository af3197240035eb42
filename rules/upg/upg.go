// Package upg holds the rules about upgrades: version skew, what the target
// release no longer accepts or decodes, etcd on the way, gates of kubeadm
// (family UPG).
package upg

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

// Rules is the family.
var Rules analyze.Catalogue

// target is the release of a pre-upgrade audit.
func target(p *analyze.Pass) (releases.Version, bool) {
	v, ok := releases.Parse(p.Target())
	return v, ok && v.Major == 1
}

// tabled is the minor to look up for a target: its own, or the newest of the
// tables, which then is a lower bound and recorded as a gap.
func tabled(p *analyze.Pass, v releases.Version) int {
	n := releases.NewestMinor()
	if v.Minor <= n {
		return v.Minor
	}
	p.Unknown(bundle.KindFiles, nil, bundle.Undecided, fmt.Sprintf("the tables end at Kubernetes 1.%d; what 1.%d changes is not known", n, v.Minor))
	return n
}

// current is the release the cluster runs: the newest API server, else what
// kubeadm-config says.
func current(p *analyze.Pass, cfg *kubeadm.Config) (v releases.Version, ref bundle.Ref, ok bool) {
	for _, n := range p.Nodes() {
		r, err := running.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		if a := r.Of(staticpod.APIServer); a != nil && (!ok || v.Less(a.Version)) {
			v, ref, ok = a.Version, a.Ref, true
		}
	}
	if !ok && cfg != nil {
		if v, ok = releases.Parse(cfg.KubernetesVersion); ok {
			ref = cfg.Ref("/kubernetesVersion")
		}
	}
	return v, ref, ok
}

func steps(s ...report.Step) []report.Step { return s }
