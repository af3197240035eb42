package hav

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV301", Name: "no-leader-of-controllers", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High},
	Symptom:    true,
	Doc: analyze.Doc{
		Title: "No controller-manager or scheduler leads",
		Why: "Without a leading scheduler, new pods stay Pending without a word: no PodScheduled condition, no event. Without a leading controller-manager nothing " +
			"is replaced, no node is marked NotReady, no token is made. Pods that nothing fits are another case: the scheduler says so in events.",
		Fix:   "Look at the containers of all instances (crictl ps -a), their last logs, and the certificates in their kubeconfigs (STA302, PKI101, PKI401). When one gets the lease again, Pending pods are scheduled by themselves.",
		Links: []string{"https://kubernetes.io/docs/concepts/architecture/leases/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "stale", Default: 25, Unit: "seconds", Source: "leader election: lease 15 s, renewal deadline 10 s (component-base/config/options)"}},
	Needs:  []analyze.Need{objects.Cluster},
	Wants:  []analyze.Need{logs.OnNode, cri.OnNode},
	Run:    noLeader,
})

func noLeader(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	last, ok := set.LastWrite()
	if !ok {
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "no write in the database carries a time")
		return nil
	}
	if apiServers(p, time.Minute) == apiYoung {
		p.Unknown(bundle.KindStore, nil, bundle.Undecided, "the API server started less than a minute before collection; leaders had no time to renew")
		return nil
	}
	if now, timed := p.AsOf(nil); timed && last.Time.After(now) {
		last.Time = now // a writer's clock, or a date of the future in an object
	}
	stale := time.Duration(p.Param("stale") * float64(time.Second))
	leases := set.Leases()
	seen := 0
	for _, name := range []string{"kube-scheduler", "kube-controller-manager"} {
		for _, l := range leases.Items {
			if l.Value.Namespace != "kube-system" || l.Value.Name != name || l.Value.Spec.RenewTime == nil {
				continue
			}
			seen++
			renewed := l.Value.Spec.RenewTime.Time
			if last.Time.Sub(renewed) <= stale {
				continue
			}
			holder := ""
			if h := l.Value.Spec.HolderIdentity; h != nil {
				holder, _, _ = strings.Cut(*h, "_")
			}
			msg := fmt.Sprintf("no %s leads: its lease was last renewed at %s, %s before the last write", strings.TrimPrefix(name, "kube-"), clock(renewed), last.Time.Sub(renewed).Round(time.Second))
			if holder != "" {
				msg += "; " + holder + " held it"
			}
			ev := []analyze.Evidence{analyze.See(l.Ref, "renewTime "+clock(renewed)+" holder "+holder)}
			if name == "kube-scheduler" {
				n, oldest, refs := unscheduled(set, last.Time, stale)
				if n > 0 {
					msg += fmt.Sprintf("; %d pods wait since %s and nobody has judged them", n, clock(oldest))
					ev = append(ev, refs...)
				}
			}
			ev = append(ev, lastWords(p, name)...)
			p.Report(analyze.Finding{Subject: name, Severity: report.High, Message: msg, Evidence: ev, ObservedAt: renewed})
		}
	}
	if seen == 0 {
		if n, oldest, refs := unscheduled(set, last.Time, stale); n > 0 {
			refs[0].Role = report.RoleSubject
			p.Report(analyze.Finding{Subject: "kube-scheduler", Severity: report.High, Confidence: report.Probable,
				Message: fmt.Sprintf("%d pods wait since %s and no scheduler has judged them", n, clock(oldest)), Evidence: refs, ObservedAt: oldest})
			return nil
		}
		p.Unknown(bundle.KindStore, nil, bundle.NotCollected, "no leases of scheduler and controller-manager in the database")
	}
	return nil
}

// unscheduled counts Pending pods that no scheduler has judged: no node, no
// PodScheduled condition, no event. Pods with gates or of another scheduler are
// left out.
func unscheduled(set *objects.Set, now time.Time, stale time.Duration) (n int, oldest time.Time, ev []analyze.Evidence) {
	judged := map[string]bool{}
	for _, e := range set.Events().Items {
		if e.Value.Kind == "Pod" && (e.Value.Reason == "FailedScheduling" || e.Value.Reason == "Scheduled") {
			judged[e.Value.ObjectNS+"/"+e.Value.Object] = true
		}
	}
	for _, o := range set.Pods().Items {
		pod := o.Value
		if pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName != "" || len(pod.Spec.SchedulingGates) > 0 ||
			pod.Spec.SchedulerName != "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName ||
			now.Sub(pod.CreationTimestamp.Time) < stale || judged[pod.Namespace+"/"+pod.Name] {
			continue
		}
		condition := false
		for _, c := range pod.Status.Conditions {
			condition = condition || c.Type == corev1.PodScheduled
		}
		if condition {
			continue
		}
		n++
		if t := pod.CreationTimestamp.Time; oldest.IsZero() || t.Before(oldest) {
			oldest = t
		}
		if len(ev) < 3 {
			ev = append(ev, analyze.Context(o.Ref, "Pending without condition or event: "+pod.Namespace+"/"+pod.Name))
		}
	}
	return n, oldest, ev
}

// lastWords are the last lines about its lease that the component wrote.
func lastWords(p *analyze.Pass, name string) []analyze.Evidence {
	var out []analyze.Evidence
	for _, n := range p.All() {
		ln, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		if at, ok := ln.Last(signature.Named(name), "C01", "C02", "C03", "C05", "C09", "C11"); ok {
			out = append(out, analyze.Context(at.Ref(), at.Excerpt()))
		}
	}
	return out
}
