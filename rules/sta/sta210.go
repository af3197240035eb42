package sta

import (
	"fmt"
	"net"
	"slices"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA210", Name: "kubeadm-endpoint-annotation-differs", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Medium, report.Low},
	Latent:     true, Kubeadm: true,
	Doc: analyze.Doc{
		Title: "The kubeadm endpoint annotation of a manifest differs from its flag",
		Why: "kubeadm finds the etcd members and API servers of a cluster through annotations of the static pods, not through their flags. With a wrong " +
			"one join, upgrade and reset talk to an address where nothing listens.",
		Fix:   "Correct the annotation so that it says what the flag says.",
		Links: []string{"https://kubernetes.io/docs/reference/labels-annotations-taints/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Run:   annotations,
})

// Annotations kubeadm writes: cmd/kubeadm/app/constants.
const (
	etcdAnnotation = "kubeadm.kubernetes.io/etcd.advertise-client-urls"
	apiAnnotation  = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"
)

func annotations(p *analyze.Pass) error {
	d, _ := staticpod.Manifests.In(p)
	asked := false
	if pod := d.Component(staticpod.Etcd); pod != nil {
		if a, ok := pod.Annotations[etcdAnnotation]; ok {
			asked = true
			f, _ := pod.Setting("advertise-client-urls")
			say, _ := endpoint.List(a)
			is, _ := endpoint.List(f.Value)
			if !slices.Equal(endpoint.Set(say), endpoint.Set(is)) {
				differs(p, pod, etcdAnnotation, a, f.Value, f)
			}
		}
	}
	if pod := d.Component(staticpod.APIServer); pod != nil {
		if a, ok := pod.Annotations[apiAnnotation]; ok {
			asked = true
			f, _ := pod.Flag("advertise-address")
			port := "6443"
			if s, ok := pod.Flag("secure-port"); ok {
				port = s.Value
			}
			host, ap := endpoint.SplitHostPort(a)
			if f.Ref.IsZero() {
				// The API server picks its address itself; only the port can be compared.
				f, _ = pod.Flag("secure-port")
				if ap != port {
					differs(p, pod, apiAnnotation, a, "port "+port, f)
				}
			} else if host != endpoint.Host(f.Value) || ap != port {
				differs(p, pod, apiAnnotation, a, net.JoinHostPort(endpoint.Host(f.Value), port), f)
			}
		}
	}
	for _, c := range []string{staticpod.Etcd, staticpod.APIServer} {
		if e := d.Broken(c); e != nil && d.Component(c) == nil {
			p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
			asked = true
		}
	}
	if !asked {
		return p.NotApplicable("no manifest carries kubeadm's endpoint annotations")
	}
	return nil
}

func differs(p *analyze.Pass, pod *staticpod.Pod, annotation, says, is string, f staticpod.Flag) {
	if f.Dynamic {
		p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, f.Text()+" holds a variable")
		return
	}
	sev := report.Low
	if p.Target() != "" {
		sev = report.Medium
	}
	ref := pod.Ref("/metadata/annotations/" + pointerEscape(annotation))
	evidence := []analyze.Evidence{analyze.See(ref, annotation+": "+says)}
	if f.Ref.IsZero() {
		evidence = append(evidence, analyze.Expect(pod.File().Ref(), is))
	} else {
		evidence = append(evidence, analyze.Expect(f.Ref, f.Text()))
	}
	p.Report(analyze.Finding{
		Subject: pod.Component() + " endpoint annotation", Severity: sev,
		Message:  fmt.Sprintf("the annotation says %s, the flags say %s; kubeadm believes the annotation", says, is),
		Evidence: evidence,
		Fix:      recipe.Edit(pod.File().Origin, pod.Component(), fmt.Sprintf("Set the annotation %s to %q, if the flag is right.", annotation, is), ""),
	})
}
