package adm

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "ADM201", Name: "aggregated-api-unavailable", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "An aggregated API is not available",
		Why: "The API server hands requests of that group on to a service that does not answer. Discovery is then incomplete, and whoever needs all of it waits: " +
			"namespaces are not deleted, garbage is not collected, kubectl prints errors. A missing metrics API stops horizontal autoscaling.",
		Fix: "Bring the backend back (its pods, its service, its certificate). If it is not wanted any more, delete the APIService: its objects live in the backend, not in etcd.",
		Links: []string{
			"https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/",
			"https://github.com/kubernetes/kubernetes/issues/60807",
		},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "since", Default: 5, Unit: "minutes", Source: "longer than a rollout of metrics-server"}},
	Wants:  []analyze.Need{objects.Cluster, logs.OnNode},
	Run:    aggregated,
})

// aggregatedSaid are the lines about an aggregated API that does not answer.
func aggregatedSaid(p *analyze.Pass) []logs.At {
	var out []logs.At
	for _, n := range p.All() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		out = append(out, l.Hits(signature.APIServer, "A10", "A42")...)
		out = append(out, l.Hits(signature.ControllerManager, "C08", "C13", "C20")...)
	}
	logs.SortHits(out)
	return out
}

func aggregated(p *analyze.Pass) error {
	set, err := objects.Cluster.Try(p, nil)
	if err != nil {
		p.UnknownErr(bundle.KindStore, nil, err)
		return nil
	}
	said := aggregatedSaid(p)
	l := set.APIServices()
	if !l.Complete() {
		p.Unknown(bundle.KindStore, nil, bundle.Damaged, "some APIServices cannot be read")
	}
	waiting := terminating(set)
	for _, o := range l.Items {
		v := o.Value
		c := condition(v.Status.Conditions, "Available")
		if v.Spec.Service == nil || c == nil || c.Status != "False" {
			continue
		}
		now, dated := p.AsOf(nil)
		age := now.Sub(c.LastTransitionTime)
		if dated && !c.LastTransitionTime.IsZero() && age < minutes(p.Param("since")) {
			continue // a rollout of the backend
		}
		where := v.Spec.Service.Namespace + "/" + v.Spec.Service.Name
		msg := fmt.Sprintf("APIService %s is not available (%s), service %s", v.Metadata.Name, c.Reason, where)
		if dated && !c.LastTransitionTime.IsZero() {
			msg += ", for " + span(age)
		}
		ev := []analyze.Evidence{analyze.See(o.Ref, fmt.Sprintf("Available=False %s: %s", c.Reason, c.Message))}
		if b := set.Backend(v.Spec.Service.Namespace, v.Spec.Service.Name); b.Dead {
			msg += ": " + b.Why
			if !b.Ref.IsZero() {
				ev = append(ev, analyze.Context(b.Ref, "service "+where))
			}
		}
		sev := report.Medium
		if len(waiting) > 0 {
			sev = report.High
			msg += "; " + counted(len(waiting), "namespace waits", "namespaces wait") + " to be deleted"
			ev = append(ev, analyze.Context(waiting[0].Ref, "namespace "+waiting[0].Value.Name+" is Terminating"))
		}
		// What the API server or the collectors of garbage said last of this API.
		for i := len(said) - 1; i >= 0; i-- {
			if t := said[i].Excerpt(); strings.Contains(t, v.Spec.Group) || strings.Contains(t, v.Spec.Service.Name) {
				if said[i].Stat.Sig.ID[0] == 'C' {
					sev = report.High
				}
				ev = append(ev, analyze.Context(said[i].Ref(), t))
				break
			}
		}
		p.Report(analyze.Finding{Subject: "APIService " + v.Metadata.Name, Severity: sev, Message: msg, Evidence: ev, ObservedAt: c.LastTransitionTime, Fix: []report.Step{
			{Text: "See why its backend does not answer.", Command: fmt.Sprintf("kubectl -n %s get pods,endpointslices && kubectl get apiservice %s -o yaml", v.Spec.Service.Namespace, v.Metadata.Name)},
			{Text: "Only if nobody needs the API any more, delete its registration.", Command: "kubectl delete apiservice " + v.Metadata.Name},
		}})
	}
	return nil
}

func condition(cs []objects.Condition, typ string) *objects.Condition {
	for i := range cs {
		if cs[i].Type == typ {
			return &cs[i]
		}
	}
	return nil
}
