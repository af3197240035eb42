package adm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "ADM202", Name: "stuck-in-deletion", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Symptom:    true,
	Doc: analyze.Doc{
		Title: "A namespace or object does not get deleted",
		Why: "Deletion waits for every finalizer to be taken off by its owner, and a namespace for everything in it. An aggregated API that does not answer, " +
			"a controller that is gone, a database that refuses writes: each keeps it waiting for ever.",
		Fix: "Look for the cause first: alarm and quorum of etcd, then the APIService the condition names, then the controller that owns the finalizer. Bring it back and deletion goes on by itself. " +
			"Take finalizers off by hand last, object by object: what they guard (volumes, load balancers, records elsewhere) is then left behind. The finalize sub-resource of a namespace leaks everything in it.",
		Links: []string{
			"https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/", "https://github.com/kubernetes/kubernetes/issues/60807",
		},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "medium", Default: 10, Unit: "minutes", Source: "longer than deleting a large namespace in order"},
		{Name: "high", Default: 24, Unit: "hours", Source: "nobody waits a day on purpose"},
		{Name: "many", Default: 10, Unit: "objects", Source: "more than a leftover"},
		{Name: "objects", Default: 20000, Unit: "objects", Source: "bounds how many objects of one type are looked at"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Run:   stuck,
})

func stuck(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	now, dated := p.AsOf(nil)
	if !dated {
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "no time to judge ages by")
		return nil
	}
	if l := set.Namespaces(); !l.Complete() {
		p.Unknown(bundle.KindStore, nil, bundle.Damaged, "some namespaces cannot be read")
	}
	stuckNamespaces(p, set, now)
	stuckObjects(p, set, now)
	return nil
}

// terminating are the namespaces that are being deleted.
func terminating(s *objects.Set) []objects.Object[corev1.Namespace] {
	var out []objects.Object[corev1.Namespace]
	for _, o := range s.Namespaces().Items {
		if o.Value.DeletionTimestamp != nil {
			out = append(out, o)
		}
	}
	return out
}

func stuckNamespaces(p *analyze.Pass, set *objects.Set, now time.Time) {
	all := terminating(set)
	for _, o := range all {
		since := o.Value.DeletionTimestamp.Time
		age := now.Sub(since)
		if age < minutes(p.Param("medium")) {
			continue
		}
		sev := report.Medium
		if age.Hours() >= p.Param("high") || float64(len(all)) >= p.Param("many") {
			sev = report.High
		}
		var why []string
		ev := []analyze.Evidence{analyze.See(o.Ref, "deletionTimestamp "+since.UTC().Format(time.RFC3339))}
		for _, c := range o.Value.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				why = append(why, fmt.Sprintf("%s: %s", c.Type, c.Message))
				ev = append(ev, analyze.Context(o.Ref, fmt.Sprintf("%s=True %s", c.Type, c.Reason)))
			}
		}
		msg := fmt.Sprintf("namespace %s has been Terminating for %s", o.Value.Name, span(age))
		if len(why) > 0 {
			msg += "; " + strings.Join(why, "; ")
		}
		p.Report(analyze.Finding{Subject: "namespace " + o.Value.Name, Severity: sev, Message: msg, Evidence: ev, ObservedAt: since, Fix: []report.Step{
			{Text: "See what is left in it; an API that cannot be listed is the one to repair.", Command: fmt.Sprintf("kubectl api-resources --verbs=list --namespaced -o name | xargs -n1 kubectl get -n %s --ignore-not-found --show-kind", o.Value.Name)},
			{Text: "Bring back what the condition names (the aggregated API, the controller of the finalizer). Take finalizers off last, object by object."},
		}})
	}
}

// waiting are objects of one type that wait for the same finalizers.
type waiting struct {
	typ, finalizers string
	count           int
	oldest          time.Time
	first           objects.Object[objects.Head]
	names           []string
}

// stuckObjects looks at the metadata of everything but events, leases and
// namespaces.
func stuckObjects(p *analyze.Pass, set *objects.Set, now time.Time) {
	ending := map[string]bool{}
	for _, o := range terminating(set) {
		ending[o.Value.Name] = true
	}
	limit := int64(p.Param("objects"))
	for _, t := range set.Store.Types {
		switch t.Type {
		case "events", "leases", "namespaces", "endpointslices", "masterleases", etcdstore.Foreign:
			continue
		}
		if t.Live > limit {
			p.Unknown(bundle.KindStore, nil, bundle.TooLarge, fmt.Sprintf("%d %s are too many to look for waiting ones", t.Live, etcdstore.Resource(t.Type)))
			continue
		}
		byFinalizer := map[string]*waiting{}
		for _, o := range set.Deleting(t.Type).Items {
			h := o.Value
			// Pods wait for their kubelet, and what lies in a namespace that goes
			// away is told with it.
			if len(h.Finalizers) == 0 || ending[h.Namespace] || now.Sub(*h.Deleted) < minutes(p.Param("medium")) {
				continue
			}
			f := strings.Join(h.Finalizers, ", ")
			w := byFinalizer[f]
			if w == nil {
				w = &waiting{typ: t.Type, finalizers: f}
				byFinalizer[f] = w
			}
			if w.count++; w.oldest.IsZero() || h.Deleted.Before(w.oldest) {
				w.oldest, w.first = *h.Deleted, o
			}
			if len(w.names) < 5 {
				w.names = append(w.names, strings.TrimPrefix(h.Namespace+"/"+h.Name, "/"))
			}
		}
		for _, f := range keys(byFinalizer) {
			p.Report(byFinalizer[f].finding(p, now))
		}
	}
}

func (w *waiting) finding(p *analyze.Pass, now time.Time) analyze.Finding {
	sev := report.Medium
	age := now.Sub(w.oldest)
	// An object in use waits on purpose: the protection of volumes goes when
	// the last pod does.
	protection := slices.Contains([]string{"kubernetes.io/pvc-protection", "kubernetes.io/pv-protection", "foregroundDeletion"}, w.finalizers)
	if !protection && (age.Hours() >= p.Param("high") || float64(w.count) >= p.Param("many")) {
		sev = report.High
	}
	resource := etcdstore.Resource(w.typ)
	names := strings.Join(w.names, ", ")
	if w.count > len(w.names) {
		names += ", …"
	}
	return analyze.Finding{Subject: resource + " with " + cmp.Or(w.finalizers, "no finalizer"), Severity: sev, ObservedAt: w.oldest,
		Message: fmt.Sprintf("%s of %s (%s) %s for %s to be taken off, the oldest for %s", counted(w.count, "object", "objects"), resource, names,
			map[bool]string{true: "waits", false: "wait"}[w.count == 1], w.finalizers, span(age)),
		Evidence: []analyze.Evidence{analyze.See(w.first.Ref, fmt.Sprintf("deletionTimestamp %s, finalizers %s", w.oldest.UTC().Format(time.RFC3339), w.finalizers))}}
}
