package sta

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/etcdlisten"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA201", Name: "apiserver-etcd-servers-wrong", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "The API server looks for etcd at a wrong address or port",
		Why: "With every URL of --etcd-servers wrong the API server does not start; with some wrong it loses its store when the right ones go. The peer port " +
			"(2380) answers TLS with the same certificates, so the mistake shows only as requests that time out.",
		Fix: "Set --etcd-servers to what etcd's --listen-client-urls says; for a stacked etcd https://127.0.0.1:2379.",
		Links: []string{
			"https://etcd.io/docs/latest/op-guide/configuration/",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: []analyze.Need{running.Config, etcdlisten.Members},
	Run:   wrongEtcd,
})

func wrongEtcd(p *analyze.Pass) error {
	d, _ := staticpod.Manifests.In(p)
	pod := d.Component(staticpod.APIServer)
	if pod == nil {
		if e := d.Broken(staticpod.APIServer); e != nil {
			p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
			return nil
		}
		return p.NotApplicable("no API server on this node")
	}
	if cfg, err := running.Config.Try(p, nil); err == nil && cfg.External() {
		return p.NotApplicable("etcd is external (EXT101)")
	}
	f, ok := pod.Flag("etcd-servers")
	switch {
	case !ok:
		p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, "the API server's manifest has no --etcd-servers")
		return nil
	case f.Dynamic:
		p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, "--etcd-servers holds a variable")
		return nil
	}
	members, _ := etcdlisten.Members.Try(p, nil)
	urls, bad := endpoint.List(f.Value)
	var wrong []string
	var at *etcdlisten.Member
	unknown := 0
	evidence := []analyze.Evidence{analyze.See(f.Ref, f.Text())}
	for _, u := range urls {
		r, m := etcdlisten.Dial(members, p.Node(), u)
		switch r {
		case etcdlisten.ClientPort:
		case etcdlisten.NotKnown:
			unknown++
		default:
			wrong = append(wrong, u.String()+" "+meets(r, u, m))
			if at == nil || m.Node == p.Node() {
				at = m
			}
		}
	}
	for _, b := range bad {
		wrong = append(wrong, b+" is no URL")
	}
	if len(wrong) == 0 {
		if unknown > 0 {
			p.Unknown(bundle.KindManifests, nil, bundle.NotCollected, fmt.Sprintf("the etcd manifest behind %s", f.Value))
		}
		return nil
	}
	sev, rest := report.Critical, ""
	if len(wrong) < len(urls)+len(bad) {
		sev, rest = report.High, fmt.Sprintf(" (%d of %d URLs)", len(wrong), len(urls)+len(bad))
	}
	right := "https://127.0.0.1:2379"
	listens := ""
	if at != nil {
		right = best(at, p.Node())
		listens = "; etcd listens for clients on " + strings.Join(endpoint.Set(at.Client), ", ")
		if !at.ClientFlag.Ref.IsZero() {
			evidence = append(evidence, analyze.Expect(at.ClientFlag.Ref, at.ClientFlag.Text()))
		}
		if !at.PeerFlag.Ref.IsZero() {
			evidence = append(evidence, analyze.Context(at.PeerFlag.Ref, at.PeerFlag.Text()))
		}
	}
	p.Report(analyze.Finding{
		Subject: "kube-apiserver --etcd-servers", Severity: sev,
		Message:  fmt.Sprintf("kube-apiserver looks for etcd at %s%s%s", strings.Join(wrong, ", "), rest, listens),
		Evidence: evidence,
		Fix: recipe.Edit(pod.File().Origin, staticpod.APIServer, fmt.Sprintf("Set --etcd-servers=%s.", right),
			"apiServer.extraArgs, only if etcd-servers is written there; kubeadm sets the right value by itself"),
	})
	return nil
}

// meets says in words what is wrong with a URL.
func meets(r etcdlisten.Reach, u endpoint.URL, m *etcdlisten.Member) string {
	switch r {
	case etcdlisten.PeerPort:
		return "(etcd's peer port)"
	case etcdlisten.MetricsPort:
		return "(etcd's metrics port)"
	case etcdlisten.OtherScheme:
		return "(etcd speaks " + other(u.Scheme) + " there)"
	case etcdlisten.OtherAddress:
		return "(etcd does not listen on that address)"
	}
	return "(etcd does not listen on that port)"
}

func other(scheme string) string {
	if scheme == "https" {
		return "http"
	}
	return "https"
}

// best is the client URL that fits a node: loopback on the member's own.
func best(m *etcdlisten.Member, n *bundle.Node) string {
	if m.Node == n {
		for _, u := range m.Client {
			if u.Loopback() {
				return u.String()
			}
			if u.Wildcard() {
				u.Host = "127.0.0.1"
				return u.String()
			}
		}
	}
	if len(m.Client) > 0 && !m.Client[0].Wildcard() {
		return m.Client[0].String()
	}
	if len(m.Advertised) > 0 {
		return m.Advertised[0].String()
	}
	return "https://127.0.0.1:2379"
}
