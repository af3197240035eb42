package hav

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/objects"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV104", Name: "api-servers-differ-from-records", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Symptom:    true,
	Doc: analyze.Doc{
		Title: "The kubernetes Service lists other API servers than those that run",
		Why:   "Pods reach the API through the addresses in default/kubernetes. A dead address there makes a share of their requests time out; a missing one wastes a healthy server.",
		Fix:   "Repair the API server that is missing. A stale address disappears by itself 15 seconds after any API server can write again.",
		Links: []string{"https://github.com/kubernetes/kubernetes/blob/master/pkg/controlplane/reconcilers/lease.go"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "settle", Default: 60, Unit: "seconds", Source: "four times the TTL of masterleases (15 s)"}},
	Needs:  []analyze.Need{objects.Cluster, staticpod.Manifests, cri.OnNode},
	Run:    staleEndpoints,
})

func staleEndpoints(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	var listed []string
	var ref bundle.Ref
	for _, s := range set.EndpointSlices("default").Items {
		if s.Value.Labels["kubernetes.io/service-name"] != "kubernetes" {
			continue
		}
		ref = s.Ref
		for _, e := range s.Value.Endpoints {
			listed = append(listed, e.Addresses...)
		}
	}
	if ref.IsZero() {
		if ep, err := set.Endpoints("default", "kubernetes"); err == nil {
			ref = ep.Ref
			for _, sub := range ep.Value.Subsets {
				for _, a := range sub.Addresses {
					listed = append(listed, a.IP)
				}
			}
		}
	}
	if ref.IsZero() {
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "no endpoints of default/kubernetes in the database")
		return nil
	}
	for i := range listed {
		listed[i] = endpoint.Host(listed[i])
	}
	wrong, judged := []string{}, 0
	ev := []analyze.Evidence{analyze.See(ref, "addresses: "+strings.Join(listed, ", "))}
	for _, n := range p.Nodes() {
		m, err := staticpod.Manifests.Try(p, n)
		if err != nil {
			continue
		}
		pod := m.Component(staticpod.APIServer)
		v, err := cri.OnNode.Try(p, n)
		if pod == nil || err != nil || !v.Listed || v.Newest(staticpod.APIServer) == nil {
			continue
		}
		f, ok := pod.Setting("advertise-address")
		if r, set := pod.Setting("endpoint-reconciler-type"); !ok || set && r.Value == "none" {
			continue
		}
		addr := endpoint.Host(f.Value)
		if endpoint.Loopback(addr) || endpoint.Wildcard(addr) {
			continue
		}
		judged++
		run := v.Running(staticpod.APIServer)
		now, timed := p.AsOf(n)
		settled := func(t time.Time) bool {
			return timed && !t.IsZero() && now.Sub(t) > time.Duration(p.Param("settle"))*time.Second
		}
		has := slices.Contains(listed, addr)
		switch {
		case run == nil && has && settled(v.Newest(staticpod.APIServer).FinishedAt):
			wrong = append(wrong, fmt.Sprintf("%s is listed but no API server runs on %s", addr, n.Name))
			ev = append(ev, analyze.Context(v.Newest(staticpod.APIServer).Where(), "kube-apiserver exited"))
		case run != nil && !has && settled(run.Began()):
			wrong = append(wrong, fmt.Sprintf("the API server of %s (%s) is not listed", n.Name, addr))
			ev = append(ev, analyze.Context(run.Where(), "kube-apiserver running"))
		}
	}
	if judged == 0 {
		p.Unknown(bundle.KindCRI, nil, bundle.NotCollected, "which API servers run")
		return nil
	}
	if len(wrong) == 0 {
		return nil
	}
	sev := report.Medium
	if 2*len(wrong) > max(len(listed), judged) {
		sev = report.High
	}
	p.Report(analyze.Finding{Subject: "endpoints of default/kubernetes", Severity: sev, Confidence: report.Probable, Message: strings.Join(wrong, "; "), Evidence: ev})
	return nil
}
