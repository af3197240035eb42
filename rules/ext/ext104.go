package ext

import (
	"fmt"
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/quorum"
	"coldplane/analyze/releases"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "EXT104", Name: "external-etcd-too-old-or-plain", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "The external etcd is too old for kubeadm, or is reached without TLS",
		Why: "kubeadm refuses to init, join and upgrade when an external etcd is older than the minimum of its version. Over plain HTTP every Secret of the cluster " +
			"crosses the network readable, and whoever reaches the port may change everything.",
		Fix: "Upgrade the external etcd first, one minor version at a time and one member at a time. Give etcd certificates and change the endpoints to https in " +
			"the same session.",
		Links: []string{"https://etcd.io/docs/latest/upgrades/", "https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/high-availability/"},
		Since: "v0.1",
	},
	Needs: needs[:1],
	Wants: append(slices.Clone(needs[1:]), quorum.Servers),
	Run:   oldOrPlain,
})

func oldOrPlain(p *analyze.Pass) error {
	t := know(p)
	if stop, err := t.applies(p); stop {
		return err
	}
	plain(p, t)
	wanted, floor := t.floor(p)
	if floor.IsZero() {
		p.Unknown(bundle.KindManifests, nil, bundle.Undecided, "the version of Kubernetes is not known, or not in the tables")
		return nil
	}
	known := false
	for _, n := range p.All() {
		vs, err := quorum.Servers.Try(p, n)
		if err != nil {
			continue
		}
		for _, v := range vs {
			have, ok := releases.Parse(v.Text)
			if !ok {
				continue
			}
			known = true
			if have.Less(floor) {
				p.Report(analyze.Finding{
					Node: n, Subject: "external etcd version", Severity: report.High,
					Message:  fmt.Sprintf("etcd %s is older than %s, the oldest external etcd that kubeadm %s accepts", have, floor, wanted),
					Evidence: []analyze.Evidence{analyze.See(v.Ref, v.Text)},
				})
			}
		}
	}
	if !known {
		p.Unknown(bundle.KindEtcdctl, nil, bundle.NotCollected, "nothing names the version of the external etcd")
	}
	return nil
}

func plain(p *analyze.Pass, t *topology) {
	if t.cfg != nil {
		for i, u := range t.endpoints {
			if u.Scheme != "http" {
				continue
			}
			p.Report(analyze.Finding{
				Subject: "external etcd transport", Severity: report.High,
				Message:  fmt.Sprintf("the external etcd is reached without TLS: %s", u),
				Evidence: []analyze.Evidence{analyze.See(t.cfg.Ref(fmt.Sprintf("/etcd/external/endpoints/%d", i)), u.Raw)},
			})
		}
	}
	for _, c := range t.clients {
		for _, u := range c.urls {
			if u.Scheme == "http" {
				p.Report(analyze.Finding{
					Node: c.node, Subject: "external etcd transport", Severity: report.High,
					Message:  fmt.Sprintf("kube-apiserver reaches the external etcd without TLS: %s", u),
					Evidence: []analyze.Evidence{analyze.See(c.flag.Ref, c.flag.Text())},
				})
				break
			}
		}
	}
}

// floor is the oldest external etcd that kubeadm of the target, or of the
// running version, accepts.
func (t *topology) floor(p *analyze.Pass) (kube releases.Version, floor releases.Version) {
	kube, ok := releases.Parse(p.Target())
	if !ok && t.cfg != nil {
		kube, ok = releases.Parse(t.cfg.KubernetesVersion)
	}
	for _, c := range t.clients {
		if !ok {
			kube, ok = releases.Parse(c.pod.ImageTag())
		}
	}
	if !ok {
		return kube, floor
	}
	for _, e := range earlier {
		if e.before.Minor == kube.Minor && kube.Less(e.before) {
			return kube, e.floor
		}
	}
	k, ok := releases.KubeadmOf(kube.Minor)
	if !ok {
		return kube, floor
	}
	return kube, k.MinExternalEtcd
}

// earlier are minimums that a patch release raised: cmd/kubeadm/app/constants
// of 1.32.9, 1.33.5 and 1.34.0. Older patches of 1.31 were not read; the value
// is that of the minor before.
var earlier = []struct{ before, floor releases.Version }{
	{releases.Version{Major: 1, Minor: 31, Patch: 14}, releases.Version{Major: 3, Minor: 4, Patch: 13}},
	{releases.Version{Major: 1, Minor: 32, Patch: 10}, releases.Version{Major: 3, Minor: 5, Patch: 11}},
	{releases.Version{Major: 1, Minor: 33, Patch: 6}, releases.Version{Major: 3, Minor: 5, Patch: 11}},
	{releases.Version{Major: 1, Minor: 34, Patch: 1}, releases.Version{Major: 3, Minor: 5, Patch: 21}},
}
