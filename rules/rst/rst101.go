package rst

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/etcdctl"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "RST101", Name: "restored-with-default-identity", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "Restored with default member identity",
		Why: "`snapshot restore` without --name, --initial-cluster and --initial-advertise-peer-urls makes member 8e9e05c52164694d with peer URL http://localhost:2380. " +
			"It works alone and cannot be reached: no other member can join or stay.",
		Fix: "On a single control plane first check that the member is no learner, then give it its address with `etcdctl member update`. With several control-plane nodes " +
			"restore again, on every node, with its full identity.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/recovery/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{etcddb.OnNode, etcdctl.OnNode, staticpod.Manifests, objects.Cluster, logs.OnNode},
	Run:   defaultIdentity,
})

// defaultID is sha1 of http://localhost:2380 and the default token, which restore
// uses when it is told nothing.
const defaultID = 0x8e9e05c52164694d

func defaultIdentity(p *analyze.Pass) error {
	several := controlPlanes(p) > 1
	looked := 0
	judge := func(n *bundle.Node, ref bundle.Ref, text string, id uint64, name string, peers, clients []string, count int) {
		ha := several || count > 1
		var why []string
		local := false
		for _, u := range peers {
			local = local || loopback(u)
		}
		if id == defaultID {
			why = append(why, "member id "+etcdstore.MemberID(id)+" is what restore makes without options")
		}
		if local && (ha || id == defaultID || name == "default") {
			why = append(why, "peer URL "+strings.Join(peers, ",")+" is loopback")
		}
		if name == "default" && local {
			why = append(why, "its name is \"default\"")
		}
		for _, u := range clients {
			if ha && loopback(u) && len(clients) == 1 {
				why = append(why, "client URL "+u+" is loopback")
			}
		}
		if len(why) == 0 || id == defaultID && !local {
			return
		}
		sev := report.Medium
		fix := []report.Step{
			{Text: "Check that the member is not a learner; some etcd versions promote one by member update.", Command: "etcdctl member list -w table"},
			{Text: "Give it the node's address.", Command: fmt.Sprintf("etcdctl member update %s --peer-urls=https://NODE-IP:2380", etcdstore.MemberID(id))},
			{Text: "Verify the member list and that --initial-advertise-peer-urls of the etcd manifest says the same."},
		}
		if ha {
			sev, fix = report.High, restoreFix()
		}
		f := analyze.Finding{Node: n, Subject: "member " + etcdstore.MemberID(id), Severity: sev, Fix: fix,
			Message:  fmt.Sprintf("member %s (name %q) was restored without its identity: %s", etcdstore.MemberID(id), name, strings.Join(why, "; ")),
			Evidence: []analyze.Evidence{analyze.See(ref, text)}}
		f.Evidence = append(f.Evidence, identityContext(p, n)...)
		p.Report(f)
	}
	seen := map[uint64]bool{}
	for _, m := range members(p) {
		looked++
		if fresh(m.s) {
			continue
		}
		for _, x := range m.s.Members {
			seen[x.ID] = true
			judge(m.node, m.db.AtKey("members/"+etcdstore.MemberID(x.ID), 0), fmt.Sprintf("name %q, peerURLs %v, clientURLs %v", x.Name, x.PeerURLs, x.ClientURLs),
				x.ID, x.Name, x.PeerURLs, x.ClientURLs, len(m.s.Members))
		}
	}
	for _, n := range p.All() {
		s, err := etcdctl.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, l := range s.Members {
			looked++
			for _, x := range l.Members {
				if !seen[x.ID] {
					seen[x.ID] = true
					judge(n, x.Ref, x.Text, x.ID, x.Name, x.PeerURLs, x.ClientURLs, len(l.Members))
				}
			}
		}
	}
	if looked == 0 {
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "no etcd database and no member list")
	}
	return nil
}

// identityContext adds what the manifest and the log say of the member's name.
func identityContext(p *analyze.Pass, n *bundle.Node) (out []analyze.Evidence) {
	if n == nil || n.Name == "" {
		return nil
	}
	if m, err := staticpod.Manifests.Try(p, n); err == nil {
		if pod := m.Component(staticpod.Etcd); pod != nil {
			for _, name := range []string{"initial-advertise-peer-urls", "name"} {
				if fl, ok := pod.Setting(name); ok {
					out = append(out, analyze.Expect(fl.Ref, fl.Text()))
				}
			}
		}
	}
	if l, err := logs.OnNode.Try(p, n); err == nil {
		if hit, ok := l.Last(signature.Etcd, "E88"); ok {
			out = append(out, analyze.Context(hit.Ref(), hit.Excerpt()))
		}
	}
	return out
}

// controlPlanes counts control-plane nodes: manifests given, Node objects, or
// the initial cluster of a manifest, whichever is most.
func controlPlanes(p *analyze.Pass) int {
	n := 0
	for _, node := range p.Nodes() {
		m, err := staticpod.Manifests.Try(p, node)
		if err != nil {
			continue
		}
		if m.Component(staticpod.APIServer) != nil || m.Component(staticpod.Etcd) != nil {
			n++
		}
		if pod := m.Component(staticpod.Etcd); pod != nil {
			if fl, ok := pod.Setting("initial-cluster"); ok {
				n = max(n, len(fl.List()))
			}
		}
	}
	if s, err := objects.Cluster.Try(p, nil); err == nil {
		in := 0
		for _, o := range s.Nodes().Items {
			if isControlPlane(o.Value) {
				in++
			}
		}
		n = max(n, in)
	}
	return n
}

func isControlPlane(n *corev1.Node) bool {
	_, a := n.Labels["node-role.kubernetes.io/control-plane"]
	_, b := n.Labels["node-role.kubernetes.io/master"]
	return a || b
}
