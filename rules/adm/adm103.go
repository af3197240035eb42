package adm

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/objects"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "ADM103", Name: "webhook-on-leader-election", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "A webhook is asked about the objects leaders are elected with",
		Why: "The controller manager and the scheduler renew a Lease in kube-system every 2 s and give up leadership after 10 s; a client waits 5 s for one renewal. " +
			"A webhook that takes that long to fail makes them lose it, whatever its failurePolicy: Ignore is only reached after the timeout.",
		Fix: "Leave coordination.k8s.io out of the webhook's rules, or kube-system out with a namespaceSelector, and set timeoutSeconds to 3 or less.",
		Links: []string{
			"https://github.com/kubernetes/kubernetes/issues/90217", "https://github.com/open-policy-agent/gatekeeper/issues/3829",
		},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "high", Default: 10, Unit: "seconds", Source: "renew deadline of leader election (k8s.io/component-base config defaults)"},
		{Name: "medium", Default: 5, Unit: "seconds", Source: "half of the renew deadline, the client's timeout of one renewal"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{logs.OnNode},
	Run:   leaderHooks,
})

func leaderHooks(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	gapsOfHooks(p, set)
	lost, seen := lostLeases(p)
	for _, h := range hooks(set) {
		what := h.locks(set)
		if len(what) == 0 || h.optIn() || float64(h.timeout) < p.Param("medium") || h.conditionNames("leases", "coordination.k8s.io", "kube-system", "system:kube-") {
			continue
		}
		sev := report.Medium
		if float64(h.timeout) >= p.Param("high") {
			sev = report.High
		}
		// Without an upgrade ahead and without a leader that was lost it is a
		// thing to know, no more.
		if p.Target() == "" && !seen {
			sev = report.Low
		}
		ev := []analyze.Evidence{analyze.See(h.ref, fmt.Sprintf("webhook %s, failurePolicy %s, timeoutSeconds %d, rules %s", h.name, h.policy(), h.timeout, h.ruleText()))}
		msg := fmt.Sprintf("webhook %s is asked about every renewal of %s in kube-system and may take %d s, as long as leaders have", h.label(), strings.Join(what, ", "), h.timeout)
		if h.timeout < 10 {
			msg = fmt.Sprintf("webhook %s is asked about every renewal of %s in kube-system and may take %d s, as long as a client waits", h.label(), strings.Join(what, ", "), h.timeout)
		}
		if seen {
			ev = append(ev, analyze.Context(lost.Ref(), lost.Excerpt()))
			msg += "; leadership was lost"
		}
		conf := report.Certain
		if len(h.conditions) > 0 {
			conf = report.Probable
		}
		p.Report(analyze.Finding{Subject: "webhook " + h.label(), Severity: sev, Confidence: conf, Message: msg, Evidence: ev})
	}
	return nil
}

// locks are the lock objects in kube-system the hook is asked about. Endpoints
// and ConfigMaps were locks up to 1.23; only clusters that still have such a
// lock are asked about those.
func (h *hook) locks(s *objects.Set) []string {
	if !h.selects(s, "kube-system") {
		return nil
	}
	var out []string
	if h.covers("coordination.k8s.io", "leases", admissionv1.Update) {
		out = append(out, "leases")
	}
	const leader = "control-plane.alpha.kubernetes.io/leader"
	if h.covers("", "endpoints", admissionv1.Update) {
		if o, err := s.Endpoints("kube-system", "kube-controller-manager"); err == nil && o.Value.Annotations[leader] != "" {
			out = append(out, "endpoints")
		}
	}
	if h.covers("", "configmaps", admissionv1.Update) {
		if o, err := s.ConfigMap("kube-system", "kube-controller-manager"); err == nil && o.Value.Annotations[leader] != "" {
			out = append(out, "configmaps")
		}
	}
	return out
}

// lostLeases is the newest line about a lost leadership.
func lostLeases(p *analyze.Pass) (last logs.At, seen bool) {
	for _, n := range p.All() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		if at, ok := l.Last(signature.ControllerManager|signature.Scheduler, "C01", "C09"); ok && (!seen || at.Time.After(last.Time)) {
			last, seen = at, true
		}
	}
	return last, seen
}
