package upg

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/analyze/releases"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG101", Name: "unsupported-version-skew", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Versions are further apart than Kubernetes supports",
		Why: "Components speak to API servers that are older or newer than they were built for. A kubelet newer than an API server sends fields " +
			"the API server drops; one that is too old may stop to report its pods. kubeadm refuses to upgrade from such a state.",
		Fix: "Finish the upgrade, or take back its half: first all API servers, then the controller managers and schedulers, then the kubelets, one minor at a time.",
		Links: []string{
			"https://kubernetes.io/releases/version-skew-policy/",
		},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "kubelet", Default: 3, Unit: "minors", Source: "version skew policy: kubelet and kube-proxy up to three minors older than the API server"},
		{Name: "oldkubelet", Default: 2, Unit: "minors", Source: "version skew policy for kubelets before 1.25"},
	},
	Needs: []analyze.Need{running.OnNode},
	Wants: []analyze.Need{running.Nodes, objects.Cluster},
	Run:   skew,
})

func skew(p *analyze.Pass) error {
	s := &skewCheck{p: p}
	for _, n := range p.Nodes() {
		r, err := running.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		if a := r.Of(staticpod.APIServer); a != nil {
			s.api = append(s.api, a)
		}
		s.nodes = append(s.nodes, r)
	}
	if len(s.api) == 0 {
		p.Unknown(bundle.KindManifests, nil, bundle.NotCollected, "no API server's version is known")
		return nil
	}
	s.oldest, s.newest = s.api[0], s.api[0]
	for _, a := range s.api {
		if a.Less(s.oldest.Version) {
			s.oldest = a
		}
		if s.newest.Less(a.Version) {
			s.newest = a
		}
	}
	s.apiServers()
	s.local()
	s.kubelets()
	s.proxy()
	return nil
}

type skewCheck struct {
	p              *analyze.Pass
	api            []*running.Version
	nodes          []*running.Node
	oldest, newest *running.Version
}

// rolling reports whether API servers of two neighbouring minors say that an
// upgrade is under way; skews it explains weigh one step less.
func (s *skewCheck) rolling() bool { return s.newest.Minor-s.oldest.Minor == 1 }

func (s *skewCheck) report(subject, msg string, sev report.Severity, node *bundle.Node, ev ...analyze.Evidence) {
	s.p.Report(analyze.Finding{Node: node, Subject: subject, Severity: sev, Message: msg, Evidence: ev})
}

func (s *skewCheck) apiServers() {
	if s.newest.Minor-s.oldest.Minor <= 1 {
		return
	}
	s.report("kube-apiserver", fmt.Sprintf("API servers run %s (%s) and %s (%s); more than one minor apart is not supported", s.newest.Version, s.newest.Node, s.oldest.Version, s.oldest.Node),
		report.High, nil, analyze.See(s.oldest.Ref, s.oldest.Text), analyze.Expect(s.newest.Ref, s.newest.Text))
}

// local compares the controller manager and the scheduler with the API server
// beside them: kubeadm points them there, or at the endpoint since 1.35.
func (s *skewCheck) local() {
	for _, n := range s.nodes {
		a := n.Of(staticpod.APIServer)
		if a == nil {
			continue
		}
		for _, c := range []string{staticpod.ControllerManager, staticpod.Scheduler} {
			v := n.Of(c)
			if v == nil || v.Major != 1 {
				continue
			}
			what := ""
			switch {
			case v.Minor > a.Minor:
				what = "newer than"
			case a.Minor-v.Minor > 1:
				what = "more than one minor older than"
			default:
				continue
			}
			sev := report.High
			if s.rolling() && v.Minor <= s.newest.Minor {
				sev = report.Medium
			}
			s.report(c+" on "+n.Node.Name, fmt.Sprintf("%s %s is %s the API server on the same node, %s; finish the control plane of this node", c, v.Version, what, a.Version),
				sev, n.Node, analyze.See(v.Ref, v.Text), analyze.Expect(a.Ref, a.Text))
		}
	}
}

func (s *skewCheck) kubelets() {
	type kl struct {
		name string
		v    releases.Version
		ref  bundle.Ref
		how  string
	}
	var all []kl
	seen := map[string]bool{}
	for _, n := range s.nodes {
		if v := n.Of(running.Kubelet); v != nil && v.Certain() {
			all = append(all, kl{n.Node.Name, v.Version, v.Ref, v.How})
			seen[n.Node.Name] = true
		}
	}
	if os, err := running.Nodes.Try(s.p, nil); err == nil {
		for _, o := range os {
			if !seen[o.Name] && !o.Kubelet.IsZero() {
				all = append(all, kl{o.Name, o.Kubelet, o.Ref, running.ByNode})
			}
		}
	}
	old, young := map[string][]kl{}, map[string][]kl{}
	for _, k := range all {
		if k.v.Major != 1 {
			continue
		}
		limit := int(s.p.Param("kubelet"))
		if k.v.Minor < 25 {
			limit = int(s.p.Param("oldkubelet"))
		}
		switch {
		case k.v.Minor > s.oldest.Minor:
			young[k.v.MinorString()] = append(young[k.v.MinorString()], k)
		case s.newest.Minor-k.v.Minor > limit:
			old[k.v.MinorString()] = append(old[k.v.MinorString()], k)
		}
	}
	tell := func(groups map[string][]kl, what string, sev func(kl) report.Severity, against *running.Version) {
		for _, m := range sortedKeys(groups) {
			ks := groups[m]
			var names []string
			var ev []analyze.Evidence
			for i, k := range ks {
				names = append(names, k.name)
				if i < 5 {
					ev = append(ev, analyze.See(k.ref, "kubelet "+k.v.String()+" ("+k.how+")"))
				}
			}
			ev = append(ev, analyze.Expect(against.Ref, against.Text))
			s.report("kubelets "+m, fmt.Sprintf("%s: kubelet %s %s %s (%s)", list(names, 5), m, what, against.Version, against.Node), sev(ks[0]), nil, ev...)
		}
	}
	tell(young, "is newer than the API server", func(k kl) report.Severity {
		if k.v.Minor <= s.newest.Minor && s.rolling() {
			return report.Medium
		}
		return report.High
	}, s.oldest)
	tell(old, "is too old for the API server", func(kl) report.Severity { return report.High }, s.newest)
}

// proxy judges the image of the kube-proxy DaemonSet.
func (s *skewCheck) proxy() {
	set, err := objects.Cluster.Try(s.p, nil)
	if err != nil {
		return
	}
	for _, d := range set.DaemonSets().Items {
		if d.Value.Namespace != "kube-system" || d.Value.Name != "kube-proxy" || len(d.Value.Spec.Template.Spec.Containers) == 0 {
			continue
		}
		image := d.Value.Spec.Template.Spec.Containers[0].Image
		v, ok := releases.Parse(image[strings.LastIndexByte(image, ':')+1:])
		if !ok || v.Major != 1 {
			continue
		}
		what, against, sev := "", s.oldest, report.High
		switch {
		case v.Minor > s.oldest.Minor:
			what = "newer than"
			if s.rolling() && v.Minor <= s.newest.Minor {
				sev = report.Medium
			}
		case s.newest.Minor-v.Minor > int(s.p.Param("kubelet")):
			what, against = "too old for", s.newest
		default:
			continue
		}
		s.report("kube-proxy", fmt.Sprintf("kube-proxy %s is %s the API server %s (%s)", v, what, against.Version, against.Node), sev, nil,
			analyze.See(d.Ref, "image: "+image), analyze.Expect(against.Ref, against.Text))
	}
}
