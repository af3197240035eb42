package facts

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/host"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

// A grid collects the rows of the matrix. Every row is known by itself: none
// is inferred from another.
type grid struct {
	c    *analyze.Ctx
	e    *analyze.Engine
	rows []report.MatrixRow
}

func matrix(e *analyze.Engine, q *report.Quorum) *report.Matrix {
	g := &grid{c: e.Ctx(nil), e: e}
	api := g.nodes()
	g.cluster(q, api)
	if len(g.rows) == 0 {
		return nil
	}
	return &report.Matrix{Rows: g.rows}
}

func (g *grid) add(pl, subject, name, state, text string, at time.Time, refs ...bundle.Ref) {
	row := report.MatrixRow{Plane: pl, Subject: subject, Name: name, State: state, Text: text, Evidence: []report.Evidence{}}
	if !at.IsZero() {
		t := at.UTC()
		row.Time = &t
	}
	for _, r := range refs {
		if !r.IsZero() {
			row.Evidence = append(row.Evidence, analyze.ToEvidence(r, "", report.RoleContext))
		}
	}
	g.rows = append(g.rows, row)
}

// tally counts the states of one component over the nodes.
type tally struct{ alive, dead, open int }

// nodes adds the rows of every node and returns the tally of API servers.
func (g *grid) nodes() (api tally) {
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
				switch state {
				case report.Alive:
					api.alive++
				case report.Dead:
					api.dead++
				default:
					api.open++
				}
			}
		}
		g.kubelet(c, n)
		g.nodeObject(n)
	}
	return api
}

// container says whether a component runs: by the process table, by the
// runtime, else by the last line of its log.
func (g *grid) container(c *analyze.Ctx, n *bundle.Node, comp string) string {
	if ps, err := host.Processes.Get(c); err == nil {
		for i, p := range ps.Items {
			if p.Comm == comp || len(comp) > 15 && p.Comm == comp[:15] {
				text := "process " + comp
				var at time.Time
				if p.StartedAt != nil {
					at = *p.StartedAt
					text += ", started " + at.UTC().Format("2006-01-02 15:04:05Z")
				}
				g.add(report.PlaneOfControl, n.Name, comp, report.Alive, text, at, ps.Refs[i])
				return report.Alive
			}
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

// nodeObject repeats what the store says of the Node, as the past it is.
func (g *grid) nodeObject(n *bundle.Node) {
	s, err := objects.Cluster.Get(g.c)
	if err != nil {
		return
	}
	for _, o := range s.Nodes().Items {
		if o.Value.Name != n.Name {
			continue
		}
		for _, cond := range o.Value.Status.Conditions {
			if cond.Type != corev1.NodeReady {
				continue
			}
			g.add(report.PlaneOfControl, n.Name, "Node object", report.LastSeen, fmt.Sprintf("Ready=%s (%s), as last written", cond.Status, cond.Reason), cond.LastHeartbeatTime.Time, o.Ref)
		}
	}
}

// cluster adds the rows about the cluster as a whole.
func (g *grid) cluster(q *report.Quorum, api tally) {
	if q != nil {
		state := map[string]string{"held": report.Alive, "at-risk": report.Alive, "lost": report.Dead}[q.State]
		if state == "" {
			state = report.NotKnown
		}
		g.add(report.PlaneOfControl, report.SubjectAll, "etcd quorum", state, q.Text, time.Time{})
	}
	if s, err := objects.Cluster.Get(g.c); err == nil {
		g.leaders(s)
		g.coreDNS(s)
		g.applications(s)
	}
	state, text := report.NotKnown, "no runtime evidence of the API servers"
	total := api.alive + api.dead + api.open
	switch {
	case total == 0:
	case q != nil && q.State == "lost":
		state, text = report.Dead, "etcd has no quorum"
	case api.alive == total:
		state, text = report.Alive, fmt.Sprintf("%d of %d API servers run; whether they serve is a probe's question", api.alive, total)
	case api.dead == total:
		state, text = report.Dead, fmt.Sprintf("none of %d API servers runs", total)
	case api.dead > 0 && api.alive > 0:
		state, text = report.PlaneDegraded, fmt.Sprintf("%d of %d API servers run", api.alive, total)
	}
	g.add(report.PlaneOfControl, report.SubjectAll, report.RowControlPlane, state, text, time.Time{})
	g.add(report.PlaneOfUsers, report.SubjectAll, report.RowUserTraffic, report.NotKnown, "no probe of user traffic in the evidence; it is never inferred from the control plane", time.Time{})
}

// leaders compares the renewal of the leader leases with the last write of the store.
func (g *grid) leaders(s *objects.Set) {
	last, ok := s.LastWrite()
	for _, l := range s.Leases().Items {
		if l.Value.Namespace != "kube-system" || l.Value.Name != staticpod.ControllerManager && l.Value.Name != staticpod.Scheduler || l.Value.Spec.RenewTime == nil {
			continue
		}
		holder := ""
		if l.Value.Spec.HolderIdentity != nil {
			holder = *l.Value.Spec.HolderIdentity
		}
		at := l.Value.Spec.RenewTime.Time
		state, text := report.LastSeen, "lease of "+holder
		if ok && last.Time.Sub(at) > 25*time.Second { // lease duration 15 s, retry 10 s: component-base leaderelection
			state, text = report.Dead, fmt.Sprintf("lease of %s not renewed for %s before the last write", holder, span(last.Time.Sub(at)))
		}
		g.add(report.PlaneOfControl, report.SubjectAll, l.Value.Name+" lease", state, text, at, l.Ref)
	}
}

// coreDNS says where CoreDNS was last seen.
func (g *grid) coreDNS(s *objects.Set) {
	nodes := map[string]bool{}
	running, all := 0, 0
	var refs []bundle.Ref
	for _, p := range s.Pods().Items {
		if p.Value.Namespace != "kube-system" || p.Value.Labels["k8s-app"] != "kube-dns" {
			continue
		}
		all++
		if p.Value.Status.Phase == corev1.PodRunning {
			running++
			nodes[p.Value.Spec.NodeName] = true
		}
		if len(refs) < 3 {
			refs = append(refs, p.Ref)
		}
	}
	if all == 0 {
		return
	}
	at := time.Time{}
	if last, ok := s.LastWrite(); ok {
		at = last.Time
	}
	g.add(report.PlaneOfUsers, report.SubjectAll, "CoreDNS", report.LastSeen, fmt.Sprintf("%d of %d pods Running on %d node%s, as last written", running, all, len(nodes), plural(len(nodes))), at, refs...)
}

// applications counts ArgoCD Applications by sync and health.
func (g *grid) applications(s *objects.Set) {
	apps := s.Applications().Items
	if len(apps) == 0 {
		return
	}
	synced, healthy := 0, 0
	for _, a := range apps {
		if a.Value.Status.Sync.Status == "Synced" {
			synced++
		}
		if a.Value.Status.Health.Status == "Healthy" {
			healthy++
		}
	}
	at := time.Time{}
	if last, ok := s.LastWrite(); ok {
		at = last.Time
	}
	g.add(report.PlaneOfUsers, report.SubjectAll, "ArgoCD Applications", report.LastSeen, fmt.Sprintf("%d of %d Synced, %d Healthy, as last written", synced, len(apps), healthy), at, apps[0].Ref)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
