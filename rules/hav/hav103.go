package hav

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "HAV103", Name: "endpoint-open-api-unusable", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Symptom:    true,
	Doc: analyze.Doc{
		Title: "The API endpoint accepts connections but the API is not usable",
		Why: "An open port says nothing about the API behind it: TCP, TLS, /livez, /readyz and an authenticated read are five different answers. When reads " +
			"fail, the store is usually the cause. Unauthorized or forbidden right after an etcd outage means that caches never filled, not that permissions are wrong. " +
			"User traffic is another plane and may go on.",
		Fix:   "Compare the rungs per backend: one bad backend is a matter of that node; all bad is the store (QRM101, CAP101) or certificates (PKI101). If no control-plane node answers at all, power and network come first.",
		Links: []string{"https://kubernetes.io/docs/reference/using-api/health-checks/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "slow", Default: 2000, Unit: "milliseconds"}},
	Needs:  []analyze.Need{host.Ladder},
	Run:    apiUnusable,
})

type tried struct {
	node   *bundle.Node
	target hostfacts.Target
	ref    bundle.Ref
}

func apiUnusable(p *analyze.Pass) error {
	byURL := map[string][]tried{}
	var order []string
	for _, n := range p.Nodes() {
		l, err := host.Ladder.Try(p, n)
		if err != nil {
			continue
		}
		for i, t := range l.Items {
			if t.Name != "endpoint" {
				continue
			}
			if byURL[t.URL] == nil {
				order = append(order, t.URL)
			}
			byURL[t.URL] = append(byURL[t.URL], tried{n, t, l.Refs[i]})
		}
	}
	if len(order) == 0 {
		p.Unknown(bundle.KindProbe, nil, bundle.NotCollected, "the cluster's endpoint was not tried")
		return nil
	}
	for _, u := range order {
		var bad, slow []tried
		open := 0
		for _, t := range byURL[u] {
			tcp, _ := rung(t.target, "tcp")
			get, ok := rung(t.target, "get")
			if !ok {
				// Without a credential to read with, readiness has to do; an API
				// server that does not talk to strangers says nothing.
				if get, ok = rung(t.target, "readyz"); get.Status == 401 || get.Status == 403 {
					continue
				}
			}
			switch {
			case tcp.OK && (!ok || !get.OK):
				open++
				bad = append(bad, t)
			case tcp.OK:
				open++
				if float64(get.LatencyMS) > p.Param("slow") {
					slow = append(slow, t)
				}
			}
		}
		switch {
		case len(bad) > 0:
			sev := report.High
			if len(bad) == open {
				sev = report.Critical
			}
			p.Report(unusable(u, sev, bad, fmt.Sprintf("%s accepts connections, but the API behind it is not usable from %d of %d nodes: %s", u, len(bad), len(byURL[u]), climbed(bad[0].target))))
		case len(slow) > 0:
			g, _ := rung(slow[0].target, "get")
			p.Report(unusable(u, report.Medium, slow, fmt.Sprintf("%s answers a small read only after %d ms", u, g.LatencyMS)))
		}
	}
	return nil
}

func unusable(url string, sev report.Severity, from []tried, msg string) analyze.Finding {
	f := analyze.Finding{Subject: "API endpoint", Severity: sev, Message: msg}
	for _, t := range from {
		f.Evidence = append(f.Evidence, analyze.Context(t.ref, t.node.Name+": "+climbed(t.target)))
	}
	f.Evidence[0].Role = report.RoleSubject
	return f
}

func rung(t hostfacts.Target, step string) (hostfacts.Rung, bool) {
	for _, r := range t.Rungs {
		if r.Step == step {
			return r, true
		}
	}
	return hostfacts.Rung{}, false
}

// climbed says how far a node got: "tcp ok, tls ok, readyz 500".
func climbed(t hostfacts.Target) string {
	var out []string
	for _, r := range t.Rungs {
		s := r.Step + " ok"
		switch {
		case !r.OK && r.Status != 0:
			s = fmt.Sprintf("%s %d", r.Step, r.Status)
		case !r.OK:
			s = strings.TrimSpace(r.Step + " failed " + r.Error)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}
