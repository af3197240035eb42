package hav

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV201", Name: "status-is-the-last-observation", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.Medium, report.Info},
	Symptom:    true,
	Doc: analyze.Doc{
		Title: "What the objects say is the last observation, not the present",
		Why: "Ready and Running are what somebody wrote last. When nothing can be written any more, everything stays as it was: nodes look Ready that are off, " +
			"pods look Running that are gone. Trust processes and containers, not objects.",
		Fix:   "Nothing by itself: find what stopped the writes (CAP101, QRM101, certificates) or who no longer judges nodes (HAV301). After the repair stale states last for some minutes.",
		Links: []string{"https://kubernetes.io/docs/concepts/architecture/nodes/#node-heartbeats"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "frozen", Default: 60, Unit: "seconds without a write"},
		{Name: "grace", Default: 50, Unit: "seconds", Source: "kube-controller-manager --node-monitor-grace-period, 40 s until 1.31"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{cri.OnNode},
	Run:   lastObservation,
})

func lastObservation(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	last, ok := set.LastWrite()
	if !ok {
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "no write in the database carries a time")
		return nil
	}
	ref := set.DB.AtKey(last.Key, last.Rev)
	grace := time.Duration(p.Param("grace")) * time.Second
	if now, timed := p.AsOf(nil); timed && fresh(set, now) {
		age := now.Sub(last.Time)
		switch {
		case age > time.Duration(p.Param("frozen"))*time.Second:
			// Silence means a frozen store only if something was there to write.
			sev, more := report.Info, ""
			switch apiServers(p, time.Minute) {
			case apiUp:
				sev, more = report.Critical, ", although an API server runs"
			case apiDown:
				sev, more = report.Medium, " (no API server runs)"
			case apiYoung:
				more = " (the API server has just started)"
			}
			p.Report(analyze.Finding{Subject: "store", Severity: sev, Confidence: report.Probable,
				Message:  fmt.Sprintf("nothing has been written since %s, %s before collection%s: every status is of that time", clock(last.Time), age.Round(time.Second), more),
				Evidence: []analyze.Evidence{analyze.See(ref, "last write with a time: "+clock(last.Time))}, ObservedAt: last.Time})
			return nil
		case age > 10*time.Second:
			p.Report(analyze.Finding{Subject: "store", Severity: report.Info, Message: fmt.Sprintf("the cluster's state is of %s, %s before collection", clock(last.Time), age.Round(time.Second)),
				Evidence: []analyze.Evidence{analyze.See(ref, "last write with a time: "+clock(last.Time))}, ObservedAt: last.Time})
		}
	} else {
		p.Report(analyze.Finding{Subject: "store", Severity: report.Info, Message: "the cluster's state is of " + clock(last.Time) + ", when this database was last written",
			Evidence: []analyze.Evidence{analyze.See(ref, "last write with a time: "+clock(last.Time))}, ObservedAt: last.Time})
	}
	renewed := map[string]objects.Object[time.Time]{}
	for _, l := range set.Leases().Items {
		if l.Value.Namespace == "kube-node-lease" && l.Value.Spec.RenewTime != nil {
			t := l.Value.Spec.RenewTime.Time
			renewed[l.Value.Name] = objects.Object[time.Time]{Ref: l.Ref, Value: &t}
			if d := l.Value.Spec.LeaseDurationSeconds; d != nil && time.Duration(*d)*time.Second+10*time.Second > grace {
				grace = time.Duration(*d)*time.Second + 10*time.Second
			}
		}
	}
	for _, n := range set.Nodes().Items {
		l, ok := renewed[n.Value.Name]
		if !ok || ready(n.Value) != corev1.ConditionTrue || last.Time.Sub(*l.Value) <= grace {
			continue
		}
		p.Report(analyze.Finding{Subject: "node " + n.Value.Name, Severity: report.Medium, Confidence: report.Probable,
			Message:  fmt.Sprintf("node %s is still called Ready, but renewed its lease last at %s, %s before the last write", n.Value.Name, clock(*l.Value), last.Time.Sub(*l.Value).Round(time.Second)),
			Evidence: []analyze.Evidence{analyze.See(n.Ref, "Ready=True"), analyze.Context(l.Ref, "renewTime "+clock(*l.Value))}, ObservedAt: *l.Value})
	}
	return nil
}

// fresh reports whether the database is of the time of collection: a data
// directory, or a snapshot whose file was written then.
func fresh(set *objects.Set, now time.Time) bool {
	if !set.DB.Saved() {
		return true
	}
	age := now.Sub(set.DB.File.ModTime)
	return age > -5*time.Minute && age < 5*time.Minute
}

func ready(n *corev1.Node) corev1.ConditionStatus {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
