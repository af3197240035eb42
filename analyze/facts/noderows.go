package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/host"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/analyze/quorum"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
	"coldplane/report"
)

// tally counts the states of one component over the nodes.
type tally struct{ alive, dead, open int }

// note counts a state.
func (t *tally) note(state string) {
	switch state {
	case report.Alive:
		t.alive++
	case report.Dead:
		t.dead++
	default:
		t.open++
	}
}

// nodes adds the rows of every node of the evidence.
func (g *grid) nodes() {
	for _, n := range g.e.Set().Nodes {
		if n.StoreOnly {
			continue
		}
		c := g.e.Ctx(n)
		d, derr := staticpod.Manifests.Get(c)
		for _, comp := range staticpod.Components() {
			if derr == nil && d.Component(comp) == nil {
				continue // not meant to run here
			}
			state := g.container(c, n, comp)
			if comp == staticpod.APIServer {
				g.api.note(state)
			}
		}
		g.kubelet(c, n)
		g.mirrors(n)
		g.probes(c, n)
	}
}

// container says whether a component runs: by the process table, by the
// runtime, else by the last line of its log.
func (g *grid) container(c *analyze.Ctx, n *bundle.Node, comp string) string {
	if ps, err := host.Processes.Get(c); err == nil {
		if i := slices.IndexFunc(ps.Items, isProcess(comp)); i >= 0 {
			text := "process runs"
			var at time.Time
			if p := ps.Items[i]; p.StartedAt != nil {
				at = *p.StartedAt
				text += " since " + at.UTC().Format("2006-01-02 15:04:05Z")
			}
			if v, err := cri.OnNode.Get(c); err == nil && v.Listed && v.Running(comp) == nil {
				text += "; the runtime knows of no such running container"
			}
			g.add(report.PlaneOfControl, n.Name, comp, report.Alive, text, at, ps.Refs[i])
			return report.Alive
		}
		if v, err := cri.OnNode.Get(c); (err != nil || v.Newest(comp) == nil) && len(ps.Refs) > 0 {
			g.add(report.PlaneOfControl, n.Name, comp, report.Dead, "no such process", time.Time{}, ps.Refs[0])
			return report.Dead
		}
	}
	if v, err := cri.OnNode.Get(c); err == nil {
		if x := v.Running(comp); x != nil {
			g.add(report.PlaneOfControl, n.Name, comp, report.Alive, fmt.Sprintf("container running, attempt %d", max(x.Attempt, 0)), x.Began(), x.Where())
			return report.Alive
		}
		if x := v.Newest(comp); x != nil && x.State == cri.Exited {
			text := "newest container has ended"
			if x.ExitCode != nil {
				text = fmt.Sprintf("newest container ended with code %d %s", *x.ExitCode, x.Reason)
			}
			g.add(report.PlaneOfControl, n.Name, comp, report.Dead, text, x.FinishedAt, x.Where())
			return report.Dead
		} else if x == nil && v.Listed {
			g.add(report.PlaneOfControl, n.Name, comp, report.Dead, "the runtime has no such container", time.Time{})
			return report.Dead
		}
	}
	l, err := logs.OnNode.Get(c)
	if err != nil {
		g.add(report.PlaneOfControl, n.Name, comp, report.NotKnown, "no runtime or log evidence", time.Time{})
		return report.NotKnown
	}
	streams := l.Of(signature.Named(comp))
	if len(streams) == 0 {
		g.add(report.PlaneOfControl, n.Name, comp, report.NotKnown, "no runtime or log evidence", time.Time{})
		return report.NotKnown
	}
	s := streams[len(streams)-1]
	g.add(report.PlaneOfControl, n.Name, comp, report.LastSeen, "last line of its log", s.Result.Last, s.Ref(s.Result.Lines, 0))
	return report.LastSeen
}

func (g *grid) kubelet(c *analyze.Ctx, n *bundle.Node) {
	if us, err := host.Units.Get(c); err == nil {
		for i, u := range us.Items {
			if u.Name != "kubelet.service" && u.Name != "kubelet" {
				continue
			}
			state := report.Dead
			if u.ActiveState == "active" {
				state = report.Alive
			}
			var at time.Time
			if u.StateChangedAt != nil {
				at = *u.StateChangedAt
			}
			g.add(report.PlaneOfControl, n.Name, "kubelet", state, "unit is "+u.ActiveState+" ("+u.SubState+")", at, us.Refs[i])
			return
		}
	}
	if l, err := logs.OnNode.Get(c); err == nil {
		if ss := l.Of(signature.Kubelet); len(ss) > 0 {
			s := ss[len(ss)-1]
			g.add(report.PlaneOfControl, n.Name, "kubelet", report.LastSeen, "last line of its log", s.Result.Last, s.Ref(s.Result.Lines, 0))
			return
		}
	}
	g.add(report.PlaneOfControl, n.Name, "kubelet", report.NotKnown, "no unit state and no log", time.Time{})
}

