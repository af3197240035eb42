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
	ID: "ADM101", Name: "fail-closed-webhook-without-backend", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "A webhook that refuses when it cannot be asked has nobody behind it",
		Why: "With failurePolicy Fail every request the webhook matches is refused while its backend does not answer. If it matches pods, the backend's " +
			"own pods are refused too and it never comes back by itself; if it matches leases or nodes, controllers lose their leadership and nodes their heartbeat.",
		Fix: "Save the configuration, set failurePolicy to Ignore or delete it (webhook configurations are not subject to webhooks), let the backend's pods " +
			"start, then put it back with a namespaceSelector that leaves out kube-system and the backend's own namespace, a timeout of at most 5 s, and two replicas.",
		Links: []string{
			"https://kubernetes.io/docs/concepts/cluster-administration/admission-webhooks-good-practices/",
			"https://github.com/open-policy-agent/gatekeeper/issues/725", "https://github.com/cozystack/cozystack/issues/3125",
		},
		Since: "v0.1",
	},
	Wants: []analyze.Need{objects.Cluster, logs.OnNode},
	Run:   deadWebhook,
})

func deadWebhook(p *analyze.Pass) error {
	denied := deniedCalls(p)
	set, err := objects.Cluster.Try(p, nil)
	if err != nil {
		fromLogs(p, denied, map[string]bool{})
		if len(denied) == 0 {
			p.UnknownErr(bundle.KindStore, nil, err)
		}
		return nil
	}
	known := map[string]bool{}
	for _, h := range hooks(set) {
		known[h.name] = true
		if !h.fail {
			continue
		}
		b := h.behind(set)
		said := denied[h.name]
		if !b.Dead && (len(said) == 0 || b.Known) {
			continue
		}
		why := b.Why
		if !b.Dead {
			why = "calls to it fail"
		}
		sev, reach := h.reach(set)
		conf := report.Certain
		if len(h.conditions) > 0 {
			conf = report.Probable
			reach += ", limited by matchConditions"
		}
		ev := []analyze.Evidence{analyze.See(h.ref, fmt.Sprintf("webhook %s, failurePolicy %s, rules %s", h.name, h.policy(), h.ruleText()))}
		if !b.Ref.IsZero() {
			ev = append(ev, analyze.Context(b.Ref, "service "+b.Service))
		}
		if len(said) > 0 {
			at := said[len(said)-1]
			ev = append(ev, analyze.Context(at.Ref(), at.Excerpt()))
		}
		msg := fmt.Sprintf("webhook %s refuses %s: %s", h.label(), reach, why)
		if n := len(said); n > 0 {
			msg += fmt.Sprintf("; %d refused calls are in the API server's log", n)
		}
		p.Report(analyze.Finding{Subject: "webhook " + h.label(), Severity: sev, Confidence: conf, Message: msg, Evidence: ev, Fix: webhookSteps(h)})
	}
	fromLogs(p, denied, known)
	return nil
}

// reach says what stops when the webhook cannot be asked.
func (h *hook) reach(s *objects.Set) (report.Severity, string) {
	system := h.selects(s, "kube-system")
	var what []string
	for _, r := range []struct {
		group, resource string
		namespaced      bool
	}{{"", "pods", true}, {"", "nodes", false}, {"coordination.k8s.io", "leases", true}} {
		if h.matches(r.group, r.resource) && (system || !r.namespaced) {
			what = append(what, r.resource)
		}
	}
	text := h.ruleText()
	switch {
	case h.optIn():
		return report.Medium, "labelled objects (" + text + ")"
	case len(what) > 0:
		where := " everywhere"
		if system {
			where = " in kube-system too"
		}
		return report.Critical, strings.Join(what, ", ") + where + " (" + text + ")"
	case h.custom():
		return report.Medium, "its own custom resources (" + text + ")"
	}
	return report.High, text
}

// deniedCalls are the API servers' log lines about refused calls, by webhook.
func deniedCalls(p *analyze.Pass) map[string][]logs.At {
	out := map[string][]logs.At{}
	for _, n := range p.All() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		for _, at := range l.Hits(signature.APIServer, "A04") {
			name := strings.TrimSuffix(at.Value("webhook"), ":")
			if name == "" {
				// klog's old form names it after the text.
				if _, rest, ok := strings.Cut(at.Excerpt(), "failing closed "); ok {
					name, _, _ = strings.Cut(rest, ":")
				}
			}
			if name = strings.Trim(strings.TrimSpace(name), `"`); name != "" {
				out[name] = append(out[name], at)
			}
		}
	}
	return out
}

// fromLogs reports webhooks that only the log knows.
func fromLogs(p *analyze.Pass, denied map[string][]logs.At, known map[string]bool) {
	for _, name := range keys(denied) {
		if known[name] {
			continue
		}
		said := denied[name]
		at := said[len(said)-1]
		p.Report(analyze.Finding{
			Subject: "webhook " + name, Severity: report.High, Confidence: report.Probable, ObservedAt: at.Time,
			Evidence: []analyze.Evidence{at.See()},
			Message:  fmt.Sprintf("webhook %s cannot be called and requests it matches are refused (%d calls in the API server's log)", name, len(said)),
		})
	}
}

func webhookSteps(h *hook) []report.Step {
	return []report.Step{
		{Text: "Save the configuration.", Command: fmt.Sprintf("kubectl get %s %s -o yaml > %s.yaml", h.kind, h.config, h.config)},
		{Text: "Let requests through while the backend is down; the configuration itself is not subject to webhooks.", Command: fmt.Sprintf("kubectl delete %s %s", h.kind, h.config)},
		{Text: "Start the backend's pods and wait until its service has a ready endpoint."},
		{Text: "Put the configuration back, with a namespaceSelector that leaves out kube-system and the backend's namespace, timeoutSeconds at most 5, and run two replicas.", Command: fmt.Sprintf("kubectl apply -f %s.yaml", h.config)},
	}
}
