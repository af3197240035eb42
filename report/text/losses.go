package text

import (
	"strings"

	"coldplane/report"
)

// losses prints what losing each control-plane node, or each failure domain,
// would do.
func (p *printer) losses() {
	q, ok := report.Fact[report.Quorum](p.r, report.FactQuorum)
	if !ok || len(q.Nodes) == 0 {
		return
	}
	p.head("If a control-plane node is lost")
	var rows [][]string
	for _, n := range q.Nodes {
		rows = append(rows, []string{n.Node, n.Domain, p.say.T(n.State), p.say.T(n.Quorum), n.API, n.VIP, n.CoreDNS})
	}
	p.table(2, []string{p.say.T("node"), p.say.T("domain"), p.say.T("state"), p.say.T("quorum"), p.say.T("API servers"), "VIP", "CoreDNS"}, rows)
	if len(q.Domains) == 0 {
		return
	}
	p.head("If a failure domain is lost")
	rows = nil
	for _, d := range q.Domains {
		rows = append(rows, []string{d.Name, strings.Join(d.Members, " "), p.say.T(d.Quorum), d.API, d.CoreDNS})
	}
	p.table(2, []string{p.say.T("domain"), p.say.T("members"), p.say.T("quorum"), p.say.T("API servers"), "CoreDNS"}, rows)
}

// versions prints what runs where.
func (p *printer) versions() {
	vs, _ := report.Fact[[]report.Version](p.r, report.FactVersions)
	if len(vs) == 0 {
		return
	}
	p.head("Versions and how they are known")
	var rows [][]string
	for _, v := range vs {
		rows = append(rows, []string{v.Node, v.Component, v.Version, p.say.T(v.Source), v.Note})
	}
	p.table(2, []string{p.say.T("node"), p.say.T("component"), p.say.T("version"), p.say.T("source"), p.say.T("note")}, rows)
}
