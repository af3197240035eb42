package adm

import (
	"fmt"
	"slices"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "ADM104", Name: "broken-webhook-wiring", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Low},
	Doc: analyze.Doc{
		Title: "A webhook or aggregated API cannot be called as it is written down",
		Why: "The API server verifies the certificate of a webhook or an aggregated API with the caBundle of its configuration, and dials the port named there. " +
			"With an expired or unreadable bundle, or a port the service does not have, every call fails although the pods are well.",
		Fix: "Let whoever made the certificate write the bundle again (cert-manager's cainjector, the chart's certificate job), or copy the present CA into it. Correct the port.",
		Links: []string{
			"https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{objects.Cluster},
	Run:   wiring,
})

// settle is how long an injector may take to fill in a new bundle.
const settle = 10 * time.Minute

// A call is what the API server is told about calling something.
type call struct {
	subject, label string
	ref            bundle.Ref
	service        *objects.ServiceRef // nil for a URL
	ca             []byte
	insecure       bool
	needsCA        bool // a service's certificate is never by a public CA
	grave          bool // callers are refused, not let through
	created        time.Time
}

func wiring(p *analyze.Pass) error {
	set, _ := objects.Cluster.In(p)
	gapsOfHooks(p, set)
	now, dated := p.AsOf(nil)
	for _, c := range calls(set) {
		sev := report.Low
		if c.grave {
			sev = report.High
		}
		say := func(text string, ev ...analyze.Evidence) {
			p.Report(analyze.Finding{Subject: c.subject, Severity: sev, Message: c.label + " " + text, Evidence: append([]analyze.Evidence{analyze.See(c.ref, c.label)}, ev...)})
		}
		young := dated && !c.created.IsZero() && now.Sub(c.created) < settle
		switch why := badBundle(c, now, dated); {
		case why == "" || young:
		default:
			say(why)
			continue
		}
		if c.service == nil {
			continue
		}
		b := set.Backend(c.service.Namespace, c.service.Name)
		if b.Object == nil || len(b.Object.Spec.Ports) == 0 {
			continue // no service: ADM101, ADM201
		}
		port := int32(443)
		if c.service.Port != nil {
			port = *c.service.Port
		}
		var has []int32
		for _, x := range b.Object.Spec.Ports {
			has = append(has, x.Port)
		}
		if !slices.Contains(has, port) {
			say(fmt.Sprintf("is called on port %d of service %s, which has only %v", port, b.Service, has), analyze.Expect(b.Ref, fmt.Sprintf("ports %v", has)))
		}
	}
	for _, h := range hooks(set) {
		if len(h.versions) > 0 && !slices.Contains(h.versions, "v1") {
			p.Report(analyze.Finding{Subject: "webhook " + h.label() + " versions", Severity: report.Low,
				Message:  fmt.Sprintf("webhook %s understands only AdmissionReview %v, not v1", h.label(), h.versions),
				Evidence: []analyze.Evidence{analyze.See(h.ref, fmt.Sprintf("admissionReviewVersions %v", h.versions))}})
		}
	}
	return nil
}

// badBundle says what is wrong with a caBundle; "" when nothing is.
func badBundle(c call, now time.Time, dated bool) string {
	switch {
	case c.insecure:
		return ""
	case len(c.ca) == 0 && c.needsCA:
		return "has no caBundle: the certificate of its service cannot be verified"
	case len(c.ca) == 0:
		return "" // the system's own roots
	}
	f := spki.Parse(c.ca)
	if f.Marker != "" {
		return ""
	}
	var newest time.Time
	for _, b := range f.Blocks {
		switch {
		case b.Cert != nil && b.Cert.NotAfter.After(newest):
			newest = b.Cert.NotAfter
		case b.Partial != nil && b.Partial.NotAfter.After(newest):
			newest = b.Partial.NotAfter
		}
	}
	if newest.IsZero() {
		return "has a caBundle without a certificate in it"
	}
	if dated && now.After(newest) {
		return fmt.Sprintf("has a caBundle whose certificate expired on %s", newest.UTC().Format(time.DateOnly))
	}
	return ""
}

// calls are the webhooks and aggregated APIs of the store.
func calls(s *objects.Set) []call {
	var out []call
	for _, h := range hooks(s) {
		c := call{subject: "webhook " + h.label(), label: "webhook " + h.label(), ref: h.ref, ca: h.client.CABundle, grave: h.fail, created: h.created}
		if x := h.client.Service; x != nil {
			c.service, c.needsCA = &objects.ServiceRef{Namespace: x.Namespace, Name: x.Name, Port: x.Port}, true
		}
		out = append(out, c)
	}
	for _, o := range s.APIServices().Items {
		v := o.Value
		if v.Spec.Service == nil {
			continue
		}
		name := "APIService " + v.Metadata.Name
		out = append(out, call{subject: name, label: name, ref: o.Ref, service: v.Spec.Service, ca: v.Spec.CABundle, insecure: v.Spec.InsecureSkipTLSVerify,
			needsCA: true, grave: true, created: v.Metadata.CreationTimestamp})
	}
	return out
}
