package ext

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "EXT103", Name: "local-etcd-beside-external", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "A local etcd runs on a control-plane node although an external one is configured",
		Why: "kubeadm leaves the local etcd alone once the configuration says external, so it grows old unnoticed; an API server or a script that is pointed at it " +
			"works on other data than the rest. External members on control-plane machines share their fate with the API servers.",
		Fix: "Find out which etcd holds the cluster's data (which one do the API servers use, which one has the newer objects), then take the other one out and " +
			"archive its data. During a migration both are expected: finish it.",
		Links: []string{"https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/ha-topology/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests, running.Config},
	Run:   mixed,
})

func mixed(p *analyze.Pass) error {
	d, _ := staticpod.Manifests.In(p)
	cfg, _ := running.Config.In(p)
	if !cfg.External() {
		return p.NotApplicable("kubeadm-config names no external etcd")
	}
	api := d.Component(staticpod.APIServer)
	if api == nil {
		if e := d.Broken(staticpod.APIServer); e != nil {
			p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
			return nil
		}
		return p.NotApplicable("no API server on this node")
	}
	flag, _ := api.Flag("etcd-servers")
	where := analyze.Expect(cfg.Ref("/etcd/external/endpoints"), "external: "+join(cfg.Etcd.External.Endpoints))
	if etcd := d.Component(staticpod.Etcd); etcd != nil {
		evidence := []analyze.Evidence{analyze.See(etcd.Ref("/metadata/name"), "name: "+etcd.Name), where}
		if !flag.Ref.IsZero() {
			evidence = append(evidence, analyze.Context(flag.Ref, flag.Text()))
		}
		p.Report(analyze.Finding{
			Subject: "local etcd", Severity: report.High,
			Message:  fmt.Sprintf("%s runs an etcd on this node, and kubeadm-config says etcd is external (%s)", etcd.File().Name(), join(cfg.Etcd.External.Endpoints)),
			Evidence: evidence,
			Fix: []report.Step{
				{Text: "See which one the API servers use and which holds the newer data; nothing is removed before that is clear.", Command: "grep -H etcd-servers " + recipe.Quote(api.File().Origin)},
				{Text: "Save a snapshot of the local one.", Command: recipe.Etcdctl("snapshot save /var/lib/etcd/before-removal.db")},
				{Text: "If the external one is right: take the manifest out and archive the data directory off the node.", Command: "mv -n " + recipe.Quote(etcd.File().Origin) + " /root/"},
				{Text: "If the local one is right: correct kubeadm-config before the next upgrade.", Command: "kubectl -n kube-system edit configmap kubeadm-config"},
			},
		})
		return nil
	}
	own, _ := api.Flag("advertise-address")
	for i, e := range cfg.Etcd.External.Endpoints {
		u, ok := endpoint.Parse(e)
		if ok && own.Value != "" && u.Host == endpoint.Host(own.Value) {
			p.Report(analyze.Finding{
				Subject: "external etcd member", Severity: report.Low,
				Message:  fmt.Sprintf("the external etcd endpoint %s is this control-plane node itself: both fail together", e),
				Evidence: []analyze.Evidence{analyze.See(cfg.Ref(fmt.Sprintf("/etcd/external/endpoints/%d", i)), e), analyze.Context(own.Ref, own.Text())},
			})
		}
	}
	return nil
}
