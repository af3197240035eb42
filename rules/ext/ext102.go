package ext

import (
	"fmt"
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "EXT102", Name: "external-etcd-without-redundancy", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The external etcd is reached through one endpoint, or has fewer than three members",
		Why: "With one endpoint every API server loses its store when that machine goes, however many members there are; with fewer than three members no " +
			"member may be lost at all.",
		Fix:   "List the client URLs of all members in etcd.external.endpoints and in --etcd-servers; run three or five members.",
		Links: []string{"https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/high-availability/"},
		Since: "v0.1",
	},
	Needs: needs[:1],
	Wants: append(slices.Clone(needs[1:]), quorum.Joined),
	Run:   redundancy,
})

const members = 3 // the fewest of which one may be lost

func redundancy(p *analyze.Pass) error {
	t := know(p)
	if stop, err := t.applies(p); stop {
		return err
	}
	urls := t.endpoints
	if len(urls) == 0 {
		for _, c := range t.clients {
			urls = append(urls, c.urls...)
		}
	}
	at, ok := t.where()
	if !ok || len(urls) == 0 {
		p.Unknown(bundle.KindManifests, nil, bundle.Undecided, "no endpoint of the external etcd is known")
		return nil
	}
	hosts := map[string]bool{}
	names := false
	for _, u := range urls {
		hosts[u.Host] = true
		names = names || !endpoint.IsIP(u.Host)
	}
	fix := []report.Step{
		{Text: "Ask the external etcd for its members.", Command: "etcdctl --endpoints=https://ETCD-HOST:2379 --cacert=CA --cert=CERT --key=KEY member list -w table"},
		{Text: "List all their client URLs in etcd.external.endpoints of kubeadm-config and in --etcd-servers of every API server, one node at a time.", Command: "kubectl -n kube-system edit configmap kubeadm-config"},
	}
	voters, voterRef := votersOf(p)
	switch {
	case voters > 0 && voters < members:
		p.Report(analyze.Finding{Subject: "external etcd", Severity: report.Medium,
			Message:  fmt.Sprintf("the external etcd has %d voting member(s); with fewer than %d none may be lost", voters, members),
			Evidence: []analyze.Evidence{at, analyze.Context(voterRef, fmt.Sprintf("%d voters", voters))}, Fix: fix})
	case len(hosts) == 1 && names:
		p.Unknown(bundle.KindHost, nil, bundle.Undecided, "one name stands for the external etcd; whether it is a load balancer that checks the members cannot be seen")
	case len(hosts) == 1:
		p.Report(analyze.Finding{Subject: "external etcd", Severity: report.Medium, Confidence: report.Probable,
			Message:  fmt.Sprintf("the external etcd is reached through one address, %s", urls[0]),
			Evidence: []analyze.Evidence{at}, Fix: fix})
	case len(hosts) < members && voters == 0:
		p.Report(analyze.Finding{Subject: "external etcd", Severity: report.Medium, Confidence: report.Probable,
			Message:  fmt.Sprintf("the external etcd is reached through %d addresses; of fewer than %d members none may be lost", len(hosts), members),
			Evidence: []analyze.Evidence{at}, Fix: fix})
	}
	return nil
}

// votersOf counts the voting members as far as they are known, 0 when not.
func votersOf(p *analyze.Pass) (int, bundle.Ref) {
	v, err := quorum.Joined.Try(p, nil)
	if err != nil || len(v.Clusters) != 1 || len(v.Clusters[0].Sources) == 0 {
		return 0, bundle.Ref{}
	}
	return len(v.Clusters[0].Voters()), v.Clusters[0].Sources[0].Ref
}
