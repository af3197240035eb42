package nod

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/host"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD113", Name: "node-address-changed", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical},
	Doc: analyze.Doc{
		Title: "The control plane is set up for an address this host does not have",
		Why: "etcd and the API server cannot listen on an address that is on no interface, and peers and clients look for them there. The address also stands " +
			"in certificates, kubeconfigs, the member list and kubeadm-config: kubeadm does not support changing it.",
		Fix:   "Give the node its old address back. Only if that is impossible: on several nodes remove this one and join it again; on a single one change every place in order (member URL, manifests, certificates, kubeconfigs, kubeadm-config, cluster-info).",
		Links: []string{"https://github.com/kubernetes/kubeadm/issues/338"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{staticpod.Manifests, host.Interfaces, logs.OnNode},
	Run:   addressGone,
})

func addressGone(p *analyze.Pass) error {
	looked := false
	if n, err := logs.OnNode.Try(p, p.Node()); err == nil {
		for _, s := range n.Of(signature.Etcd | signature.APIServer) {
			looked = true
			if d, ok := s.Death(); ok && d.Class == logs.ClassAddress {
				p.Report(analyze.Finding{Subject: "address of " + s.Component, Severity: report.Critical, Confidence: report.Probable,
					Message:  fmt.Sprintf("%s ended: it cannot listen on %s, which is on no interface", s.Component, d.Value),
					Evidence: []analyze.Evidence{analyze.See(s.Ref(d.Line.Number, d.Line.Offset), d.Line.Excerpt)}, ObservedAt: d.Line.Time})
				return nil
			}
		}
	}
	l, err := host.Interfaces.Try(p, p.Node())
	m, merr := staticpod.Manifests.Try(p, p.Node())
	if err != nil || merr != nil {
		if !looked {
			p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "the addresses of the host, or the manifests")
		}
		return nil
	}
	var have []string
	var ref bundle.Ref
	for i, itf := range l.Items {
		for _, a := range itf.Addresses {
			ip, _, _ := strings.Cut(a, "/")
			have = append(have, endpoint.Host(ip))
			if ref.IsZero() {
				ref = l.Refs[i]
			}
		}
	}
	if len(have) == 0 {
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "the addresses of the host")
		return nil
	}
	for _, c := range []struct {
		pod   string
		flags []string
	}{{staticpod.APIServer, []string{"advertise-address", "bind-address"}}, {staticpod.Etcd, []string{"listen-client-urls", "listen-peer-urls", "initial-advertise-peer-urls"}}} {
		pod := m.Component(c.pod)
		if pod == nil {
			continue
		}
		for _, name := range c.flags {
			f, ok := pod.Setting(name)
			if !ok {
				continue
			}
			for _, v := range f.List() {
				h := v
				if u, ok := endpoint.Parse(v); ok {
					h = u.Host
				}
				h = endpoint.Host(h)
				// A name is resolved elsewhere, a virtual address may be held by another node.
				if !endpoint.IsIP(h) || endpoint.Wildcard(h) || endpoint.Loopback(h) || slices.Contains(have, h) {
					continue
				}
				p.Report(analyze.Finding{Subject: "address of " + c.pod, Severity: report.Critical,
					Message:  fmt.Sprintf("%s is given %s, which is on no interface of this host (%s)", c.pod, f.Text(), strings.Join(have, ", ")),
					Evidence: []analyze.Evidence{analyze.See(f.Ref, f.Text()), analyze.Expect(ref, strings.Join(have, ", "))}})
				return nil
			}
		}
	}
	return nil
}
