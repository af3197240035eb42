package nod

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD112", Name: "node-renamed", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High},
	Doc: analyze.Doc{
		Title: "The host's name is no longer the one the control plane was made with",
		Why: "The kubelet registers under the host's name: after a rename it may not use the old Node object, its certificate names another node, and etcd does " +
			"not find itself in --initial-cluster.",
		Fix:   "Give the host its old name back (hostnamectl set-hostname) and restart the kubelet; or remove the node properly and join it again under the new name.",
		Links: []string{"https://kubernetes.io/docs/concepts/architecture/nodes/#node-name-uniqueness"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{host.Machine, staticpod.Manifests, kubelet.CommandLine, logs.OnNode},
	Run:   renamed,
})

func renamed(p *analyze.Pass) error {
	if n, err := logs.OnNode.Try(p, p.Node()); err == nil {
		for _, s := range n.Of(signature.Etcd) {
			if d, ok := s.Death(); ok && d.Sig == "E20" {
				p.Report(analyze.Finding{Subject: "node name", Severity: report.High, Message: "etcd does not find its own name in --initial-cluster" + when(d.Line.Time),
					Evidence: []analyze.Evidence{analyze.See(s.Ref(d.Line.Number, d.Line.Offset), d.Line.Excerpt)}, ObservedAt: d.Line.Time})
				return nil
			}
		}
	}
	if n, err := logs.OnNode.Try(p, p.Node()); err == nil {
		if at, ok := n.Last(signature.Kubelet, "K61"); ok && at.Value("name") != "" {
			p.Report(analyze.Finding{Subject: "node name", Severity: report.High, ObservedAt: at.Time,
				Message:  fmt.Sprintf("the kubelet calls itself %s and holds the credential of node %s: the API server refuses it", at.Value("name"), at.Value("credential")),
				Evidence: []analyze.Evidence{at.See()}})
			return nil
		}
	}
	m, err := host.Machine.Try(p, p.Node())
	if err != nil || m.Hostname == "" {
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "the host's own name")
		return nil
	}
	name := strings.ToLower(m.Hostname)
	short, _, _ := strings.Cut(name, ".")
	if fl, err := kubelet.CommandLine.Try(p, p.Node()); err == nil {
		if f, ok := fl.Get("hostname-override"); ok && f.Value != "" {
			return nil // the node's name is set on purpose
		}
	}
	d, err := staticpod.Manifests.Try(p, p.Node())
	if err != nil {
		p.UnknownErr(bundle.KindManifests, p.Node(), err)
		return nil
	}
	pod := d.Component(staticpod.Etcd)
	if pod == nil {
		return nil
	}
	f, ok := pod.Setting("name")
	if !ok || f.Value == "" {
		return nil
	}
	member := strings.ToLower(f.Value)
	mshort, _, _ := strings.Cut(member, ".")
	if member == name || mshort == short {
		return nil
	}
	p.Report(analyze.Finding{Subject: "node name", Severity: report.High, Confidence: report.Probable,
		Message:  fmt.Sprintf("the host is called %s, etcd's manifest was made for %s", m.Hostname, f.Value),
		Evidence: []analyze.Evidence{analyze.See(m.Ref.At(0, "/hostname"), m.Hostname), analyze.Expect(f.Ref, f.Text())}})
	return nil
}
