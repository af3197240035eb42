package ext

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/etcdlisten"
	"coldplane/analyze/etcdservice"
	"coldplane/analyze/quorum"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "EXT101", Name: "external-etcd-endpoints-inconsistent", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "The API servers do not use the external etcd that kubeadm remembers",
		Why: "Every API server of a cluster must talk to the same etcd. One that is given other endpoints does not start, or serves another store; and what is " +
			"written only in the manifest is replaced by kubeadm-config at the next upgrade.",
		Fix: "Write the right endpoints into etcd.external.endpoints of kubeadm-config and into --etcd-servers of every API server.",
		Links: []string{
			"https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/high-availability/",
			"https://github.com/kubernetes-sigs/kubespray/issues/5494",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: append(slices.Clone(needs), etcdservice.OnNode, quorum.Joined),
	Run:   inconsistent,
})

func inconsistent(p *analyze.Pass) error {
	t := know(p)
	if stop, err := t.applies(p); stop {
		return err
	}
	want := endpoint.Set(t.endpoints)
	if len(t.clients) == 0 {
		return p.NotApplicable("no API server in the input")
	}
	for _, c := range t.clients {
		switch {
		case c.flag.Ref.IsZero() || c.flag.Dynamic:
			p.Unknown(bundle.KindManifests, c.node, bundle.Undecided, "--etcd-servers is not given, or holds a variable")
			continue
		case t.dead(p, c):
			continue
		case t.misdialled(p, c):
			continue
		case t.strangers(p, c):
			continue
		}
		if len(want) == 0 {
			t.against(p, c, t.clients[0].set(), analyze.Expect(t.clients[0].flag.Ref, t.clients[0].flag.Text()), "the API server on "+t.clients[0].node.Name)
			continue
		}
		ref, _ := t.where()
		ref.Role = report.RoleExpected
		t.against(p, c, want, ref, "kubeadm-config")
	}
	if t.cfg == nil && len(t.clients) == 1 {
		p.Unknown(bundle.KindKubeadmConfig, nil, bundle.NotCollected, "one API server and no kubeadm-config to compare it with")
	}
	return nil
}

// dead reports an API server all of whose endpoints are its own machine, where
// no etcd runs.
func (t *topology) dead(p *analyze.Pass, c *client) bool {
	if len(c.urls) == 0 || c.dir.Component(staticpod.Etcd) != nil {
		return false
	}
	for _, u := range c.urls {
		if !u.Loopback() {
			return false
		}
	}
	want := endpoint.Set(t.endpoints)
	if slices.Equal(c.set(), want) {
		return false // a proxy on every node
	}
	sev, why := report.Critical, "no etcd runs on this node"
	if s, err := etcdservice.OnNode.Try(p, c.node); err == nil && s != nil || slices.ContainsFunc(t.endpoints, func(u endpoint.URL) bool { return u.Host == c.own }) {
		sev, why = report.High, "etcd is configured elsewhere"
	}
	evidence := []analyze.Evidence{analyze.See(c.flag.Ref, c.flag.Text())}
	outside := ""
	if ref, ok := t.where(); ok && len(want) > 0 {
		ref.Role = report.RoleExpected
		evidence = append(evidence, ref)
		outside = "; the external etcd is " + strings.Join(want, ", ")
	}
	times := ""
	if len(c.urls) > 1 && len(c.set()) == 1 {
		times = fmt.Sprintf(" (%d times)", len(c.urls))
	}
	p.Report(analyze.Finding{
		Node: c.node, Subject: "kube-apiserver --etcd-servers", Severity: sev,
		Message:  fmt.Sprintf("kube-apiserver looks for etcd at %s%s, but %s%s", strings.Join(c.set(), ", "), times, why, outside),
		Evidence: evidence, Fix: repair(c, want),
	})
	return true
}

// misdialled reports endpoints that lead to another port than the client port
// of a member whose manifest is known.
func (t *topology) misdialled(p *analyze.Pass, c *client) bool {
	var wrong []string
	var at *etcdlisten.Member
	for _, u := range c.urls {
		r, m := etcdlisten.Dial(t.members, c.node, u)
		if r == etcdlisten.ClientPort || r == etcdlisten.NotKnown {
			continue
		}
		what := map[etcdlisten.Reach]string{etcdlisten.PeerPort: "etcd's peer port", etcdlisten.MetricsPort: "etcd's metrics port",
			etcdlisten.OtherScheme: "wrong scheme", etcdlisten.OtherAddress: "etcd does not listen on that address", etcdlisten.NothingThere: "etcd does not listen on that port"}[r]
		wrong = append(wrong, u.String()+" ("+what+")")
		at = m
	}
	for _, b := range c.bad {
		wrong = append(wrong, b+" (no URL)")
	}
	if len(wrong) == 0 {
		return false
	}
	sev := report.High
	if len(wrong) == len(c.urls)+len(c.bad) {
		sev = report.Critical
	}
	evidence := []analyze.Evidence{analyze.See(c.flag.Ref, c.flag.Text())}
	if at != nil && !at.ClientFlag.Ref.IsZero() {
		evidence = append(evidence, analyze.Expect(at.ClientFlag.Ref, at.ClientFlag.Text()))
	}
	p.Report(analyze.Finding{
		Node: c.node, Subject: "kube-apiserver --etcd-servers", Severity: sev,
		Message:  "kube-apiserver cannot reach etcd at " + strings.Join(wrong, ", "),
		Evidence: evidence, Fix: repair(c, nil),
	})
	return true
}

