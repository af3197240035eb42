package adm

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"coldplane/analyze/objects"
	"coldplane/bundle"
)

// A hook is one webhook of either kind.
type hook struct {
	config, name string
	kind         string // resource of the configuration
	ref          bundle.Ref
	fail         bool // failurePolicy Fail, the default of v1
	timeout      int32
	rules        []admissionv1.RuleWithOperations
	namespaces   *metav1.LabelSelector
	objects      *metav1.LabelSelector
	conditions   []string // CEL of matchConditions
	client       admissionv1.WebhookClientConfig
	versions     []string
	created      time.Time
}

func (h *hook) label() string { return h.config + "/" + h.name }

// hooks are all webhooks of the store, by configuration.
func hooks(s *objects.Set) []*hook {
	var out []*hook
	add := func(config, kind string, created time.Time, ref bundle.Ref, name string, fp *admissionv1.FailurePolicyType, to *int32, rules []admissionv1.RuleWithOperations, ns, obj *metav1.LabelSelector, conds []admissionv1.MatchCondition, c admissionv1.WebhookClientConfig, vs []string) {
		h := &hook{config: config, name: name, kind: kind, ref: ref, fail: fp == nil || *fp == admissionv1.Fail, timeout: 10, rules: rules, namespaces: ns, objects: obj, client: c, versions: vs, created: created}
		if to != nil {
			h.timeout = *to
		}
		for _, c := range conds {
			h.conditions = append(h.conditions, c.Expression)
		}
		out = append(out, h)
	}
	for _, o := range s.ValidatingWebhooks().Items {
		for _, w := range o.Value.Webhooks {
			add(o.Value.Name, "validatingwebhookconfiguration", o.Value.CreationTimestamp.Time, o.Ref, w.Name, w.FailurePolicy, w.TimeoutSeconds, w.Rules, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions, w.ClientConfig, w.AdmissionReviewVersions)
		}
	}
	for _, o := range s.MutatingWebhooks().Items {
		for _, w := range o.Value.Webhooks {
			add(o.Value.Name, "mutatingwebhookconfiguration", o.Value.CreationTimestamp.Time, o.Ref, w.Name, w.FailurePolicy, w.TimeoutSeconds, w.Rules, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions, w.ClientConfig, w.AdmissionReviewVersions)
		}
	}
	slices.SortFunc(out, func(a, b *hook) int { return strings.Compare(a.label(), b.label()) })
	return out
}

// behind judges the backend by the last stored state.
func (h *hook) behind(s *objects.Set) objects.Backend {
	c := h.client
	if c.Service == nil {
		if c.URL == nil {
			return objects.Backend{}
		}
		u, err := url.Parse(*c.URL)
		if err != nil {
			return objects.Backend{Dead: true, Known: true, Why: "its URL cannot be read"}
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.IsUnspecified() {
			return objects.Backend{Dead: true, Known: true, Why: "its URL names no host"}
		}
		return objects.Backend{}
	}
	return s.Backend(c.Service.Namespace, c.Service.Name)
}

// matches reports whether a rule of the hook covers the creation or the change
// of a resource of a group.
func (h *hook) matches(group, resource string) bool {
	return h.covers(group, resource, admissionv1.Create, admissionv1.Update)
}

// covers reports whether a rule of the hook covers one of the operations on a
// resource of a group.
func (h *hook) covers(group, resource string, ops ...admissionv1.OperationType) bool {
	for _, r := range h.rules {
		if !slices.ContainsFunc(r.Operations, func(o admissionv1.OperationType) bool {
			return o == admissionv1.OperationAll || slices.Contains(ops, o)
		}) {
			continue
		}
		if !slices.Contains(r.APIGroups, "*") && !slices.Contains(r.APIGroups, group) {
			continue
		}
		if slices.ContainsFunc(r.Resources, func(x string) bool {
			return x == "*" || x == "*/*" || x == resource || x == resource+"/*"
		}) {
			return true
		}
	}
	return false
}

// selects reports whether the namespace selector lets a namespace through.
func (h *hook) selects(s *objects.Set, namespace string) bool {
	ls := labels.Set{"kubernetes.io/metadata.name": namespace}
	for _, n := range s.Namespaces().Items {
		if n.Value.Name == namespace {
			for k, v := range n.Value.Labels {
				ls[k] = v
			}
		}
	}
	sel, err := metav1.LabelSelectorAsSelector(orAll(h.namespaces))
	return err != nil || sel.Matches(ls)
}

func orAll(s *metav1.LabelSelector) *metav1.LabelSelector {
	if s == nil {
		return &metav1.LabelSelector{}
	}
	return s
}

// optIn reports whether only objects with a label of their own are sent.
func (h *hook) optIn() bool {
	o := h.objects
	return o != nil && (len(o.MatchLabels) > 0 || slices.ContainsFunc(o.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpExists
	}))
}

// custom reports whether the rules are about custom resources only.
func (h *hook) custom() bool {
	for _, r := range h.rules {
		for _, g := range r.APIGroups {
			if g == "*" || !strings.Contains(g, ".") || strings.HasSuffix(g, ".k8s.io") && !strings.Contains(strings.TrimSuffix(g, ".k8s.io"), ".") {
				return false
			}
		}
	}
	return len(h.rules) > 0
}

// ruleText is the rules in a line.
func (h *hook) ruleText() string {
	var parts []string
	for _, r := range h.rules {
		var gs []string
		for _, g := range r.APIGroups {
			if g == "" {
				g = "core"
			}
			gs = append(gs, g)
		}
		parts = append(parts, fmt.Sprintf("%s of %s", strings.Join(r.Resources, ","), strings.Join(gs, ",")))
	}
	if len(parts) > 3 {
		parts = append(parts[:3], fmt.Sprintf("and %d more", len(parts)-3))
	}
	return strings.Join(parts, "; ")
}

func (h *hook) policy() string {
	if h.fail {
		return "Fail"
	}
	return "Ignore"
}
