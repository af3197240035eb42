package sta

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"coldplane/analyze"
	"coldplane/analyze/flagfiles"
	"coldplane/analyze/provenance"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA205", Name: "flags-differ-between-control-planes", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Kubeadm:    true,
	Doc: analyze.Doc{
		Title: "Control-plane nodes run with different settings",
		Why: "Behind one endpoint every request may reach another API server. With different keys, issuers, ranges, authorization or encryption the same request " +
			"succeeds on one node and fails on the next, data written by one cannot be read by the other, and what runs depends on which node leads.",
		Fix: "Decide which value is right, put it into kubeadm-config (extraArgs, extraVolumes) and bring the nodes in line one at a time with kubeadm upgrade node; " +
			"copy key and configuration files that must be the same.",
		Links: []string{
			"https://github.com/kubernetes/kubernetes/issues/66844",
			"https://github.com/kubernetes/kubernetes/issues/110035",
		},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "upgrade", Default: 24, Unit: "hours", Source: "how long different versions on the nodes count as an upgrade in progress"}},
	Needs:  []analyze.Need{staticpod.Manifests},
	Wants:  []analyze.Need{flagfiles.OnNode, provenance.OfNode},
	Run:    flagDrift,
})

// grave flags decide what is accepted, and what data means.
var grave = map[string]bool{
	"service-cluster-ip-range": true, "service-account-issuer": true, "service-account-key-file": true, "encryption-provider-config": true,
	"client-ca-file": true, "authorization-mode": true, "authorization-config": true, "feature-gates": true, "cluster-cidr": true,
}

// own flags belong to a node, or to another rule: etcd-servers to STA201 and
// EXT101, data directories to the DIR rules.
func ownFlag(name string) bool {
	switch name {
	case "advertise-address", "bind-address", "name", "node-ip", "hostname-override", "etcd-servers", "data-dir", "wal-dir", "v", "vmodule", "address",
		"quota-backend-bytes", "external-hostname", "peer-advertise-ip", "peer-advertise-port":
		return true
	}
	return strings.HasSuffix(name, "-urls") || strings.HasPrefix(name, "initial-") || strings.HasPrefix(name, "log")
}

// defaults are the values of flags that are often written out on one node and
// left out on another: cmd/kube-*/app/options of Kubernetes 1.22 to 1.37.
var defaults = map[string]string{
	"profiling": "true", "anonymous-auth": "true", "leader-elect": "true", "allow-privileged": "false", "etcd-prefix": "/registry",
	"enable-bootstrap-token-auth": "false", "event-ttl": "1h0m0s", "secure-port": "", "client-cert-auth": "false", "peer-client-cert-auth": "false",
	"strict-reconfig-check": "true", "pre-vote": "true", "snapshot-count": "", "enable-aggregator-routing": "false", "watch-cache": "true",
	"use-service-account-credentials": "false", "allocate-node-cidrs": "false", "enable-garbage-collector": "true", "service-account-lookup": "true",
	"delete-collection-workers": "1", "max-requests-inflight": "400", "max-mutating-requests-inflight": "200", "request-timeout": "1m0s",
	"auto-compaction-retention": "0", "auto-compaction-mode": "periodic", "heartbeat-interval": "100", "election-timeout": "1000",
}

// A setting is one flag of one node.
type setting struct {
	node *bundle.Node
	pod  *staticpod.Pod
	flag staticpod.Flag // the last of the name; zero when it is not given
	norm string         // comparable value; "" when not given
	show string
}

