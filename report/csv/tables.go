package csv

import (
	"strings"

	"coldplane/report"
)

func tables() map[string]table {
	return map[string]table{
		"findings": {
			[]string{"severity", "confidence", "rule", "node", "subject", "title", "message", "where", "fix", "observedAt", "id"},
			func(r *report.Report, add func(...any)) {
				for _, f := range r.Findings {
					where, fix := "", ""
					if len(f.Evidence) > 0 {
						where = f.Evidence[0].Place()
					}
					if len(f.Fix) > 0 {
						fix = f.Fix[0].Text
					}
					add(string(f.Severity), string(f.Confidence), f.Rule, f.Node, f.Subject, f.Title, f.Message, where, fix, when(f.ObservedAt), f.ID)
				}
			},
		},
		"results": {
			[]string{"rule", "subject", "outcome", "detail", "missing"},
			func(r *report.Report, add func(...any)) {
				for _, x := range r.Results {
					var gaps []string
					for _, g := range x.Gaps {
						gaps = append(gaps, g.Evidence+" "+g.Reason)
					}
					add(x.Rule, x.Subject, string(x.Outcome), x.Detail, strings.Join(gaps, "; "))
				}
			},
		},
		"gaps": {
			[]string{"evidence", "node", "reason", "detail", "rules"},
			func(r *report.Report, add func(...any)) {
				for _, g := range r.Gaps() {
					add(g.Evidence, g.Node, g.Reason, g.Detail, strings.Join(g.Rules, " "))
				}
			},
		},
		"timeline": {
			[]string{"time", "until", "node", "source", "kind", "text", "where", "finding"},
			func(r *report.Report, add func(...any)) {
				for _, e := range r.Timeline {
					where := ""
					if e.Ref != nil {
						where = e.Ref.Place()
					}
					add(when(&e.Time), when(e.Until), e.Node, e.Source, e.Kind, e.Text, where, e.Finding)
				}
			},
		},
		"matrix": {
			[]string{"plane", "subject", "name", "state", "time", "text"},
			func(r *report.Report, add func(...any)) {
				m, _ := report.Fact[report.Matrix](r, report.FactMatrix)
				for _, x := range m.Rows {
					add(x.Plane, x.Subject, x.Name, x.State, when(x.Time), x.Text)
				}
			},
		},
		"members": {
			[]string{"cluster", "id", "name", "node", "state", "why", "learner", "leader", "version", "term", "index", "revision", "size", "peerURLs", "domain"},
			func(r *report.Report, add func(...any)) {
				ms, _ := report.Fact[[]report.Member](r, report.FactMembers)
				for _, m := range ms {
					add(m.Cluster, m.ID, m.Name, m.Node, m.State, m.Why, yes(m.Learner), yes(m.Leader), m.Version, num(int64(m.Term)), num(int64(m.Index)), num(m.Revision), num(m.Size), strings.Join(m.PeerURLs, " "), m.Domain)
				}
			},
		},
		"store": {
			[]string{"node", "path", "type", "namespace", "live", "history", "objects"},
			func(r *report.Report, add func(...any)) {
				ss, _ := report.Fact[[]report.Store](r, report.FactStore)
				for _, s := range ss {
					for _, t := range s.Types {
						add(s.Node, s.Path, t.Type, "", num(t.Live), num(t.History), num(t.Objects))
						for _, n := range t.Namespaces {
							add(s.Node, s.Path, t.Type, n.Namespace, num(n.Live), num(n.History), num(n.Objects))
						}
					}
				}
			},
		},
		"certificates": {
			[]string{"node", "path", "role", "subject", "issuer", "notBefore", "notAfter", "daysLeft", "chain", "keyMatch", "sans", "usedBy"},
			func(r *report.Report, add func(...any)) {
				cs, _ := report.Fact[[]report.Certificate](r, report.FactCertificates)
				for _, c := range cs {
					add(c.Node, c.Path, c.Role, c.Subject, c.Issuer, when(&c.NotBefore), when(&c.NotAfter), optional(c.DaysLeft), c.Chain, c.KeyMatch, strings.Join(c.SANs, " "), strings.Join(c.UsedBy, "; "))
				}
			},
		},
		"inputs": {
			[]string{"id", "path", "format", "node", "collectedAt", "state", "sha256", "refused"},
			func(r *report.Report, add func(...any)) {
				for _, in := range r.Inputs {
					add(in.ID, in.Path, in.Format, in.Node, when(in.CollectedAt), in.State, in.SHA256, num(len(in.Refused)))
				}
			},
		},
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
