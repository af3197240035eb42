package upg

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/kubeadm/render"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG404", Name: "etcd-half-upgraded-or-pinned", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "An image tag is pinned, or etcd stands between two versions",
		Why: "While a downgrade of etcd is enabled the cluster is held at the lower version and a normal upgrade does not go on. A tag pinned in " +
			"kubeadm-config is installed whatever Kubernetes version is chosen: etcd or CoreDNS stays behind, and from 1.36 on kubeadm gives etcd flags " +
			"that versions before 3.6 do not know, so that it does not start.",
		Fix: "Finish or cancel the change of etcd first (etcdctl downgrade cancel). Take imageTag out of kubeadm-config, or set it to a version the target is made for, " +
			"before kubeadm upgrade apply.",
		Links: []string{"https://etcd.io/docs/v3.6/downgrades/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{etcddb.OnNode, running.Config},
	Run:   halfway,
})

func halfway(p *analyze.Pass) error {
	seen := false
	for _, n := range p.All() {
		dbs, err := etcddb.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, d := range dbs {
			if d.Store == nil || d != dbs.Live() && !d.Saved() {
				continue
			}
			seen = true
			if g := d.Store.Meta.Downgrade; g != nil && g.Enabled {
				p.Report(analyze.Finding{
					Node: n, Subject: "etcd downgrade", Severity: report.High, Evidence: []analyze.Evidence{analyze.See(d.AtKey("cluster/downgrade", 0), "downgrade to "+g.TargetVersion)},
					Message: fmt.Sprintf("a downgrade of etcd to %s is enabled and not finished; the cluster version is %s", g.TargetVersion, d.Store.Meta.ClusterVersion),
					Fix:     steps(report.Step{Text: "Finish the downgrade member by member, or cancel it.", Command: "etcdctl downgrade cancel"}),
				})
			}
		}
	}
	cfg, err := running.Config.Try(p, nil)
	if err != nil {
		if !seen {
			p.UnknownErr(bundle.KindKubeadmConfig, nil, err)
		}
		return nil
	}
	t, ok := target(p)
	if !ok {
		return nil
	}
	k, known := releases.KubeadmOf(tabled(p, t))
	if !known {
		return nil
	}
	if l := cfg.Etcd.Local; l != nil && l.ImageTag != "" {
		have, ok := releases.Parse(l.ImageTag)
		bare := cfg.ClusterConfiguration
		free := *l
		free.ImageTag, bare.Etcd.Local = "", &free
		tag := render.EtcdTag(k.Version.Minor, "v"+t.String(), &bare)
		want, _ := releases.Parse(tag)
		ev := []analyze.Evidence{analyze.See(cfg.Ref("/etcd/local/imageTag"), "imageTag: "+l.ImageTag)}
		switch {
		case !ok:
		case t.Minor >= 36 && !have.AtLeast(3, 6, 0):
			p.Report(analyze.Finding{Subject: "etcd imageTag", Severity: report.Critical, Evidence: ev,
				Message: fmt.Sprintf("etcd is pinned to %s, and kubeadm 1.%d writes flags that etcd before 3.6 does not know: it does not start", l.ImageTag, t.Minor)})
		case have.Less(want):
			p.Report(analyze.Finding{Subject: "etcd imageTag", Severity: report.Medium, Evidence: ev,
				Message: fmt.Sprintf("etcd is pinned to %s; kubeadm 1.%d would install %s and leaves it at the pinned one", l.ImageTag, k.Version.Minor, tag)})
		}
	}
	if tag := cfg.DNS.ImageTag; tag != "" {
		have, ok1 := releases.Parse(tag)
		want, ok2 := releases.Parse(strings.TrimPrefix(k.CoreDNS, "v"))
		if ok1 && ok2 && have.Less(want) {
			p.Report(analyze.Finding{Subject: "dns imageTag", Severity: report.Medium, Evidence: []analyze.Evidence{analyze.See(cfg.Ref("/dns/imageTag"), "imageTag: "+tag)},
				Message: fmt.Sprintf("CoreDNS is pinned to %s; kubeadm 1.%d would install %s", tag, k.Version.Minor, k.CoreDNS)})
		}
	}
	return nil
}