func flagDrift(p *analyze.Pass) error {
	pods := map[string][]*staticpod.Pod{}
	nodes := map[*staticpod.Pod]*bundle.Node{}
	planes := 0
	seen := map[string]bool{}
	for _, n := range p.Nodes() {
		if seen[n.Machine()] {
			continue // the same machine at another time
		}
		seen[n.Machine()] = true
		d, err := staticpod.Manifests.Try(p, n)
		if err != nil {
			continue
		}
		if d.Component(staticpod.APIServer) != nil {
			planes++
		}
		for _, c := range staticpod.Components() {
			if pod := d.Component(c); pod != nil && !pod.Spec.HostPID {
				pods[c], nodes[pod] = append(pods[c], pod), n
			}
		}
	}
	if planes < 2 && len(pods[staticpod.Etcd]) < 2 {
		if expectsMore(pods) {
			p.Unknown(bundle.KindManifests, nil, bundle.NotCollected, "the manifests of the other control-plane nodes")
			return nil
		}
		return p.NotApplicable("one control-plane node in the input")
	}
	for _, c := range staticpod.Components() {
		if len(pods[c]) < 2 {
			continue
		}
		if why, young := upgrading(p, pods[c], nodes); young {
			if why != "" {
				p.Unknown(bundle.KindManifests, nil, bundle.Undecided, c+": "+why)
			}
		} else {
			compareFlags(p, c, pods[c], nodes)
		}
	}
	compareFiles(p, pods[staticpod.APIServer], nodes)
	return nil
}

// expectsMore reports whether etcd's own flags speak of further members.
func expectsMore(pods map[string][]*staticpod.Pod) bool {
	for _, pod := range pods[staticpod.Etcd] {
		if f, ok := pod.Setting("initial-cluster"); ok && len(f.List()) > 1 {
			return true
		}
	}
	return false
}

// upgrading reports whether the nodes run different versions because somebody
// is at it: the newest manifest is younger than a day. why is set when its age
// is not known.
func upgrading(p *analyze.Pass, pods []*staticpod.Pod, nodes map[*staticpod.Pod]*bundle.Node) (why string, young bool) {
	tags := map[string]bool{}
	newest := pods[0]
	for _, pod := range pods {
		tags[pod.ImageTag()] = true
		a, err1 := version.ParseGeneric(pod.ImageTag())
		b, err2 := version.ParseGeneric(newest.ImageTag())
		if err1 == nil && err2 == nil && b.LessThan(a) {
			newest = pod
		}
	}
	if len(tags) < 2 {
		return "", false
	}
	n := nodes[newest]
	asOf, ok := p.AsOf(n)
	attrs, err := provenance.OfNode.Try(p, n)
	if !ok || err != nil || attrs.Times != "" {
		return "the nodes run different versions, and nothing says whether an upgrade is going on", true
	}
	limit := time.Duration(p.Param("upgrade") * float64(time.Hour))
	return "", asOf.Sub(newest.File().ModTime) <= limit
}

func compareFlags(p *analyze.Pass, component string, pods []*staticpod.Pod, nodes map[*staticpod.Pod]*bundle.Node) {
	names := map[string]bool{}
	for _, pod := range pods {
		for _, f := range pod.Flags {
			if f.Container == pod.Main() && !ownFlag(f.Name) {
				names[f.Name] = true
			}
		}
	}
	var rest []string
	var restEvidence []analyze.Evidence
	for _, name := range sortedKeys(names) {
		var all []setting
		dynamic := false
		for _, pod := range pods {
			s := settingOf(nodes[pod], pod, name)
			dynamic = dynamic || s.flag.Dynamic
			all = append(all, s)
		}
		if dynamic {
			continue
		}
		odd, usual := oddOnes(all)
		if len(odd) == 0 {
			continue
		}
		if grave[name] {
			evidence := []analyze.Evidence{odd[0].evidence(report.RoleSubject)}
			for _, s := range append(odd[1:], usual) {
				evidence = append(evidence, s.evidence(report.RoleExpected))
			}
			p.Report(analyze.Finding{
				Subject: component + " --" + name, Severity: report.High,
				Message:  fmt.Sprintf("--%s of %s differs between the nodes: %s", name, component, table(all)),
				Evidence: evidence, Fix: align(component, "--"+name),
			})
			continue
		}
		rest = append(rest, fmt.Sprintf("--%s (%s)", name, table(all)))
		restEvidence = append(restEvidence, odd[0].evidence(report.RoleSubject), usual.evidence(report.RoleExpected))
	}
	if len(rest) > 0 {
		more := ""
		if len(rest) > shown {
			more = fmt.Sprintf(" and %d more", len(rest)-shown)
			rest = rest[:shown]
		}
		p.Report(analyze.Finding{
			Subject: component + " flags", Severity: report.Medium,
			Message:  fmt.Sprintf("flags of %s differ between the nodes: %s%s", component, strings.Join(rest, ", "), more),
			Evidence: restEvidence, Fix: align(component, "the flags named"),
		})
	}
}