// strangers reports endpoints that no member announces, where etcd's own list of
// members is at hand. An address in front of all members is announced by none, so
// at least one endpoint must be a member's.
func (t *topology) strangers(p *analyze.Pass, c *client) bool {
	v, err := quorum.Joined.Try(p, nil)
	if err != nil {
		return false
	}
	for _, cl := range v.Clusters {
		var announced []string
		var ref analyze.Evidence
		for _, m := range cl.Members {
			if len(m.ClientURLs) == 0 && !m.Ghost {
				announced = nil // a member that has not told its address may be the one
				break
			}
			urls, _ := endpoint.List(strings.Join(m.ClientURLs, ","))
			announced = append(announced, endpoint.Set(urls)...)
			if len(m.Claims) > 0 {
				ref = analyze.Expect(m.Claims[0].Ref, m.Claims[0].Text)
			}
		}
		var strange []string
		for _, u := range c.urls {
			if s := endpoint.Set([]endpoint.URL{u}); endpoint.IsIP(u.Host) && !slices.Contains(announced, s[0]) {
				strange = append(strange, u.String())
			}
		}
		if len(strange) == 0 || len(announced) == 0 || !slices.ContainsFunc(c.set(), func(u string) bool { return slices.Contains(announced, u) }) {
			continue
		}
		slices.Sort(announced)
		p.Report(analyze.Finding{
			Node: c.node, Subject: "kube-apiserver --etcd-servers", Severity: report.High,
			Message: fmt.Sprintf("no member of the external etcd announces %s, which kube-apiserver uses; its members announce %s",
				strings.Join(strange, ", "), strings.Join(announced, ", ")),
			Evidence: []analyze.Evidence{analyze.See(c.flag.Ref, c.flag.Text()), ref}, Fix: repair(c, nil),
		})
		return true
	}
	return false
}

// against compares one API server's endpoints with what they should be.
func (t *topology) against(p *analyze.Pass, c *client, want []string, other analyze.Evidence, who string) {
	have := c.set()
	var missing, extra []string
	for _, u := range want {
		if !slices.Contains(have, u) {
			missing = append(missing, u)
		}
	}
	for _, u := range have {
		if !slices.Contains(want, u) {
			extra = append(extra, u)
		}
	}
	if len(missing)+len(extra) == 0 {
		return
	}
	var parts []string
	if len(extra) > 0 {
		parts = append(parts, "it has "+strings.Join(extra, ", "))
	}
	if len(missing) > 0 {
		parts = append(parts, "it lacks "+strings.Join(missing, ", "))
	}
	p.Report(analyze.Finding{
		Node: c.node, Subject: "kube-apiserver --etcd-servers", Severity: report.High,
		Message:  fmt.Sprintf("the etcd endpoints of kube-apiserver are not those of %s: %s", who, strings.Join(parts, " and ")),
		Evidence: []analyze.Evidence{analyze.See(c.flag.Ref, c.flag.Text()), other}, Fix: repair(c, want),
	})
}

// repair gives the steps; want is what kubeadm-config says, nil when it does not.
func repair(c *client, want []string) []report.Step {
	change, keep := "Set --etcd-servers to the client URLs of the external etcd.", "etcd.external.endpoints"
	ask := "https://ETCD-HOST:2379"
	if len(want) > 0 {
		change = "Set --etcd-servers=" + strings.Join(want, ",") + ", if those are the members; see first that they answer and hold this cluster's data."
		keep, ask = "", want[0]
	}
	file := func(flag, placeholder string) string {
		if f, ok := c.pod.Flag(flag); ok && !f.Dynamic {
			return recipe.Quote(f.Value)
		}
		return placeholder
	}
	return append([]report.Step{{Text: "Ask the external etcd which client URLs its members have (with an etcdctl on this node, and the API server's own credentials).",
		Command: fmt.Sprintf("etcdctl --endpoints=%s --cacert=%s --cert=%s --key=%s member list -w table", recipe.Quote(ask),
			file("etcd-cafile", "CA"), file("etcd-certfile", "CERT"), file("etcd-keyfile", "KEY"))}},
		recipe.Edit(c.pod.File().Origin, staticpod.APIServer, change, keep)...)
}
