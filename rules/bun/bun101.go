package bun

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/host"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "BUN101", Name: "evidence-missing", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Medium, report.Info},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Parts of the evidence are missing, so some questions stay open",
		Why:   "A rule without its evidence answers unknown, which is not pass. Before an upgrade an open question about the store or the manifests is itself a reason to wait.",
		Fix:   "Collect what the message names, with the command given, and analyze again with the same inputs added.",
		Links: []string{"https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-upgrade/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{staticpod.Manifests, kubelet.File, running.Config, cri.OnNode, logs.OnNode, etcddb.OnNode, host.Machine},
	Run:   evidenceMissing,
})

func evidenceMissing(p *analyze.Pass) error {
	n := p.Node()
	if n.StoreOnly {
		return p.NotApplicable("a database alone was given")
	}
	have := 0
	var missing []bundle.Kind
	grave := false
	check := func(k bundle.Kind, err error, important bool) {
		if err == nil {
			have++
			return
		}
		missing = append(missing, k)
		grave = grave || important
	}
	m, err := staticpod.Manifests.Try(p, n)
	check(bundle.KindManifests, err, true)
	_, err = running.Config.Try(p, nil)
	check(bundle.KindKubeadmConfig, err, true)
	_, err = kubelet.File.Try(p, n)
	check(bundle.KindKubelet, err, false)
	_, err = cri.OnNode.Try(p, n)
	check(bundle.KindCRI, err, false)
	l, err := logs.OnNode.Try(p, n)
	check(bundle.KindLogs, err, false)
	if err == nil && !l.Has(signature.Kubelet) {
		missing = append(missing, bundle.KindJournal)
	}
	if m == nil || m.Component(staticpod.Etcd) != nil {
		_, err = etcddb.OnNode.Try(p, n)
		check(bundle.KindStore, err, true)
	}
	_, err = host.Machine.Try(p, n)
	check(bundle.KindHost, err, false)
	if have == 0 {
		p.Unknown(bundle.KindFiles, n, bundle.NotCollected, "nothing of a control plane was found on this node")
		return nil
	}
	if len(missing) == 0 {
		return nil
	}
	sev := report.Info
	if grave && p.Target() != "" {
		sev = report.Medium
	}
	var names []string
	var fix []report.Step
	for _, k := range missing {
		info := k.Info()
		names = append(names, info.What)
		fix = append(fix, report.Step{Text: "Collect " + info.What + ".", Command: info.Command})
	}
	p.Report(analyze.Finding{Subject: "evidence", Severity: sev, Message: fmt.Sprintf("%d kinds of evidence are missing: %s", len(missing), strings.Join(names, "; ")),
		Evidence: []analyze.Evidence{analyze.See(n.Ref("/etc/kubernetes"), "not in the input: "+join(missing))}, Fix: fix})
	return nil
}

func join(kinds []bundle.Kind) string {
	var out []string
	for _, k := range kinds {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}