func align(component, what string) []report.Step {
	return []report.Step{
		{Text: fmt.Sprintf("Decide which value of %s is right for the whole cluster. Where it says what data means (encryption, keys, ranges), the nodes that wrote with the other one must still be able to read.", what)},
		{Text: "Write it into kubeadm-config.", Command: "kubectl -n kube-system edit configmap kubeadm-config"},
		{Text: "Let kubeadm write the manifests anew, one control-plane node at a time; look at the difference first.",
			Command: `kubeadm upgrade diff "$(kubeadm version -o short)" && kubeadm upgrade node`},
		{Text: "See that the component runs again before the next node.", Command: fmt.Sprintf("crictl ps --name '^%s$'", component)},
	}
}

func (s setting) evidence(role string) analyze.Evidence {
	if s.flag.Ref.IsZero() {
		return analyze.Evidence{Ref: s.pod.Ref(fmt.Sprintf("/spec/containers/%d/command", s.pod.Main())), Excerpt: s.node.Name + ": not given", Role: role}
	}
	return analyze.Evidence{Ref: s.flag.Ref, Excerpt: s.node.Name + ": " + s.flag.Text(), Role: role}
}

// table is the value of every node, nodes with one value together.
func table(all []setting) string {
	var order []string
	by := map[string][]string{}
	for _, s := range all {
		v := s.show
		if v == "" {
			v = "not given"
		}
		if by[v] == nil {
			order = append(order, v)
		}
		by[v] = append(by[v], s.node.Name)
	}
	var out []string
	for _, v := range order {
		out = append(out, strings.Join(by[v], ", ")+": "+v)
	}
	return strings.Join(out, "; ")
}

// oddOnes splits settings by the value most nodes have; the first of them
// stands for the rest. With equally many it is the first node's.
func oddOnes(all []setting) (odd []setting, usual setting) {
	count := map[string]int{}
	for _, s := range all {
		count[s.norm]++
	}
	best := all[0].norm
	for _, s := range all {
		if count[s.norm] > count[best] {
			best = s.norm
		}
	}
	found := false
	for _, s := range all {
		switch {
		case s.norm != best:
			odd = append(odd, s)
		case !found:
			usual, found = s, true
		}
	}
	return odd, usual
}

