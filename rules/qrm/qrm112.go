package qrm

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcdctl"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/quorum"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM112", Name: "etcd-nodes-in-different-clusters", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "Control-plane nodes hold etcd data that do not belong together",
		Why: "Every etcd cluster has an id made when it was bootstrapped or restored; members of different ids refuse each other. When one node was restored " +
			"or initialised alone, each part goes on with its own data: API servers answer differently, and what one part accepted is lost when the other is chosen. " +
			"A member that was not wiped keeps calling with the old id. A data directory copied from node to node makes two servers of one member, each voting for the other.",
		Fix: "Decide which part holds the data to keep, by newest writes and revision, and save a snapshot of every part first. Stop etcd on the others, archive their data directories, " +
			"and join them to the chosen one anew; or restore the same snapshot on all nodes with the full --initial-cluster.",
		Links: []string{"https://github.com/kubernetes/kubeadm/issues/2641", "https://etcd.io/docs/v3.6/op-guide/recovery/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{etcdwal.OnNode, etcdctl.OnNode, logs.OnNode, staticpod.Manifests},
	Run:   differentClusters,
})

// party is what one node shows of its cluster.
type party struct {
	node    *bundle.Node
	cluster uint64
	members int // listed by the node itself; 0 when not known
	ref     bundle.Ref
	what    string
}

func differentClusters(p *analyze.Pass) error {
	sameMember(p)
	parties := clusterIDs(p)
	var ids []uint64
	for _, x := range parties {
		if x.cluster != 0 && !slices.Contains(ids, x.cluster) {
			ids = append(ids, x.cluster)
		}
	}
	slices.Sort(ids)
	if len(ids) > 1 || aloneEach(parties) {
		reportParties(p, parties, ids)
		return nil
	}
	if foreignPeers(p) {
		return nil
	}
	if len(parties) == 0 && !anyLog(p) {
		p.Unknown(bundle.KindWAL, nil, bundle.NotCollected, "no write-ahead log, no member list and no etcd log names a cluster")
	}
	return nil
}

// clusterIDs collects one answer per node: its log's, else its etcdctl's.
func clusterIDs(p *analyze.Pass) []party {
	var out []party
	for _, n := range p.All() {
		if x, ok := walParty(p, n); ok {
			out = append(out, x)
			continue
		}
		if s, err := etcdctl.OnNode.Try(p, n); err == nil && n.Name != "" {
			for _, l := range s.Members {
				if l.ClusterID != 0 || len(l.Members) > 0 {
					out = append(out, party{n, l.ClusterID, len(l.Members), l.Ref, "member list"})
					break
				}
			}
		}
	}
	// Answers of several endpoints saved in one place.
	for _, n := range p.All() {
		s, err := etcdctl.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, x := range s.Status {
			if x.ClusterID != 0 && !slices.ContainsFunc(out, func(o party) bool { return o.cluster == x.ClusterID }) {
				out = append(out, party{n, x.ClusterID, 0, x.Ref, "endpoint status of " + x.Endpoint})
			}
		}
	}
	return out
}

// walParty reads the cluster id out of the log of the node's own member.
func walParty(p *analyze.Pass, n *bundle.Node) (party, bool) {
	ds, err := etcdwal.OnNode.Try(p, n)
	if err != nil {
		return party{}, false
	}
	if m, err := staticpod.Manifests.Try(p, n); err == nil && m.Component(staticpod.Etcd) == nil && m.ControlPlane() {
		return party{}, false // etcd runs elsewhere; what lies here is a leftover
	}
	d := ds.Live()
	if d == nil || d.Log == nil || !d.Log.Identified {
		return party{}, false
	}
	x := party{node: n, cluster: d.Log.Identity.Cluster, ref: d.LogRef(), what: "write-ahead log in " + d.WALDir}
	if m, ok := d.Membership(); ok {
		x.members = len(m.Members)
	}
	return x, true
}

// aloneEach reports that at least two nodes each list one member only, while
// no cluster id tells: each has made a cluster of its own.
func aloneEach(parties []party) bool {
	alone := 0
	for _, x := range parties {
		if x.cluster != 0 || x.members > 1 {
			return false
		}
		if x.members == 1 && x.node.Name != "" {
			alone++
		}
	}
	return alone > 1
}