// isProcess tells a component's process by its command name, which the kernel
// cuts to 15 bytes.
func isProcess(comp string) func(hostfacts.Process) bool {
	return func(p hostfacts.Process) bool { return p.Comm == comp[:min(15, len(comp))] && p.State != "Z" }
}

// mirrors counts what the store says of the node's static pods.
func (g *grid) mirrors(n *bundle.Node) {
	s, err := objects.Cluster.Get(g.c)
	if err != nil {
		return
	}
	running, all := 0, 0
	var ref bundle.Ref
	for _, p := range s.Pods().Items {
		if p.Value.Annotations[corev1.MirrorPodAnnotationKey] == "" || p.Value.Spec.NodeName != n.Name {
			continue
		}
		if all++; p.Value.Status.Phase == corev1.PodRunning {
			running++
		}
		ref = p.Ref
	}
	if all == 0 {
		return
	}
	var at time.Time
	if last, ok := s.LastWrite(); ok {
		at = last.Time
	}
	g.add(report.PlaneOfControl, n.Name, "mirror pods", report.LastSeen, fmt.Sprintf("%d of %d Running, as last written", running, all), at, ref)
}

// rungs are the steps of the ladder that get a row of their own.
var rungs = []struct{ target, step, row string }{
	{"endpoint", "tcp", "VIP TCP"}, {"endpoint", "get", "VIP authenticated GET"},
	{"local", "livez", "API /livez"}, {"local", "readyz", "API /readyz"}, {"local", "get", "API authenticated GET"},
}

// probes adds what the node reached, each rung for itself.
func (g *grid) probes(c *analyze.Ctx, n *bundle.Node) {
	l, err := host.Ladder.Get(c)
	if err != nil {
		return
	}
	for _, want := range rungs {
		i := slices.IndexFunc(l.Items, func(t hostfacts.Target) bool { return t.Name == want.target })
		if i < 0 {
			continue
		}
		t := l.Items[i]
		j := slices.IndexFunc(t.Rungs, func(r hostfacts.Rung) bool { return r.Step == want.step })
		if j < 0 {
			g.add(report.PlaneOfControl, n.Name, want.row, report.NotKnown, t.URL+": not tried: no credential, or nothing answered before", time.Time{}, l.Refs[i])
			continue
		}
		r := t.Rungs[j]
		state, text := report.Alive, fmt.Sprintf("%s: answered in %d ms", t.URL, r.LatencyMS)
		if !r.OK {
			state, text = report.Dead, fmt.Sprintf("%s: %s", t.URL, strings.TrimSpace(fmt.Sprintf("%s %s", status(r.Status), r.Error)))
		}
		if want.step == "get" {
			g.reads.note(state)
		}
		g.add(report.PlaneOfControl, n.Name, want.row, state, text, r.At, l.Refs[i])
	}
}

func status(code int) string {
	if code == 0 {
		return "no answer"
	}
	return fmt.Sprintf("HTTP %d", code)
}

// members adds every etcd member, also those whose node is not in the evidence.
func (g *grid) members() {
	v, err := quorum.Joined.Get(g.c)
	if err != nil || len(v.Clusters) == 0 {
		return
	}
	nodes, _ := quorum.Nodes.Get(g.c)
	for _, m := range v.Clusters[0].Members {
		if m.Ghost {
			continue
		}
		subject := cmp.Or(m.Name, quorum.ID(m.ID))
		if o := nodes.Of(m); o != nil {
			subject = o.Name
		}
		text, at := "nothing in the evidence says whether it lives", time.Time{}
		var ref bundle.Ref
		if len(m.Proofs) > 0 {
			text, at, ref = m.Proofs[0].Text, m.Proofs[0].At, m.Proofs[0].Ref
		}
		g.add(report.PlaneOfControl, subject, "etcd member", lifeState(m.Life), text, at, ref)
	}
}

// nodeObjects repeats what the store says of the control-plane Nodes and of
// those in the evidence, as the past it is.
func (g *grid) nodeObjects() {
	s, err := objects.Cluster.Get(g.c)
	if err != nil {
		return
	}
	for _, o := range s.Nodes().Items {
		_, control := o.Value.Labels["node-role.kubernetes.io/control-plane"]
		if !control && !slices.ContainsFunc(g.e.Set().Nodes, func(n *bundle.Node) bool { return n.Name == o.Value.Name }) {
			continue
		}
		for _, cond := range o.Value.Status.Conditions {
			if cond.Type == corev1.NodeReady {
				g.add(report.PlaneOfControl, o.Value.Name, "Node object", report.LastSeen, fmt.Sprintf("Ready=%s (%s), as last written", cond.Status, cond.Reason), cond.LastHeartbeatTime.Time, o.Ref)
			}
		}
	}
}
