package facts

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/host"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/objects"
	"coldplane/analyze/quorum"
	"coldplane/analyze/staticpod"
	"coldplane/report"
)

// losses fills the loss table of a quorum: every control-plane node, every
// failure domain, and the order in which help counts for members that are gone.
func losses(c *analyze.Ctx, q *report.Quorum) {
	v, err := quorum.Joined.Get(c)
	if err != nil || len(v.Clusters) == 0 {
		return
	}
	cl := v.Clusters[0]
	nodes, _ := quorum.Nodes.Get(c)
	l := &loss{c: c, cl: cl, others: v.Clusters[1:], sum: cl.Sum(), dns: map[string]int{}, api: map[string]bool{}}
	l.look()
	zones := map[string][]*quorum.Member{}
	for _, m := range cl.Voters() {
		name, zone := cmp.Or(m.Name, quorum.ID(m.ID)), ""
		if o := nodes.Of(m); o != nil {
			name, zone = o.Name, o.Zone
		}
		q.Nodes = append(q.Nodes, report.NodeLoss{Node: name, Domain: zone, State: lifeState(m.Life), Quorum: l.without(m), API: l.apiWithout(name), VIP: l.vipWithout(name), CoreDNS: l.dnsWithout(name)})
		if zone != "" {
			zones[zone] = append(zones[zone], m)
		}
	}
	slices.SortStableFunc(q.Nodes, func(a, b report.NodeLoss) int { return cmp.Compare(a.Node, b.Node) })
	for zone, ms := range zones {
		d := report.Domain{Name: zone, Quorum: l.without(ms...)}
		var inside []string
		for _, m := range ms {
			d.Members = append(d.Members, cmp.Or(m.Name, quorum.ID(m.ID)))
		}
		if nodes != nil {
			for _, o := range nodes.List {
				if o.Zone == zone {
					inside = append(inside, o.Name)
				}
			}
		}
		slices.Sort(d.Members)
		d.API, d.CoreDNS = l.apiWithout(inside...), l.dnsWithout(inside...)
		q.Domains = append(q.Domains, d)
	}
	slices.SortFunc(q.Domains, func(a, b report.Domain) int { return cmp.Compare(a.Name, b.Name) })
	q.Recovery = l.recovery(nodes)
}

// loss is what the table is computed from.
type loss struct {
	c  *analyze.Ctx
	cl *quorum.Cluster
	// others are the further etcd clusters the evidence speaks of.
	others []*quorum.Cluster
	sum    quorum.Sum
	api    map[string]bool // nodes whose API server was seen: runs or not
	dns    map[string]int  // Running CoreDNS pods by node
	vip    string          // node that holds the endpoint's address
	why    string          // why vip is empty
}

func (l *loss) look() {
	for _, n := range l.c.Nodes() {
		if n.StoreOnly || n.Name == "" {
			continue
		}
		if d, err := staticpod.Manifests.Of(l.c, n); err != nil || d.Component(staticpod.APIServer) == nil {
			continue
		}
		if ps, err := host.Processes.Of(l.c, n); err == nil && len(ps.Items) > 0 {
			l.api[n.Name] = slices.ContainsFunc(ps.Items, isProcess(staticpod.APIServer))
		} else if view, err := cri.OnNode.Of(l.c, n); err == nil && view.Listed {
			l.api[n.Name] = view.Running(staticpod.APIServer) != nil
		}
	}
	if s, err := objects.Cluster.Get(l.c); err == nil {
		for _, p := range s.Pods().Items {
			if coreDNSPod(p.Value) && p.Value.Status.Phase == corev1.PodRunning {
				l.dns[p.Value.Spec.NodeName]++
			}
		}
	}
	l.endpoint()
}

// endpoint looks for the node that holds the address of the cluster's endpoint.
func (l *loss) endpoint() {
	cfg, err := kubeadm.Cluster.Get(l.c)
	if err != nil || cfg.ControlPlaneEndpoint == "" {
		l.why = "no endpoint known"
		return
	}
	addr, err := netip.ParseAddr(quorum.Host(cfg.ControlPlaneEndpoint))
	if err != nil {
		l.why = "not known: the endpoint is a name"
		return
	}
	l.why = "not known: no node in the evidence holds the address"
	for _, n := range l.c.Nodes() {
		ifs, err := host.Interfaces.Of(l.c, n)
		if err != nil {
			continue
		}
		for _, i := range ifs.Items {
			if slices.ContainsFunc(i.Addresses, func(a string) bool { a, _, _ = strings.Cut(a, "/"); return a == addr.String() }) {
				l.vip = n.Name
			}
		}
	}
}

