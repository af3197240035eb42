package upg

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG102", Name: "upgrade-path-not-allowed", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.Critical, report.Medium, report.Info},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The target cannot be reached from the running version in one upgrade",
		Why: "kubeadm upgrades one minor at a time and goes back at most one. A minor that is left out is a set of conversions, flag changes and an " +
			"etcd step that never ran.",
		Fix:   "Upgrade to the newest patch of the next minor, wait until every node runs it, and repeat up to the target.",
		Links: []string{"https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-upgrade/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{running.OnNode, running.Config},
	Run:   upgradePath,
})

func upgradePath(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	cfg, err := running.Config.Try(p, nil)
	if err != nil {
		cfg = nil
	}
	v, ref, ok := current(p, cfg)
	if !ok {
		p.Unknown(bundle.KindManifests, nil, bundle.NotCollected, "the running version is not known")
		return nil
	}
	see := analyze.See(ref, "Kubernetes "+v.String())
	switch d := t.Minor - v.Minor; {
	case d > 1:
		p.Report(analyze.Finding{Subject: "upgrade path", Severity: report.Critical, Evidence: []analyze.Evidence{see},
			Message: fmt.Sprintf("from %s to %s skips %d minors; kubeadm refuses more than one at a time", v, t, d-1), Fix: between(v, t)})
	case d < -1 || d == -1 && t.Patch == 0 && t.Pre != "":
		p.Report(analyze.Finding{Subject: "upgrade path", Severity: report.Critical, Evidence: []analyze.Evidence{see},
			Message: fmt.Sprintf("from %s back to %s is more than kubeadm takes back; stored objects and etcd may not be readable by the older release", v, t)})
	case t.Less(v):
		p.Report(analyze.Finding{Subject: "upgrade path", Severity: report.Medium, Evidence: []analyze.Evidence{see},
			Message: fmt.Sprintf("the target %s is older than the running %s; going back is meant for a failed upgrade only", t, v)})
	case t.Compare(v) == 0:
		p.Report(analyze.Finding{Subject: "upgrade path", Severity: report.Info, Evidence: []analyze.Evidence{see},
			Message: fmt.Sprintf("the cluster already runs %s", v)})
	}
	if t.Pre != "" {
		p.Report(analyze.Finding{Subject: "target version", Severity: report.Medium, Evidence: []analyze.Evidence{see},
			Message: fmt.Sprintf("the target %s is a pre-release; kubeadm needs --allow-experimental-upgrades or --allow-release-candidate-upgrades for it", t)})
	}
	return nil
}

// between is the minors in between, as steps.
func between(v, t releases.Version) []report.Step {
	var out []report.Step
	for m := v.Minor + 1; m <= t.Minor; m++ {
		to := fmt.Sprintf("v1.%d.x (the newest patch)", m)
		if m == t.Minor {
			to = "v" + t.String()
		}
		out = append(out, report.Step{Text: fmt.Sprintf("With kubeadm 1.%d upgrade every control-plane node, then every worker, to %s.", m, to)})
	}
	return out
}
