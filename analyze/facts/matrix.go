package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
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

	api     tally    // API servers by their processes and containers
	reads   tally    // authenticated reads that were tried
	full    bool     // an alarm refuses writes
	orphans []string // components whose lease nobody renews
}

func matrix(e *analyze.Engine, q *report.Quorum) *report.Matrix {
	g := &grid{c: e.Ctx(nil), e: e}
	g.nodes()
	g.members()
	g.nodeObjects()
	g.cluster(q)
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
		if !r.IsZero() && r.Path != "" {
			row.Evidence = append(row.Evidence, analyze.ToEvidence(r, "", report.RoleContext))
		}
	}
	g.rows = append(g.rows, row)
}

// cluster adds the rows about the cluster as a whole.
func (g *grid) cluster(q *report.Quorum) {
	if q != nil {
		state := map[string]string{"held": report.Alive, "at-risk": report.Alive, "lost": report.Dead}[q.State]
		if state == "" {
			state = report.NotKnown
		}
		g.add(report.PlaneOfControl, report.SubjectAll, "etcd quorum", state, q.Text, time.Time{})
	}
	g.alarm()
	if s, err := objects.Cluster.Get(g.c); err == nil {
		g.leaders(s)
		g.coreDNS(s)
		g.applications(s)
	}
	state, text := g.control(q)
	g.add(report.PlaneOfControl, report.SubjectAll, report.RowControlPlane, state, text, time.Time{})
	g.add(report.PlaneOfUsers, report.SubjectAll, report.RowUserTraffic, report.NotKnown, "no probe of user traffic in the evidence; it is never inferred from the control plane", time.Time{})
}

// control sums up whether the control plane can be used: what stops it first,
// then what takes a part of it away.
func (g *grid) control(q *report.Quorum) (state, text string) {
	total := g.api.alive + g.api.dead + g.api.open
	tried := g.reads.alive + g.reads.dead
	switch {
	case q != nil && q.State == "lost":
		return report.Dead, "etcd has no quorum"
	case tried > 0 && g.reads.alive == 0:
		return report.Dead, fmt.Sprintf("none of %d authenticated reads passed", tried)
	case total > 0 && g.api.dead == total:
		return report.Dead, fmt.Sprintf("none of %d API servers runs", total)
	case tried == 0 && g.api.alive == 0:
		return report.NotKnown, "no probe, and no runtime evidence of the API servers"
	case g.full:
		return report.PlaneDegraded, "reads pass, writes are refused: NOSPACE is raised"
	case len(g.orphans) > 0:
		return report.PlaneDegraded, "nobody leads: " + strings.Join(g.orphans, ", ")
	case g.reads.dead > 0:
		return report.PlaneDegraded, fmt.Sprintf("%d of %d authenticated reads passed", g.reads.alive, tried)
	case g.api.dead > 0:
		return report.PlaneDegraded, fmt.Sprintf("%d of %d API servers run", g.api.alive, total)
	case g.reads.alive > 0:
		return report.Alive, fmt.Sprintf("%d of %d authenticated reads passed", g.reads.alive, tried)
	case g.api.open > 0:
		return report.NotKnown, fmt.Sprintf("%d of %d API servers run; nothing is known of the others", g.api.alive, total)
	}
	return report.Alive, fmt.Sprintf("%d of %d API servers run; whether they serve is a probe's question", g.api.alive, total)
}

// alarm looks whether a member of the cluster refuses writes, in a store that is in use.
func (g *grid) alarm() {
	for _, n := range g.e.Set().Nodes {
		dbs, err := etcddb.OnNode.Get(g.e.Ctx(n))
		if err != nil || dbs.Live() == nil || dbs.Live().Store == nil {
			continue
		}
		s := dbs.Live().Store
		for _, a := range s.Alarms {
			if a.Type == "NOSPACE" && slices.ContainsFunc(s.Members, func(m etcdstore.Member) bool { return m.ID == a.MemberID }) && !g.full {
				g.full = true
				g.add(report.PlaneOfControl, report.SubjectAll, "writes", report.Dead, "refused: NOSPACE is raised in the database of "+n.Name, time.Time{}, dbs.Live().Ref())
			}
		}
	}
}

// leaders compares the renewal of the leader leases with the last write of the store.
func (g *grid) leaders(s *objects.Set) {
	last, ok := s.LastWrite()
	asOf := g.c.AsOf()
	for _, l := range s.Leases().Items {
		if l.Value.Namespace != "kube-system" || l.Value.Name != staticpod.ControllerManager && l.Value.Name != staticpod.Scheduler || l.Value.Spec.RenewTime == nil {
			continue
		}
		holder := "nobody"
		if h := l.Value.Spec.HolderIdentity; h != nil && *h != "" {
			holder, _, _ = strings.Cut(*h, "_")
		}
		at := l.Value.Spec.RenewTime.Time
		state, text := report.LastSeen, "held by "+holder
		switch {
		case ok && last.Time.Sub(at) > leaseStale:
			state, text = report.Dead, fmt.Sprintf("held by %s, not renewed for %s before the last write", holder, span(last.Time.Sub(at)))
			g.orphans = append(g.orphans, l.Value.Name)
		case asOf.Source != "inferred" && !asOf.Time.IsZero() && asOf.Time.Sub(at).Abs() <= leaseStale:
			state = report.Alive
		}
		g.add(report.PlaneOfControl, report.SubjectAll, l.Value.Name+" lease", state, text, at, l.Ref)
	}
}

// leaseStale is the age at which a leader lease is nobody's: duration 15 s and
// retry 10 s (component-base/config/options).
const leaseStale = 25 * time.Second

func coreDNSPod(p *corev1.Pod) bool {
	return p.Namespace == "kube-system" && p.Labels["k8s-app"] == "kube-dns"
}

// coreDNS says where CoreDNS was last seen.
func (g *grid) coreDNS(s *objects.Set) {
	nodes := map[string]bool{}
	running, all := 0, 0
	var refs []bundle.Ref
	for _, p := range s.Pods().Items {
		if !coreDNSPod(p.Value) {
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
	g.add(report.PlaneOfUsers, report.SubjectAll, "CoreDNS", report.LastSeen, fmt.Sprintf("%d of %d pods Running on %s, as last written", running, all, some(nodes)), at, refs...)
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

// some names up to four of a set.
func some(set map[string]bool) string {
	names := slices.Sorted(maps.Keys(set))
	switch {
	case len(names) == 0:
		return "no node"
	case len(names) > 4:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:4], ", "), len(names)-4)
	}
	return strings.Join(names, ", ")
}
