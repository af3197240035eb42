package qrm

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM108", Name: "etcd-tls-rejected", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "TLS connections between etcd members, or from the API server, are refused",
		Why: "A member whose certificate the others do not accept is as good as down, and an API server etcd does not accept serves nothing. Running " +
			"connections outlive the certificate: the fault shows at the first reconnect. The text of the refusing side and that of the refused side differ.",
		Fix: "Go by the class in the message: an expired certificate is renewed (PKI101), a foreign CA or a missing certificate is replaced by one of " +
			"etcd's own CA (PKI202), a missing name is added before the certificate is issued again (PKI205). Restart nothing before that.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/security/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "times", Default: 3, Unit: "refusals", Source: "more than one stray client"},
		{Name: "noise", Default: 10, Unit: "per minute", Source: "more than probes and scanners open"},
		{Name: "recent", Default: 60, Unit: "minutes before the end of the log"},
	},
	Needs: []analyze.Need{logs.OnNode},
	Wants: []analyze.Need{staticpod.Manifests},
	Run:   tlsRejected,
})

// A refusal is one class of refused connections on one port.
type refusal struct {
	subject string
	class   signature.ConnClass
	hits    []logs.At
	remotes map[string]int // host -> count
	total   int
}

func tlsRejected(p *analyze.Pass) error {
	n, _ := logs.OnNode.In(p)
	if !n.Has(signature.Etcd) && !n.Has(signature.APIServer) {
		p.Unknown(bundle.KindLogs, p.Node(), bundle.NotCollected, "no log of etcd or the API server")
		return nil
	}
	known, members := addresses(p)
	var all []*refusal
	add := func(subject string, class signature.ConnClass, at logs.At, remote string) {
		i := slices.IndexFunc(all, func(r *refusal) bool { return r.subject == subject && r.class == class })
		if i < 0 {
			i = len(all)
			all = append(all, &refusal{subject: subject, class: class, remotes: map[string]int{}})
		}
		r := all[i]
		r.hits = append(r.hits, at)
		r.total++
		if remote != "" {
			r.remotes[remote]++
		}
	}
	named := n.Hits(signature.Etcd, "E76", "E77")
	for _, port := range []struct{ id, subject string }{{"E76", "etcd peer port"}, {"E77", "etcd client port"}, {"E44", "etcd"}} {
		for _, at := range n.Hits(signature.Etcd, port.id) {
			// Until 3.5 the line does not say which port; later ones are of E76 or E77 too.
			if port.id == "E44" && slices.ContainsFunc(named, func(h logs.At) bool { return h.Stream == at.Stream && h.Line == at.Line }) {
				continue
			}
			if c := signature.ConnError(at.Value("error")); c.TLS() || c.Noise() {
				host, _, err := net.SplitHostPort(at.Value("remote-addr"))
				if err != nil {
					host = at.Value("remote-addr")
				}
				if c.Noise() && !known[host] {
					continue // probes, load balancers, scanners
				}
				add(port.subject, c, at, host)
			}
		}
	}
	for _, at := range n.Hits(signature.APIServer, "G10") {
		// The peer port and plain text are a wrong URL, not a refused certificate.
		if c := signature.ConnError(at.Value("err")); c.TLS() && c != signature.ConnPeerPort && c != signature.ConnPlain {
			add("API server to etcd", c, at, "")
		}
	}
	for _, r := range all {
		r.judge(p, n, known, members)
	}
	return nil
}

func (r *refusal) judge(p *analyze.Pass, n *logs.Node, known map[string]bool, members int) {
	times, perMinute := int(p.Param("times")), int(p.Param("noise"))
	fromUs := slices.ContainsFunc(keys(r.remotes), func(h string) bool { return known[h] })
	peerPort := r.subject == "etcd peer port"
	fast := busiest(r.hits) >= perMinute
	switch {
	case r.class.Noise() && !fast,
		!r.class.Noise() && r.total < times,
		!r.class.Noise() && !fromUs && !peerPort && len(r.remotes) > 0 && len(known) > loopbacks && !fast: // a stranger
		return
	}
	first, last := r.hits[0], r.hits[len(r.hits)-1]
	sev := report.High
	if peerPort && members > 1 && len(r.remotes) >= members-members/2 && !r.class.Noise() {
		sev = report.Critical
	}
	if end, _ := n.End(); !last.Time.IsZero() && end.Sub(last.Time) > time.Duration(p.Param("recent"))*time.Minute {
		sev = report.Medium
	}
	from := ""
	if hosts := keys(r.remotes); len(hosts) > 0 {
		from = " from " + strings.Join(head(hosts, 4), ", ")
	}
	when := ""
	if !first.Time.IsZero() {
		when = fmt.Sprintf(", first %s, last %s", clock(first.Time), clock(last.Time))
	}
	ev := []analyze.Evidence{first.See()}
	if last.Line != first.Line || last.Stream != first.Stream {
		ev = append(ev, analyze.Context(last.Ref(), last.Excerpt()))
	}
	p.Report(analyze.Finding{Subject: r.subject + ": " + string(r.class), Severity: sev, Confidence: report.Probable,
		Message:  fmt.Sprintf("%s: %s%s, %d times%s", r.subject, r.class, from, r.total, when),
		Evidence: ev, ObservedAt: first.Time})
}

// busiest is the largest number of occurrences within a minute.
func busiest(hits []logs.At) int {
	best := 0
	for i := range hits {
		n := 0
		for _, h := range hits[i:] {
			if h.Time.Sub(hits[i].Time) < time.Minute {
				n++
			}
		}
		best = max(best, n)
	}
	return best
}

func keys(m map[string]int) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return out
}

// addresses returns the hosts that belong to the cluster as the node's
// manifests name them, and the number of members of --initial-cluster.
// loopbacks are the addresses known without any manifest.
const loopbacks = 2

func addresses(p *analyze.Pass) (known map[string]bool, members int) {
	known = map[string]bool{"127.0.0.1": true, "::1": true}
	m, err := staticpod.Manifests.Try(p, p.Node())
	if err != nil {
		return known, 0
	}
	add := func(raw string) {
		if u, err := url.Parse(raw); err == nil && u.Hostname() != "" {
			known[u.Hostname()] = true
		}
	}
	for _, c := range []string{staticpod.Etcd, staticpod.APIServer} {
		pod := m.Component(c)
		if pod == nil {
			continue
		}
		for _, f := range pod.Flags {
			switch f.Name {
			case "advertise-client-urls", "listen-client-urls", "initial-advertise-peer-urls", "listen-peer-urls", "etcd-servers":
				for _, u := range f.List() {
					add(u)
				}
			case "advertise-address":
				known[f.Value] = true
			case "initial-cluster":
				members = len(f.List())
				for _, u := range f.List() {
					_, raw, _ := strings.Cut(u, "=")
					add(raw)
				}
			}
		}
	}
	return known, members
}
