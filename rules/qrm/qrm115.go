package qrm

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/quorum"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM115", Name: "etcd-corruption-check-off-or-descriptors-short", Scope: analyze.PerNode, Latent: true,
	Severities: []report.Severity{report.Medium, report.Low},
	Doc: analyze.Doc{
		Title: "etcd does not check its data against the other members, or is short of file descriptors",
		Why: "With the initial corruption check a member compares its hash with the others before it serves, and with the compaction hash check the leader compares them as it compacts; without either, members that differ stay unnoticed until somebody misses an object. " +
			"kubeadm turns the first one on. When descriptors run out, etcd refuses connections.",
		Fix:   "From etcd 3.6: --feature-gates=InitialCorruptCheck=true,CompactHashCheck=true; before: --experimental-initial-corrupt-check=true and --experimental-compact-hash-check-enabled=true, in etcd.local.extraArgs of kubeadm-config and the manifest. Raise nofile of the container runtime.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/data_corruption/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{staticpod.Manifests, logs.OnNode},
	Run:   corruptCheck,
})

func corruptCheck(p *analyze.Pass) error {
	looked := false
	if m, err := staticpod.Manifests.Try(p, p.Node()); err == nil {
		if pod := m.Component(staticpod.Etcd); pod != nil {
			looked = true
			checks(p, pod)
		}
	}
	if l, err := logs.OnNode.Try(p, p.Node()); err == nil && l.Has(signature.Etcd) {
		looked = true
		if h, ok := l.Last(signature.Etcd, "E45", "E91"); ok {
			p.Report(analyze.Finding{Subject: "etcd file descriptors", Severity: report.Medium, ObservedAt: h.Time, Evidence: []analyze.Evidence{h.See()},
				Message: "etcd is short of file descriptors: " + lower(h.Stat.Sig.Means)})
		}
	}
	if !looked {
		p.Unknown(bundle.KindManifests, p.Node(), bundle.NotCollected, "no etcd manifest and no etcd log")
	}
	return nil
}

// checks reports a manifest that turns on neither check. The names moved from
// experimental flags to feature gates with 3.6.
func checks(p *analyze.Pass, pod *staticpod.Pod) {
	if gates, ok := pod.Setting("feature-gates"); ok {
		for _, g := range gates.List() {
			name, value, _ := strings.Cut(g, "=")
			if (name == "InitialCorruptCheck" || name == "CompactHashCheck") && value == "true" {
				return
			}
		}
	}
	for _, name := range []string{"experimental-initial-corrupt-check", "experimental-compact-hash-check-enabled", "experimental-corrupt-check-time", "corrupt-check-time"} {
		if f, ok := pod.Setting(name); ok && (f.True() || strings.ContainsAny(f.Value, "123456789")) {
			return
		}
	}
	tag := pod.ImageTag()
	flag := "--feature-gates=InitialCorruptCheck=true"
	if quorum.Before(tag, 3, 6, 0) {
		flag = "--experimental-initial-corrupt-check=true"
	}
	p.Report(analyze.Finding{Subject: "etcd corruption checks", Severity: report.Low, Evidence: []analyze.Evidence{analyze.See(pod.ImageRef(), "etcd "+tag+", no check among its flags")},
		Message: fmt.Sprintf("etcd %s runs without any check of its data against the other members (%s)", tag, flag)})
}
