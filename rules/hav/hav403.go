package hav

import (
	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/objects"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV403", Name: "single-control-plane", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Medium, report.Low, report.Info},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The cluster has one control-plane node",
		Why:   "When it dies, nothing is scheduled, replaced or changed any more; pods that run go on. Without a copy of etcd's data and of /etc/kubernetes/pki elsewhere, the cluster is gone with its disk.",
		Fix:   "Take snapshots of etcd and copies of /etc/kubernetes/pki off the node, and try a restore. For availability plan three control-plane nodes behind a stable endpoint.",
		Links: []string{"https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/ha-topology/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: []analyze.Need{objects.Cluster, running.Config, etcddb.OnNode},
	Run:   single,
})

func single(p *analyze.Pass) error {
	count, known := 0, false
	var ref bundle.Ref
	excerpt := ""
	if set, err := objects.Cluster.Try(p, nil); err == nil {
		for _, n := range set.Nodes().Items {
			known = true
			if _, ok := n.Value.Labels["node-role.kubernetes.io/control-plane"]; ok {
				count++
				ref, excerpt = n.Ref, "the only control-plane node: "+n.Value.Name
			}
		}
	}
	with := 0
	for _, n := range p.Nodes() {
		if m, err := staticpod.Manifests.Try(p, n); err == nil {
			if pod := m.Component(staticpod.APIServer); pod != nil {
				with++
				if !known {
					ref, excerpt = pod.File().Ref(), "API server of "+n.Name
					if f, ok := m.Component(staticpod.APIServer).Setting("etcd-servers"); ok && len(f.List()) > 1 {
						return nil // several members: more nodes than those given
					}
					if e := m.Component(staticpod.Etcd); e != nil {
						if f, ok := e.Setting("initial-cluster"); ok && len(f.List()) > 1 {
							return nil
						}
					}
				}
			}
		}
	}
	switch {
	case known && count != 1 || !known && with != 1:
		if !known && with == 0 {
			return p.NotApplicable("no API server manifest in the input")
		}
		return nil
	case !known && len(p.Nodes()) == 1:
		// One node was given; whether there are more, nobody said.
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "how many control-plane nodes there are (no Node objects)")
		return nil
	}
	sev, msg := report.Info, "one control-plane node: if it dies, scheduling and self-healing stop, running pods go on"
	if cfg, err := running.Config.Try(p, nil); err == nil && cfg.ControlPlaneEndpoint == "" {
		sev = report.Low
		msg += "; a second one cannot be added without a control-plane endpoint (HAV101)"
		saved := false
		for _, n := range p.All() {
			if dbs, err := etcddb.OnNode.Try(p, n); err == nil {
				for _, d := range dbs {
					saved = saved || d.Saved()
				}
			}
		}
		if !saved && p.Target() != "" {
			sev = report.Medium
			msg += "; no snapshot of etcd was found"
		}
	}
	p.Report(analyze.Finding{Subject: "control plane", Severity: sev, Message: msg, Evidence: []analyze.Evidence{analyze.See(ref, excerpt)}})
	return nil
}
