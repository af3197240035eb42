package cap

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/objects"
	"coldplane/analyze/staticpod"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP106", Name: "event-storm", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "Event storm",
		Why:   "Events live one hour by default and are written by everything that fails in a loop. A storm fills etcd, delays other writes and hides the events that matter.",
		Fix: "Repair what emits the first rows; then delete those events by reason. Lower --event-ttl if it was raised; large clusters can keep events in an etcd of their own " +
			"(--etcd-servers-overrides).",
		Links: []string{"https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "share", Default: 0.4, Unit: "ratio", Source: "of live bytes, above a tenth of the quota or 100 MB"},
		{Name: "many", Default: 100000, Unit: "objects", Source: "an order above what an hour of a large cluster leaves"},
		{Name: "some", Default: 20000, Unit: "objects", Source: "with the share of keys"},
		{Name: "keys", Default: 0.25, Unit: "ratio", Source: "of live keys"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{etcddb.QuotaOf, staticpod.Manifests},
	Run:   eventStorm,
})

func eventStorm(p *analyze.Pass) error {
	s, q, ok := content(p)
	if !ok {
		return nil
	}
	st := s.Store
	var n, bytes int64
	largest := ""
	for _, t := range st.Types {
		if t.Type == "events" || t.Type == "events.k8s.io/events" {
			n, bytes, largest = n+t.Live, bytes+t.LiveRec, t.Largest.Key
		}
	}
	var sev report.Severity
	switch {
	case float64(n) >= p.Param("many") || ratio(bytes, st.LiveRec) >= p.Param("share") && bytes >= floor(q):
		sev = report.High
	case float64(n) >= p.Param("some") && ratio(n, st.Live) >= p.Param("keys"):
		sev = report.Medium
	default:
		return nil
	}
	f := analyze.Finding{
		Node: s.DB.File.Node, Subject: "events", Severity: sev,
		Message:  fmt.Sprintf("%d Events hold %s, %.0f %% of live bytes and %.0f %% of live keys", n, size(bytes), 100*ratio(bytes, st.LiveRec), 100*ratio(n, st.Live)),
		Evidence: []analyze.Evidence{analyze.See(s.DB.AtKey(largest, 0), fmt.Sprintf("%d events, %d bytes", n, bytes))},
	}
	f.Evidence = append(f.Evidence, topEvents(s)...)
	for _, node := range p.Nodes() {
		m, err := staticpod.Manifests.Try(p, node)
		if err != nil {
			continue
		}
		if pod := m.Component(staticpod.APIServer); pod != nil {
			if fl, ok := pod.Setting("event-ttl"); ok {
				if d, err := time.ParseDuration(fl.Value); err == nil && d > time.Hour {
					f.Evidence = append(f.Evidence, analyze.Context(fl.Ref, fl.Text()))
				}
			}
		}
	}
	p.Report(f)
	return nil
}

// topEvents names the ten emitters that wrote most.
func topEvents(s *objects.Set) []analyze.Evidence {
	type tuple struct{ reason, kind, object, component string }
	type sum struct {
		tuple
		events      int
		count       int64
		first, last time.Time
		ref         analyze.Evidence
	}
	by := map[tuple]*sum{}
	for _, e := range s.Events().Items {
		v := e.Value
		k := tuple{v.Reason, v.Kind, v.ObjectNS + "/" + v.Object, v.Component}
		x := by[k]
		if x == nil {
			x = &sum{tuple: k, first: v.First, ref: analyze.Context(e.Ref, "")}
			by[k] = x
		}
		x.events++
		x.count += int64(v.Count)
		if v.First.Before(x.first) {
			x.first = v.First
		}
		if v.Last.After(x.last) {
			x.last = v.Last
		}
	}
	var list []*sum
	for _, x := range by {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *sum) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.reason, b.reason), cmp.Compare(a.object, b.object), cmp.Compare(a.kind, b.kind), cmp.Compare(a.component, b.component))
	})
	var out []analyze.Evidence
	for i, x := range list {
		if i == 10 {
			break
		}
		rate := ""
		if d := x.last.Sub(x.first); d > time.Minute {
			rate = ", " + strconv.FormatFloat(float64(x.count)/d.Minutes(), 'f', 1, 64) + " a minute"
		}
		x.ref.Excerpt = fmt.Sprintf("%s about %s %s by %s: %d times in %d events%s, first %s", x.reason, x.kind, x.object, x.component, x.count, x.events, rate, x.first.Format(time.RFC3339))
		out = append(out, x.ref)
	}
	return out
}
