package adm

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "ADM102", Name: "webhook-can-lock-cluster", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.High, report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "A webhook can lock the cluster, although it answers now",
		Why: "An upgrade drains nodes and restarts everything once. A fail-closed webhook that is asked about the pods of kube-system, or about its own pods, " +
			"refuses exactly those requests that would bring it and the cluster back. An objectSelector on the backend's labels is not enough: the binding of a pod to a node carries no labels of the pod.",
		Fix: "Leave out kube-system and the backend's own namespace with a namespaceSelector on kubernetes.io/metadata.name (NotIn), run at least two replicas " +
			"of the backend on different nodes with a PodDisruptionBudget, and keep timeoutSeconds at 5 or less.",
		Links: []string{
			"https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/",
			"https://github.com/open-policy-agent/gatekeeper/issues/3829", "https://github.com/topolvm/topolvm/issues/57",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{objects.Cluster},
	Run:   lockable,
})

func lockable(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	gapsOfHooks(p, set)
	for _, h := range hooks(set) {
		if !h.fail || h.optIn() {
			continue
		}
		b := h.behind(set)
		if b.Dead {
			continue // ADM101
		}
		system, all := h.core(set, "kube-system")
		if len(all) == 0 {
			continue
		}
		own := ""
		if s := h.client.Service; s != nil && h.matches("", "pods") && h.selects(set, s.Namespace) {
			own = s.Namespace
		}
		cond := report.Certain
		if len(h.conditions) > 0 {
			if h.conditionNames("kube-system", own) {
				continue
			}
			cond = report.Probable
		}
		var why, lacks []string
		sev := report.Medium
		if len(system) > 0 {
			sev = report.High
			why = append(why, "it is asked about "+strings.Join(system, ", ")+" of kube-system")
			lacks = append(lacks, "kube-system")
		}
		if own != "" && own != "kube-system" {
			why = append(why, "its own pods in "+own+" go through it")
			lacks = append(lacks, own)
		}
		if b.Known && b.Ready == 1 {
			why = append(why, "its backend has one ready address")
		}
		if len(why) == 0 {
			continue
		}
		ev := []analyze.Evidence{analyze.See(h.ref, fmt.Sprintf("webhook %s, failurePolicy Fail, timeoutSeconds %d, rules %s, namespaceSelector %s", h.name, h.timeout, h.ruleText(), selectorText(h.namespaces)))}
		if !b.Ref.IsZero() {
			ev = append(ev, analyze.Context(b.Ref, fmt.Sprintf("service %s, %d ready addresses", b.Service, b.Ready)))
		}
		p.Report(analyze.Finding{Subject: "webhook " + h.label(), Severity: sev, Confidence: cond, Evidence: ev, Fix: unlockSteps(h, lacks),
			Message: fmt.Sprintf("webhook %s refuses what it matches when it does not answer, and %s: when its backend is down it can keep itself from coming back", h.label(), strings.Join(why, ", "))})
	}
	return nil
}

// core lists the resources a cluster needs to run that the hook is asked
// about: those of a namespace and nodes, and those of any namespace.
func (h *hook) core(s *objects.Set, namespace string) (there, anywhere []string) {
	in := h.selects(s, namespace)
	for _, r := range []struct{ group, resource string }{{"", "pods"}, {"", "namespaces"}, {"", "nodes"}, {"coordination.k8s.io", "leases"}} {
		if !h.matches(r.group, r.resource) {
			continue
		}
		anywhere = append(anywhere, r.resource)
		if in || r.resource == "nodes" {
			there = append(there, r.resource)
		}
	}
	return there, anywhere
}

// conditionNames reports whether a matchCondition speaks of one of the names:
// what it does with them is for the API server to say.
func (h *hook) conditionNames(names ...string) bool {
	return slices.ContainsFunc(h.conditions, func(c string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return n != "" && strings.Contains(c, n) })
	})
}

func unlockSteps(h *hook, namespaces []string) []report.Step {
	var out []report.Step
	if len(namespaces) > 0 {
		out = append(out, report.Step{Text: fmt.Sprintf("Leave out %s: namespaceSelector.matchExpressions with key kubernetes.io/metadata.name, operator NotIn. Where an operator or a chart writes the configuration, change it there.", strings.Join(namespaces, " and ")),
			Command: fmt.Sprintf("kubectl edit %s %s", h.kind, h.config)})
	}
	return append(out, report.Step{Text: "Run two replicas of the backend or more, on different nodes, with a PodDisruptionBudget."},
		report.Step{Text: "Keep a copy of the configuration at hand, so that it can be deleted and put back during the upgrade.", Command: fmt.Sprintf("kubectl get %s %s -o yaml > %s.yaml", h.kind, h.config, h.config)})
}
