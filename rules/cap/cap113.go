package cap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP113", Name: "hot-keys", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Medium, report.Info},
	Doc: analyze.Doc{
		Title: "Hot keys and write amplifiers",
		Why:   "Every update is a new revision until the next compaction. One controller in a loop can write more than all others together, and wear the disk under etcd, with hardly any live data.",
		Fix:   "Repair the controller that writes the first rows, or lengthen its resync or lease period.",
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "rate", Default: 60, Unit: "writes per minute", Source: "a leader election lease makes about 30"},
		{Name: "share", Default: 0.5, Unit: "ratio", Source: "of all updates of existing objects but leases"},
		{Name: "floor", Default: 500, Unit: "updates", Source: "fewer say nothing"},
		{Name: "window", Default: 2, Unit: "minutes", Source: "shorter histories give low confidence"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Run:   hotKeys,
})

// isLease reports the keys that are renewed all the time by design.
func isLease(s *objects.Set, key string) bool {
	return byDesign(etcdstore.Classify(s.Store.Prefix, []byte(key)).Type)
}

// byDesign reports types that are renewed all the time by design.
func byDesign(t string) bool { return t == "leases" || t == "masterleases" || t == "peerserverleases" }

// rewrites counts a type's writes that replaced or removed an object: what
// was created once, an Event for example, is no churn.
func rewrites(t etcdstore.TypeStats) int64 { return max(t.Writes-t.Live, 0) }

func hotKeys(p *analyze.Pass) error {
	s, ok := objects.Cluster.In(p)
	if !ok {
		return nil
	}
	st := s.Store
	types := slices.Clone(st.Types)
	slices.SortStableFunc(types, func(a, b etcdstore.TypeStats) int { return cmp.Compare(b.Writes, a.Writes) })
	var all, base int64
	for _, t := range types {
		all += t.Writes
		if !byDesign(t.Type) {
			base += rewrites(t)
		}
	}
	span, dated := s.History()
	if all == 0 {
		return nil
	}
	sev, confidence := report.Info, report.Certain
	if span.Minutes() < p.Param("window") {
		confidence = report.Possible
	}
	var words []string
	enough := float64(base) >= p.Param("floor")
	for _, t := range types {
		if !byDesign(t.Type) && enough && ratio(rewrites(t), base) > p.Param("share") {
			sev = report.Medium
			words = append(words, fmt.Sprintf("%s makes %.0f %% of all updates but leases", t.Type, 100*ratio(rewrites(t), base)))
		}
	}
	var ev []analyze.Evidence
	for _, k := range st.Busiest {
		if len(ev) == 10 || k.Writes < 2 {
			break
		}
		rate := ""
		if dated && span > 30*time.Second {
			r := float64(k.Writes) / span.Minutes()
			rate = fmt.Sprintf(", %.1f a minute", r)
			if r > p.Param("rate") && !isLease(s, k.Key) && float64(k.Writes) >= p.Param("floor")/5 {
				sev = report.Medium
				words = append(words, fmt.Sprintf("%s is written %.0f times a minute", k.Key, r))
			}
		}
		writer := ""
		if h, ok := head(s, k); ok && len(h.Managers) > 0 {
			writer = ", last by " + h.Managers[len(h.Managers)-1].Name
		}
		ev = append(ev, analyze.Context(keyRef(s, k), fmt.Sprintf("%d revisions, %d bytes%s%s", k.Writes, k.RecBytes, rate, writer)))
	}
	if !enough && sev == report.Info && float64(all) < p.Param("floor") {
		return nil
	}
	for i, t := range types {
		if i == 5 || t.Writes == 0 {
			break
		}
		ev = append(ev, analyze.Context(keyRef(s, example(s, t)), fmt.Sprintf("%s: %d revisions since the compaction, %.0f %%", t.Type, t.Writes, 100*ratio(t.Writes, all))))
	}
	if len(ev) == 0 {
		return nil
	}
	if len(words) == 0 {
		words = append(words, fmt.Sprintf("%s leads with %.0f %%", types[0].Type, 100*ratio(types[0].Writes, all)))
	}
	over := ""
	if dated {
		over = fmt.Sprintf(" in %s", span.Round(time.Second))
	}
	ev[0].Role = report.RoleSubject
	p.Report(analyze.Finding{
		Node: s.DB.File.Node, Subject: "write rate", Severity: sev, Confidence: confidence, Evidence: ev,
		Message: fmt.Sprintf("%d writes are kept%s: %s", all, over, strings.Join(words[:min(len(words), 5)], "; ")),
	})
	return nil
}
