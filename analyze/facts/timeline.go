package facts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/analyze/pki"
	"coldplane/analyze/provenance"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

// maxEvents bounds the timeline; the incident's end matters more than its
// beginning, so the oldest go first.
const maxEvents = 5000

// perText is how many occurrences of one text of one stream become entries:
// the first and the last ones; the rest is counted in the last entry.
const perText = 6

// milestones are the log texts worth an entry: starts, stops, leaders,
// membership, alarms, refusals, ends of processes.
var milestones = []string{
	"E01", "E02", "E14", "E15", "E16", "E17", "E22", "E23", "E24", "E25", "E26", "E27", "E28", "E29", "E36", "E37", "E40", "E50", "E52", "E56", "E60", "E61",
	"E65", "E66", "E68", "E70", "E74", "E78", "E79", "E80", "E81", "E82", "E84", "E89", "E92", "E95", "E97", "E99", "E100", "R01", "R03", "R04", "R08",
	"A01", "A09", "A14", "A16", "A18", "A21", "A50", "C01", "C04", "C06", "C09", "C22", "S01", "S06",
	"K01", "K07", "K12", "K13", "K14", "K16", "K17", "K18", "K23", "K28", "K47", "K58",
	"X01", "X04", "X05", "X06", "X07", "X08", "X12", "X14", "X17", "X18", "X19", "X20", "X27", "X28", "Q03", "Q06", "Q15",
}

// breaks are those of them with which an incident begins: a store that refuses
// or loses what it holds, a lost leader, a process that ends in error. What
// also happens in an orderly start or stop, or ends an incident, is not among them.
var breaks = []string{
	"E01", "E02", "E14", "E15", "E17", "E22", "E23", "E24", "E25", "E28", "E29", "E36", "E37", "E40", "E60", "E61", "E66", "E74", "E92", "E100", "R04", "R08",
	"A02", "A14", "A16", "A50", "C01", "C09", "S01", "S06", "K12", "K13", "K23", "K28", "K58", "X04", "X05", "X06", "X07", "X08",
}

// silence is how long a node may write nothing before the timeline calls it a gap.
const silence = 10 * time.Minute

// Timeline merges what has a time, over all nodes, in order.
func Timeline(e *analyze.Engine) []report.Event {
	t := &teller{e: e}
	for _, n := range e.Set().All() {
		c := e.Ctx(n)
		t.logs(c, n)
		t.containers(c, n)
		t.manifests(c, n)
		if !n.CollectedAt.IsZero() {
			t.add(n.CollectedAt, n.Name, "collection", "evidence collected", n.Ref("/"))
		}
	}
	t.certificates(e.Ctx(nil))
	t.store(e.Ctx(nil))
	slices.SortStableFunc(t.events, func(a, b report.Event) int { return a.Time.Compare(b.Time) })
	if len(t.events) > maxEvents {
		t.events = t.events[len(t.events)-maxEvents:]
	}
	if t.events == nil {
		t.events = []report.Event{}
	}
	return t.events
}

type teller struct {
	e      *analyze.Engine
	events []report.Event
}

func (t *teller) add(at time.Time, node, source, text string, ref bundle.Ref) {
	if at.IsZero() {
		return
	}
	ev := report.Event{Time: at.UTC(), Node: node, Source: source, Text: text}
	if !ref.IsZero() {
		e := analyze.ToEvidence(ref, "", report.RoleContext)
		ev.Ref = &e
	}
	t.events = append(t.events, ev)
}

// mark makes the entry just added one that tells the story.
func (t *teller) mark() {
	if n := len(t.events); n > 0 {
		t.events[n-1].Kind = report.EventMark
	}
}

// gap adds a stretch in which nothing was written.
func (t *teller) gap(from, until time.Time, node, source, text string, ref bundle.Ref) {
	if from.IsZero() || !until.After(from) {
		return
	}
	t.add(from, node, source, text, ref)
	u := until.UTC()
	t.events[len(t.events)-1].Kind, t.events[len(t.events)-1].Until = report.EventGap, &u
}

func (t *teller) logs(c *analyze.Ctx, n *bundle.Node) {
	l, err := logs.OnNode.Get(c)
	if err != nil {
		return
	}
	for _, f := range l.Find(0, milestones...) {
		hits := f.Stat.Hits
		name := f.Stream.Component
		if name == "" {
			name = f.Stat.Program.String()
		}
		for i, h := range hits {
			if len(hits) > perText && i >= perText/2 && i < len(hits)-perText/2 {
				continue
			}
			at := logs.At{Stream: f.Stream, Stat: f.Stat, Hit: h}
			text := f.Stat.Sig.Means
			if v := values(at); v != "" {
				text += " (" + v + ")"
			}
			if len(hits) > perText && i == len(hits)-perText/2 || i == len(hits)-1 && f.Count > len(hits) {
				text += fmt.Sprintf("; %d in all", f.Count)
			}
			if h.Time.IsZero() {
				continue
			}
			t.add(h.Time, n.Name, name, text, at.Ref())
			if slices.Contains(breaks, f.Stat.Sig.ID) {
				t.mark()
			}
		}
	}
	gaps := l.Silences(silence)
	for _, g := range gaps[max(0, len(gaps)-maxGaps):] {
		t.gap(g.From, g.To, n.Name, "logs", "no log of this node has a line", n.Ref("/"))
	}
}