func settingOf(n *bundle.Node, pod *staticpod.Pod, name string) setting {
	s := setting{node: n, pod: pod}
	var values []string
	for _, f := range pod.FlagAll(name) {
		s.flag = f
		v := f.Value
		if f.Bare {
			v = "true"
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		s.norm = defaults[name]
		return s
	}
	s.show = strings.Join(values, " ")
	s.norm = normal(n, pod, strings.Join(values, ","))
	return s
}

// normal gives values of one meaning one spelling: order of lists, units of
// durations, capitals of booleans, the node's own name and address.
func normal(n *bundle.Node, pod *staticpod.Pod, v string) string {
	if l := strings.ToLower(v); l == "true" || l == "false" {
		return l
	}
	if d, err := time.ParseDuration(v); err == nil {
		return d.String()
	}
	if a, ok := pod.Flag("advertise-address"); ok && a.Value != "" {
		v = strings.ReplaceAll(v, a.Value, "<address>")
	}
	if len(n.Name) > 2 {
		v = strings.ReplaceAll(v, n.Name, "<node>")
	}
	parts := strings.Split(v, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ",")
}

// compareFiles compares what the files behind flags hold.
func compareFiles(p *analyze.Pass, pods []*staticpod.Pod, nodes map[*staticpod.Pod]*bundle.Node) {
	type held struct {
		setting
		content []*flagfiles.Content
		keys    []string
	}
	names := map[string]bool{}
	by := map[string][]held{}
	for _, pod := range pods {
		contents, err := flagfiles.OnNode.Try(p, nodes[pod])
		if err != nil {
			p.UnknownErr(bundle.KindFiles, nodes[pod], err)
			continue
		}
		mine := map[string]*held{}
		var order []string
		for _, u := range pod.Files() {
			c := contents[flagfiles.Key{Component: staticpod.APIServer, Path: u.Path}]
			if c == nil {
				continue
			}
			h := mine[u.Flag.Name]
			if h == nil {
				h = &held{setting: setting{node: nodes[pod], pod: pod, flag: u.Flag}}
				mine[u.Flag.Name] = h
				order = append(order, u.Flag.Name)
			}
			h.content = append(h.content, c)
			h.keys = append(h.keys, c.Keys...)
		}
		for _, name := range order {
			names[name] = true
			by[name] = append(by[name], *mine[name])
		}
	}
	for _, name := range sortedKeys(names) {
		hs := by[name]
		if len(hs) < 2 {
			continue
		}
		usable := true
		redacted := false
		for i := range hs {
			var parts []string
			for _, c := range hs[i].content {
				if c.Err != nil {
					p.UnknownErr(bundle.KindFiles, hs[i].node, c.Err)
					usable = false
					break
				}
				redacted = redacted || c.Redacted
				parts = append(parts, c.Sum)
			}
			hs[i].norm = strings.Join(append(parts, hs[i].keys...), " ")
			if len(hs[i].keys) > 0 {
				slices.Sort(hs[i].keys)
				hs[i].norm = strings.Join(slices.Compact(hs[i].keys), " ")
			}
		}
		if !usable {
			continue
		}
		var all []setting
		for _, h := range hs {
			all = append(all, h.setting)
		}
		odd, usual := oddOnes(all)
		if len(odd) == 0 {
			if redacted {
				p.Unknown(bundle.KindFiles, nil, bundle.Redacted, "--"+name+": alike but for the secrets, which were taken out")
			}
			continue
		}
		at := func(n *bundle.Node) held {
			return hs[slices.IndexFunc(hs, func(h held) bool { return h.node == n })]
		}
		bad, good := at(odd[0].node), at(usual.node)
		sev := report.Medium
		if grave[name] && !overlap(bad.keys, good.keys) {
			sev = report.High // sharing a key is a rotation half way
		}
		var files, who []string
		var evidence []analyze.Evidence
		for _, c := range bad.content {
			evidence = append(evidence, analyze.See(c.File.Ref(), identity(c)))
			files = append(files, c.File.Origin)
		}
		for _, c := range good.content {
			evidence = append(evidence, analyze.Expect(c.File.Ref(), identity(c)))
			files = append(files, c.File.Origin)
		}
		for _, s := range odd {
			who = append(who, s.node.Name)
		}
		evidence = append(evidence, analyze.Context(odd[0].flag.Ref, odd[0].flag.Text()))
		slices.Sort(files)
		p.Report(analyze.Finding{
			Subject: staticpod.APIServer + " content of --" + name, Severity: sev,
			Message: fmt.Sprintf("%s (--%s) on %s is not what it is on %s: %s", strings.Join(slices.Compact(files), ", "), name,
				strings.Join(who, ", "), usual.node.Name, consequence(name)),
			Evidence: evidence,
			Fix: []report.Step{
				{Text: "Find out which file is right; of two nodes neither is right by number. Keep a copy of both."},
				{Text: fmt.Sprintf("Copy the right one to the other nodes, restart the API server there by moving its manifest out and back, one node at a time. %s", afterwards(name))},
			},
		})
	}
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(k string) bool { return slices.Contains(b, k) })
}

func identity(c *flagfiles.Content) string {
	if len(c.Keys) > 0 {
		short := c.Keys[0]
		if len(short) > 16 {
			short = short[:16]
		}
		return fmt.Sprintf("%d key(s), first SPKI %s", len(c.Keys), short)
	}
	return "sha256 " + c.Sum[:min(16, len(c.Sum))]
}

func consequence(flag string) string {
	switch flag {
	case "service-account-key-file":
		return "tokens of service accounts that one API server accepts, the other rejects"
	case "client-ca-file":
		return "client certificates that one API server accepts, the other rejects"
	case "encryption-provider-config":
		return "what one API server encrypts, the other may not be able to read"
	case "audit-policy-file":
		return "the audit log depends on the node"
	}
	return "requests are judged differently on each node"
}

func afterwards(flag string) string {
	if flag == "service-account-key-file" {
		return "The controller-manager must sign with the matching sa.key: copy it too, and restart the pods that hold tokens of the other key."
	}
	return ""
}

func sortedKeys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
