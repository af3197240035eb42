package upg

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/kubeadm/render"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG401", Name: "etcd-below-floor-for-next-minor", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.Critical, report.High, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "etcd must not go to the next minor from this patch version",
		Why: "A member of an old patch hands its successor a state it cannot use: before 3.5.26 members removed long ago come back on 3.6 or voters " +
			"turn into learners, before 3.6.11 the step to 3.7 is not safe. kubeadm takes etcd to its own default version and does not ask where it comes from; " +
			"leaving a minor out is not possible at all.",
		Fix: "First bring every member to a safe patch of its own series: set etcd.local.imageTag in kubeadm-config to it, run kubeadm upgrade apply with the " +
			"Kubernetes version you already run, then kubeadm upgrade node on the other control-plane nodes, and see that all members are healthy. " +
			"Take the tag out again before the upgrade to the next minor.",
		Links: []string{
			"https://etcd.io/docs/v3.6/upgrades/upgrade_3_6/", "https://etcd.io/docs/v3.7/upgrades/upgrade_3_7/",
			"https://etcd.io/blog/2025/upgrade_from_3.5_to_3.6_issue/",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{running.OnNode},
	Wants: []analyze.Need{running.Config},
	Run:   etcdFloor,
})

func etcdFloor(p *analyze.Pass) error {
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
	to, toText, why, ok := etcdAfter(p, t, cfg)
	if !ok {
		return nil
	}
	seen := false
	for _, n := range p.Nodes() {
		r, err := running.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		v := r.Of(staticpod.Etcd)
		if v == nil || v.Major != 3 {
			continue
		}
		seen = true
		step := to.Minor - v.Minor
		ev := []analyze.Evidence{analyze.See(v.Ref, "etcd "+v.Text)}
		if cfg != nil {
			ev = append(ev, analyze.Context(cfg.Ref("/etcd/local/imageTag"), why))
		}
		if step > 1 {
			p.Report(analyze.Finding{Node: n, Subject: "etcd", Severity: report.Critical, Evidence: ev,
				Message: fmt.Sprintf("etcd %s would go to %s and leave out 3.%d; etcd does not start on data that is two minors older", v.Version, toText, v.Minor+1)})
			continue
		}
		floor, advised, known := releases.EtcdFloor(v.Minor, to.Minor)
		if step < 1 || !known {
			continue
		}
		switch {
		case v.Less(floor):
			p.Report(analyze.Finding{Node: n, Subject: "etcd", Severity: report.High, Evidence: ev, Fix: floorSteps(advised, to),
				Message: fmt.Sprintf("etcd %s is below %s, the oldest version from which a member may go to 3.%d (%s)%s", v.Version, floor, to.Minor, toText, advice(floor, advised))})
		case v.Less(advised):
			p.Report(analyze.Finding{Node: n, Subject: "etcd", Severity: report.Low, Evidence: ev, Fix: floorSteps(advised, to),
				Message: fmt.Sprintf("etcd %s may go to 3.%d, but the documentation asks for %s or newer first", v.Version, to.Minor, advised)})
		}
	}
	if !seen {
		p.Unknown(bundle.KindManifests, nil, bundle.NotCollected, "no member's version is known")
	}
	return nil
}

func advice(floor, advised releases.Version) string {
	if floor == advised {
		return ""
	}
	return fmt.Sprintf("; %s or newer is advised", advised)
}

// etcdAfter is the etcd version that kubeadm of the target installs.
func etcdAfter(p *analyze.Pass, t releases.Version, conf *kubeadm.Config) (v releases.Version, text, why string, ok bool) {
	minor := tabled(p, t)
	tag := ""
	if conf != nil {
		tag = render.EtcdTag(minor, "v"+t.String(), &conf.ClusterConfiguration)
	} else if k, known := releases.KubeadmOf(minor); known {
		tag = k.Etcd
	}
	v, ok = releases.Parse(tag)
	if !ok {
		p.Unknown(bundle.KindKubeadmConfig, nil, bundle.Undecided, "which etcd the target installs is not known")
		return
	}
	text, why = tag, fmt.Sprintf("no imageTag: kubeadm 1.%d installs etcd %s", minor, tag)
	if conf != nil && conf.Etcd.Local != nil && conf.Etcd.Local.ImageTag != "" {
		why = "imageTag: " + tag
	}
	return v, text, why, true
}

func floorSteps(safe, to releases.Version) []report.Step {
	return steps(
		report.Step{Text: "See that all members are healthy, agree on the members and take a snapshot.", Command: "etcdctl endpoint health --cluster && etcdctl member list -w table"},
		report.Step{Text: fmt.Sprintf("Set etcd.local.imageTag in kubeadm-config to a 3.%d patch at or above %s that your registry has, e.g. %s-0.", safe.Minor, safe, safe), Command: "kubectl -n kube-system edit configmap kubeadm-config"},
		report.Step{Text: "On the first control-plane node, with the Kubernetes version that runs now.", Command: "kubeadm upgrade apply CURRENT-VERSION --force"},
		report.Step{Text: "On each other control-plane node, one after the other.", Command: "kubeadm upgrade node"},
		report.Step{Text: "All members healthy and on the same version? Take imageTag out again, then go on to the next minor.", Command: "etcdctl endpoint status --cluster -w table"},
	)
}