// maxGaps bounds the gaps shown of one node; the newest stay.
const maxGaps = 20

// values joins the fields of an occurrence that say which one it was.
func values(at logs.At) string {
	var out []string
	for _, f := range at.Stat.Fields() {
		if v := at.Value(f); v != "" && len(v) < 120 && len(out) < 4 {
			out = append(out, f+" "+v)
		}
	}
	return strings.Join(out, ", ")
}

func (t *teller) containers(c *analyze.Ctx, n *bundle.Node) {
	v, err := cri.OnNode.Get(c)
	if err != nil {
		return
	}
	for _, x := range v.Containers {
		if x.Namespace != "kube-system" && signature.Named(x.Name) == 0 {
			continue
		}
		t.add(x.Began(), n.Name, "runtime", fmt.Sprintf("container %s started, attempt %d", x.Name, max(x.Attempt, 0)), x.Where())
		if !x.FinishedAt.IsZero() && x.State == cri.Exited {
			code := ""
			if x.ExitCode != nil {
				code = fmt.Sprintf(" with code %d", *x.ExitCode)
			}
			t.add(x.FinishedAt, n.Name, "runtime", strings.TrimSpace(fmt.Sprintf("container %s ended%s %s", x.Name, code, x.Reason)), x.Where())
		}
	}
}

// manifests are changes of static pods, where the files' times are the node's own.
func (t *teller) manifests(c *analyze.Ctx, n *bundle.Node) {
	if a, err := provenance.OfNode.Get(c); err != nil || a.Times != "" {
		return
	}
	d, err := staticpod.Manifests.Get(c)
	if err != nil {
		return
	}
	for _, e := range d.Entries {
		if e.Ignored == "" {
			t.add(e.File.ModTime, n.Name, "files", "manifest "+e.File.Name()+" written", e.File.Ref())
		}
	}
}

// certificates are the crossings of validity near the time of the evidence.
func (t *teller) certificates(c *analyze.Ctx) {
	asOf := c.AsOf().Time
	if asOf.IsZero() {
		return
	}
	for _, n := range t.e.Set().Nodes {
		f, err := pki.Files.Get(t.e.Ctx(n))
		if err != nil {
			continue
		}
		for _, cr := range f.Credentials {
			cert := cr.Cert()
			if cert == nil {
				continue
			}
			if cert.NotAfter.Before(asOf) && asOf.Sub(cert.NotAfter) < 90*24*time.Hour {
				t.add(cert.NotAfter, n.Name, "certificate", cr.Name()+" expired", cr.Ref())
			}
			if cert.NotBefore.Before(asOf) && asOf.Sub(cert.NotBefore) < 7*24*time.Hour {
				t.add(cert.NotBefore, n.Name, "certificate", cr.Name()+" issued", cr.Ref())
			}
		}
	}
}

// store is what the database says about time: last write, leases, deletions
// still remembered, warnings about the control plane.
func (t *teller) store(c *analyze.Ctx) {
	s, err := objects.Cluster.Get(c)
	if err != nil {
		return
	}
	if p, ok := s.LastWrite(); ok {
		ref := s.DB.File.Ref().AtKey(p.Key, p.Rev)
		t.add(p.Time, "", "etcd", "last write the store remembers", ref)
		t.mark()
		if a := c.AsOf(); s.DB.InUse() && a.Source != "inferred" && a.Time.Sub(p.Time) > time.Minute {
			t.gap(p.Time, a.Time, "", "etcd", "nothing is written to the store any more", ref)
		}
	}
	for _, n := range s.Nodes().Items {
		for _, cond := range n.Value.Status.Conditions {
			if cond.Type == corev1.NodeReady {
				t.add(cond.LastTransitionTime.Time, n.Value.Name, "node status", fmt.Sprintf("Ready became %s (%s)", cond.Status, cond.Reason), n.Ref)
			}
		}
	}
	for _, ev := range s.Events().Items {
		v := ev.Value
		if v.Type != corev1.EventTypeWarning || v.Namespace != "kube-system" && v.Kind != "Node" {
			continue
		}
		t.add(v.Last, "", "event", fmt.Sprintf("%s %s: %s", v.Kind, v.Object, v.Reason), ev.Ref)
	}
	for _, ns := range s.Namespaces().Items {
		if d := ns.Value.DeletionTimestamp; d != nil {
			t.add(d.Time, "", "etcd", "deletion of namespace "+ns.Value.Name+" began", ns.Ref)
		}
	}
}