// without says what is left of the quorum when voters that are not lost yet go.
func (l *loss) without(ms ...*quorum.Member) string {
	alive, open := l.sum.Alive, l.sum.Unknown
	for _, m := range ms {
		switch m.Life {
		case quorum.Alive:
			alive--
		case quorum.Unknown:
			open--
		}
	}
	switch {
	case alive >= l.sum.Quorum:
		return "held"
	case alive+open < l.sum.Quorum:
		return "lost"
	}
	return report.NotKnown
}

func (l *loss) apiWithout(names ...string) string {
	if len(l.api) == 0 {
		return report.NotKnown
	}
	runs, left := 0, 0
	for n, up := range l.api {
		if !up {
			continue
		}
		runs++
		if !slices.Contains(names, n) {
			left++
		}
	}
	return fmt.Sprintf("%d of %d that run", left, runs)
}

func (l *loss) vipWithout(name string) string {
	switch l.vip {
	case "":
		return l.why
	case name:
		return "held here: must move"
	}
	return "stays on " + l.vip
}

func (l *loss) dnsWithout(names ...string) string {
	if len(l.dns) == 0 {
		return report.NotKnown
	}
	all, left := 0, 0
	for n, k := range l.dns {
		all += k
		if !slices.Contains(names, n) {
			left += k
		}
	}
	return fmt.Sprintf("%d of %d pods", left, all)
}

// recovery orders the members that do not answer: machines that answer come
// first, as only a process is missing there; then those nothing is known of.
func (l *loss) recovery(nodes *quorum.NodeObjects) []report.Recover {
	var here, away []*quorum.Member
	for _, m := range l.cl.Voters() {
		switch {
		case m.Life == quorum.Alive:
		case l.machine(m, nodes) || l.elsewhere(m, nodes) != nil:
			here = append(here, m)
		case m.Life == quorum.Silent:
			away = append(away, m)
		}
	}
	alive := l.sum.Alive
	var out []report.Recover
	for _, m := range slices.Concat(here, away) {
		alive++
		r := report.Recover{Node: cmp.Or(m.Name, quorum.ID(m.ID)), Quorum: alive == l.sum.Quorum}
		if o := nodes.Of(m); o != nil {
			r.Node = o.Name
		}
		if o := l.elsewhere(m, nodes); o != nil {
			r.Text = fmt.Sprintf("its etcd works in another cluster (%s): decide first which data to keep (QRM112), then join it anew", quorum.ID(o.ID))
		} else if slices.Contains(here, m) {
			r.Text = "the machine answers: see why kubelet and etcd do not run there, and start them"
		} else {
			r.Text = "see first whether its machine answers: power, network, operating system; nothing inside Kubernetes can help before it does"
		}
		switch {
		case r.Quorum:
			r.Text += fmt.Sprintf("; with it %d of %d voters run and quorum is back", alive, l.sum.Voters)
		case alive < l.sum.Quorum:
			r.Text += fmt.Sprintf("; with it %d of %d voters run, which is not enough yet (%d needed)", alive, l.sum.Voters, l.sum.Quorum)
		}
		out = append(out, r)
	}
	return out
}

// elsewhere is the other etcd cluster that the data directory in use on a
// member's node belongs to, or nil.
func (l *loss) elsewhere(m *quorum.Member, nodes *quorum.NodeObjects) *quorum.Cluster {
	name := m.Name
	if o := nodes.Of(m); o != nil {
		name = o.Name
	}
	for _, o := range l.others {
		for _, s := range o.Sources {
			if s.Node != nil && s.Self != 0 && !s.Snapshot && (s.Node == m.Home() || s.Node.Name == name) {
				return o
			}
		}
	}
	return nil
}

// machine reports whether the evidence holds something that only a running
// machine gives, where the member lives.
func (l *loss) machine(m *quorum.Member, nodes *quorum.NodeObjects) bool {
	names := []string{m.Name}
	if o := nodes.Of(m); o != nil {
		names = append(names, o.Name)
	}
	for _, n := range l.c.Nodes() {
		if n == m.Home() || slices.Contains(names, n.Name) {
			if _, err := host.Processes.Of(l.c, n); err == nil {
				return true
			}
			if _, err := host.Clock.Of(l.c, n); err == nil {
				return true
			}
		}
	}
	return false
}

func lifeState(l quorum.Life) string {
	switch l {
	case quorum.Alive:
		return report.Alive
	case quorum.Silent:
		return report.Dead
	}
	return report.NotKnown
}
