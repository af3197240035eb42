package upg

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG403", Name: "etcd-flags-target-rejects", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.Critical, report.High},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "etcd of the target rejects a flag, or data of the v2 API is left",
		Why: "etcd ends at once when it is given a flag it does not know: 3.6 has no v2 API and no proxy, 3.7 none of the experimental- flags. kubeadm passes extraArgs on as they are. " +
			"Data written through the v2 API is not carried over: etcd 3.6 does not start on it.",
		Fix: "Replace each flag by its name without experimental- in etcd.local.extraArgs, or remove it, before the upgrade. Move data of the v2 API elsewhere, then check with etcdutl check v2store.",
		Links: []string{
			"https://etcd.io/docs/v3.6/upgrades/upgrade_3_6/", "https://etcd.io/docs/v3.7/upgrades/upgrade_3_7/",
		},
		Since: "v0.1",
	},
	Wants: []analyze.Need{running.Config, running.OnNode, staticpod.Manifests, etcdwal.OnNode},
	Run:   etcdRejects,
})

// kubeadmWrote are flags that kubeadm up to 1.35 wrote for etcd 3.5 by itself
// and renames on upgrade (cmd/kubeadm/app/phases/etcd/local.go).
var kubeadmWrote = map[string]bool{"experimental-initial-corrupt-check": true, "experimental-watch-progress-notify-interval": true}

func etcdRejects(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	cfg, err := running.Config.Try(p, nil)
	if err != nil {
		cfg = nil
	}
	if cfg != nil && cfg.External() {
		return p.NotApplicable("kubeadm does not upgrade an external etcd (EXT104)")
	}
	to, toText, _, ok := etcdAfter(p, t, cfg)
	if !ok {
		return nil
	}
	seen := cfg != nil
	if cfg != nil {
		for _, tok := range running.ConfigTokens(cfg) {
			etcdFlag(p, nil, tok, to, toText, "; kubeadm passes it on")
		}
	}
	for _, n := range p.Nodes() {
		if m, err := staticpod.Manifests.Try(p, n); err == nil && cfg == nil {
			if pod := m.Component(staticpod.Etcd); pod != nil {
				seen = true
				for _, tok := range running.PodTokens(pod) {
					if !kubeadmWrote[tok.Name] {
						etcdFlag(p, n, tok, to, toText, "")
					}
				}
			}
		}
		v2Data(p, n, to)
	}
	if !seen {
		p.Unknown(bundle.KindKubeadmConfig, nil, bundle.NotCollected, "no kubeadm-config and no manifest of etcd")
	}
	return nil
}

func etcdFlag(p *analyze.Pass, n *bundle.Node, t running.Token, to releases.Version, toText, more string) {
	if t.Component != staticpod.Etcd || t.Kind != running.FlagToken {
		return
	}
	r, refused, known := running.Refused(t, to.Minor)
	if !known {
		p.Unknown(bundle.KindKubeadmConfig, n, bundle.Undecided, fmt.Sprintf("the tables do not know the flags of etcd 3.%d", to.Minor))
		return
	}
	if !refused {
		return
	}
	fix := "Remove " + t.Name
	if bare := t.Name[min(len("experimental-"), len(t.Name)):]; len(bare) > 0 && t.Name == "experimental-"+bare {
		if have, _ := releases.Flag(staticpod.Etcd, bare, to.Minor); have == releases.Present {
			fix = "Write " + bare + " instead of " + t.Name
		}
	}
	p.Report(analyze.Finding{Node: n, Subject: t.Label() + " in " + t.Source, Severity: report.High,
		Message:  fmt.Sprintf("%s (%s) %s, and the target brings etcd %s: it does not start%s", t.Label(), t.Source, r.Why, toText, more),
		Evidence: []analyze.Evidence{analyze.See(t.Ref, t.Text)},
		Fix:      steps(report.Step{Text: fix + " in etcd.local.extraArgs, in the same session as the upgrade when the running etcd does not know the new name.", Command: "kubectl -n kube-system edit configmap kubeadm-config"})})
}

// v2Data finds keys somebody wrote through the v2 API.
func v2Data(p *analyze.Pass, n *bundle.Node, to releases.Version) {
	ds, err := etcdwal.OnNode.Try(p, n)
	if err != nil || to.Minor < 6 {
		return
	}
	d := ds.Live()
	if d == nil {
		return
	}
	snap := d.NewestSnap()
	if snap == nil || !snap.Store.Present || snap.Store.UserKeys == 0 {
		return
	}
	p.Report(analyze.Finding{Node: n, Subject: "etcd v2 data", Severity: report.Critical,
		Message:  fmt.Sprintf("%d keys were written through etcd's v2 API; etcd 3.%d has no v2 API and does not start on them", snap.Store.UserKeys, to.Minor),
		Evidence: []analyze.Evidence{analyze.See(snap.File.Ref(), fmt.Sprintf("%d keys besides the members", snap.Store.UserKeys))},
		Fix:      steps(report.Step{Text: "Copy the keys elsewhere, delete them through the v2 API, and see that none is left.", Command: "etcdutl check v2store --data-dir /var/lib/etcd"})})
}
