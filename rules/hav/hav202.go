package hav

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/host"
	"coldplane/analyze/objects"
	"coldplane/analyze/quorum"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV202", Name: "node-status-contradicts-processes", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Symptom:    true,
	Doc: analyze.Doc{
		Title: "A node's status and the processes on it contradict each other",
		Why: "NotReady means that the kubelet does not report, not that the node is dead: etcd and the API server may run on. Removing such a node's member takes a " +
			"working vote away. The reverse, Ready with nothing running, is a status nobody updates.",
		Fix:   "Start the kubelet and the runtime. Do not remove the etcd member of a node whose etcd runs.",
		Links: []string{"https://kubernetes.io/docs/concepts/architecture/nodes/#condition"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{cri.OnNode, host.Processes, host.Units, quorum.Joined},
	Run:   contradiction,
})

func contradiction(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	compared := false
	for _, o := range set.Nodes().Items {
		i := -1
		nodes := p.Nodes()
		for j, n := range nodes {
			if n.Name == o.Value.Name {
				i = j
			}
		}
		if i < 0 {
			continue
		}
		alive, dead, proof, ok := whatRuns(p, nodes[i])
		if !ok {
			continue
		}
		compared = true
		isReady := ready(o.Value)
		switch {
		case isReady == corev1.ConditionFalse && !serviceDown(p, nodes[i]):
			// The kubelet itself says why it is not ready; nothing contradicts that.
		case isReady != corev1.ConditionTrue && len(alive) > 0:
			sev, more := report.Medium, ""
			if lastVote(p, nodes[i].Name) {
				sev, more = report.High, "; without its etcd member the cluster has no quorum"
			}
			p.Report(analyze.Finding{Node: nodes[i], Subject: "node status", Severity: sev,
				Message:  fmt.Sprintf("node %s is not Ready (%s), but %s run on it%s", o.Value.Name, reasonOf(o.Value), strings.Join(alive, ", "), more),
				Evidence: append([]analyze.Evidence{analyze.See(o.Ref, "Ready="+string(isReady))}, proof...)})
		case isReady == corev1.ConditionTrue && len(alive) == 0 && dead:
			p.Report(analyze.Finding{Node: nodes[i], Subject: "node status", Severity: report.Medium,
				Message:  fmt.Sprintf("node %s is called Ready, but nothing of the control plane runs on it", o.Value.Name),
				Evidence: append([]analyze.Evidence{analyze.See(o.Ref, "Ready=True")}, proof...)})
		}
	}
	if !compared {
		p.Unknown(bundle.KindCRI, nil, bundle.NotCollected, "no node of which both the Node object and the list of containers are here")
	}
	return nil
}

// whatRuns names the control-plane components that run on a node: by its process
// table, which outlives a stopped runtime, else by the runtime's list. dead says
// that some component is known not to run; ok is false when neither is there.
func whatRuns(p *analyze.Pass, n *bundle.Node) (alive []string, dead bool, proof []analyze.Evidence, ok bool) {
	ps, perr := host.Processes.Try(p, n)
	v, verr := cri.OnNode.Try(p, n)
	if verr == nil && !v.Listed {
		v = nil
	}
	if (perr != nil || len(ps.Items) == 0) && v == nil {
		return nil, false, nil, false
	}
	for _, c := range staticpod.Components() {
		if perr == nil {
			if i := slices.IndexFunc(ps.Items, func(x hostfacts.Process) bool { return x.Comm == c[:min(15, len(c))] && x.State != "Z" }); i >= 0 {
				alive = append(alive, c)
				proof = append(proof, analyze.Context(ps.Refs[i], "process "+c))
				continue
			}
		}
		if v == nil {
			continue
		}
		if r := v.Running(c); r != nil && perr != nil {
			alive = append(alive, c)
			proof = append(proof, analyze.Context(r.Where(), c+" running since "+clock(r.Began())))
		} else if x := v.Newest(c); x != nil && !dead {
			dead = true
			proof = append(proof, analyze.Context(x.Where(), c+" "+x.State))
		}
	}
	return alive, dead, proof, true
}

// serviceDown reports whether kubelet or runtime are known not to run.
func serviceDown(p *analyze.Pass, n *bundle.Node) bool {
	l, err := host.Units.Try(p, n)
	if err != nil {
		return false
	}
	for _, u := range l.Items {
		if (u.Name == "kubelet.service" || u.Name == "containerd.service") && u.ActiveState != "" && u.ActiveState != "active" {
			return true
		}
	}
	return false
}

func reasonOf(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return strings.TrimSuffix(fmt.Sprintf("%s %s", c.Status, c.Reason), " ")
		}
	}
	return "no condition"
}

// lastVote reports whether the member of a node cannot be spared.
func lastVote(p *analyze.Pass, node string) bool {
	v, err := quorum.Joined.Try(p, nil)
	if err != nil || len(v.Clusters) == 0 {
		return false
	}
	c := v.Clusters[0]
	s := c.Sum()
	for _, m := range c.Voters() {
		if m.Name == node && s.Voters-s.Silent-1 < s.Quorum {
			return true
		}
	}
	return false
}