func reportParties(p *analyze.Pass, parties []party, ids []uint64) {
	var parts []string
	f := analyze.Finding{Subject: "etcd cluster", Severity: report.Critical}
	for _, x := range parties {
		s := nodeName(x.node) + " in a cluster of its own"
		if x.cluster != 0 {
			s = nodeName(x.node) + " in " + quorum.ID(x.cluster)
		}
		if x.members > 0 {
			s += fmt.Sprintf(" (%s listed)", plural(x.members, "member"))
		}
		parts = append(parts, s)
		excerpt := x.what
		if x.cluster != 0 {
			excerpt += ": cluster id " + quorum.ID(x.cluster)
		}
		f.Evidence = append(f.Evidence, analyze.Context(x.ref, excerpt))
	}
	// The smallest party is the one to look at first.
	slices.SortStableFunc(f.Evidence, func(a, b analyze.Evidence) int { return count(parties, a) - count(parties, b) })
	f.Evidence[0].Role = report.RoleSubject
	what := fmt.Sprintf("%d etcd clusters", len(ids))
	if len(ids) < 2 {
		what = "several etcd clusters"
	}
	f.Message = "the nodes belong to " + what + ": " + strings.Join(parts, "; ")
	if hits := foreignHits(p); len(hits) > 0 {
		f.Evidence = append(f.Evidence, analyze.Context(hits[0].Ref(), hits[0].Excerpt()))
	}
	f.Fix = []report.Step{
		{Text: "Stop writes: move the API server manifests out on all nodes, so that the parts do not drift further apart."},
		{Text: "Copy the data directory of every node, or save a snapshot of every part, to another machine."},
		{Text: "Compare their newest writes and revisions and choose the part to keep; what the others accepted since they parted is lost, list it first."},
		{Text: "Keep the chosen member running, wipe the others' data directories after archiving them, and join them anew; or restore one snapshot on all nodes with the full --initial-cluster and a new token."},
	}
	p.Report(f)
}

// count is how many nodes share the cluster an evidence shows.
func count(parties []party, e analyze.Evidence) int {
	var id uint64
	for _, x := range parties {
		if x.ref == e.Ref {
			id = x.cluster
		}
	}
	n := 0
	for _, x := range parties {
		if x.cluster == id {
			n++
		}
	}
	return n
}

func foreignHits(p *analyze.Pass) []logs.At {
	var out []logs.At
	for _, n := range p.All() {
		if l, err := logs.OnNode.Try(p, n); err == nil {
			out = append(out, l.Hits(signature.Etcd, "E14", "E15")...)
		}
	}
	logs.SortHits(out)
	return out
}

func anyLog(p *analyze.Pass) bool {
	for _, n := range p.All() {
		if l, err := logs.OnNode.Try(p, n); err == nil && l.Has(signature.Etcd) {
			return true
		}
	}
	return false
}

// foreignPeers reports what logs alone show: a peer of another cluster calls.
func foreignPeers(p *analyze.Pass) bool {
	hits := foreignHits(p)
	if len(hits) == 0 {
		return false
	}
	last := hits[len(hits)-1]
	theirs, ours := mismatch(last)
	who := "a peer"
	if id := last.Value("remote-peer-id"); id != "" {
		who = "peer " + id
	}
	what := who + " of another cluster is talking to this member"
	if theirs != "" && ours != "" {
		what = fmt.Sprintf("%s of cluster %s is talking to a member of cluster %s", who, theirs, ours)
	}
	n := 0
	for _, h := range hits {
		if h.Stream == last.Stream {
			n++
		}
	}
	p.Report(analyze.Finding{
		Node: last.Stream.File.Node, Subject: "etcd peer", Severity: report.High, Confidence: report.Probable,
		Message:    fmt.Sprintf("%s (%s in the log)", what, plural(n, "line")),
		Evidence:   []analyze.Evidence{last.See(), analyze.Context(hits[0].Ref(), hits[0].Excerpt())},
		ObservedAt: last.Time,
		Fix: []report.Step{
			{Text: "Find the machine that sends from the other cluster id: a member that was not wiped when the cluster was restored, or started with --force-new-cluster."},
			{Text: "If it is no longer wanted, stop etcd there and archive its data directory; its member id must not be used again."},
			{Text: "If it is to take part, wipe its data directory and join it to this cluster anew."},
		},
	})
	return true
}

// mismatch reads both cluster ids: from the fields of zap lines, or from the
// text of older ones.
func mismatch(h logs.At) (theirs, ours string) {
	theirs, ours = h.Value("remote-peer-cluster-id"), h.Value("local-member-cluster-id")
	if theirs != "" && ours != "" {
		return theirs, ours
	}
	_, rest, ok := strings.Cut(h.Excerpt(), "(got ")
	if !ok {
		return theirs, ours
	}
	got, rest, ok := strings.Cut(rest, " want ")
	if !ok {
		return theirs, ours
	}
	want, _, _ := strings.Cut(rest, ")")
	return got, want
}
