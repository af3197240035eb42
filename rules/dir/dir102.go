package dir

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/provenance"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "DIR102", Name: "etcd-data-dir-not-in-kubeadm-config", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Kubeadm:    true,
	Doc: analyze.Doc{
		Title: "etcd's live data directory is not the one kubeadm remembers",
		Why: "kubeadm upgrade writes the etcd manifest anew from kubeadm-config and copies the directory named there to " +
			"/etc/kubernetes/tmp first. If a restore or an edit moved the data only in the manifest, the next upgrade starts etcd on the " +
			"remembered directory: old data, an empty new cluster, or an abort when it does not exist.",
		Fix: "Before any kubeadm upgrade, make the two agree: write the directory etcd really uses into etcd.local.dataDir of the " +
			"kubeadm-config ConfigMap (one value for all nodes), or move the data back to the remembered path; then archive the forgotten directory.",
		Links: []string{"https://github.com/kubernetes/kubeadm/issues/3044"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests, running.Config},
	Wants: []analyze.Need{etcddir.OnNode, provenance.OfNode},
	Run:   dataDirMismatch,
})

func dataDirMismatch(p *analyze.Pass) error {
	m, _ := staticpod.Manifests.In(p)
	cfg, _ := running.Config.In(p)
	if cfg.External() {
		return p.NotApplicable("kubeadm-config names an external etcd")
	}
	pod := m.Component(staticpod.Etcd)
	if pod == nil {
		return p.NotApplicable("no etcd manifest on this node")
	}
	dd, ok := pod.Setting("data-dir")
	if !ok {
		return p.NotApplicable("etcd is given no data directory (DIR101)")
	}
	mount := pod.Resolve(pod.Main(), dd.Value)
	if mount.Kind != staticpod.Host {
		return p.NotApplicable("the data directory is not on a hostPath (DIR101)")
	}
	live, want := mount.HostPath, cfg.DataDir()
	if live == want || sameDirectory(p.Node(), live, want) {
		return nil
	}
	sev, what := report.Medium, ""
	dirs, err := etcddir.OnNode.Try(p, p.Node())
	remembered := dirs.At(want)
	switch {
	case err != nil || remembered == nil:
	case remembered.Err == nil && remembered.DB != nil:
		sev = report.Critical
		what = fmt.Sprintf("; %s still holds a member (%s), so the next upgrade starts etcd on that data", want, bundle.FormatBytes(remembered.Bytes()))
	case bundle.IsAbsent(remembered.Err):
		sev = report.Critical
		what = fmt.Sprintf("; %s does not exist, so the next upgrade stops when it backs the directory up", want)
	}
	if p.Target() != "" && sev == report.Medium {
		sev = report.High
	}
	evidence := []analyze.Evidence{
		analyze.See(mount.VolumeRef, "hostPath: "+live),
		analyze.Expect(cfg.Ref("/etcd/local/dataDir"), "dataDir: "+want),
		analyze.Context(dd.Ref, dd.Text()),
	}
	if live := dirs.At(live); live != nil && live.DB != nil {
		evidence = append(evidence, analyze.Context(live.DB.Ref(), sizeAndTime(p, live.DB)))
	}
	if remembered != nil && remembered.DB != nil {
		evidence = append(evidence, analyze.Context(remembered.DB.Ref(), sizeAndTime(p, remembered.DB)))
	}
	p.Report(analyze.Finding{
		Subject:  "etcd data directory",
		Severity: sev,
		Message:  fmt.Sprintf("etcd uses %s on the host, kubeadm-config says %s%s", live, want, what),
		Evidence: evidence,
		Fix: []report.Step{
			{Text: "Do not run kubeadm upgrade on any node before this is settled."},
			{Text: fmt.Sprintf("Set etcd.local.dataDir to %s in kubeadm-config (the same path on every control-plane node).", live), Command: "kubectl -n kube-system edit configmap kubeadm-config"},
			{Text: "Check what kubeadm would write: --data-dir, mountPath and hostPath of the rendered etcd manifest.", Command: "kubeadm init phase etcd local --dry-run --config full.yaml"},
			{Text: fmt.Sprintf("Archive %s off the node, so that nothing can start etcd on it.", want)},
		},
	})
	return nil
}

// sameDirectory reports whether two host paths lead to one directory through
// symbolic links.
func sameDirectory(n *bundle.Node, a, b string) bool {
	fa, err := n.Stat(a)
	if err != nil {
		return false
	}
	fb, err := n.Stat(b)
	return err == nil && fa.Resolved == fb.Resolved
}
