package adm

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "ADM403", Name: "api-server-overload", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Medium},
	Doc: analyze.Doc{
		Title: "The API server turns requests or watchers away",
		Why: "More requests come in than the API server's priority levels let through: clients get 429 and try again. Watchers that are too slow are closed, " +
			"and each of them lists everything anew, which is more load still.",
		Fix: "Find the client that asks most (audit log, apiserver_flowcontrol metrics by flow schema) and slow it down or repair it. Give important clients a FlowSchema and a priority level of their own. Only then raise --max-requests-inflight.",
		Links: []string{
			"https://kubernetes.io/docs/concepts/cluster-administration/flow-control/",
		},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "refused", Default: 100, Unit: "per minute", Source: "a few are the normal answer to a burst"},
		{Name: "closed", Default: 10, Unit: "watchers", Source: "one or two are slow clients, not the server"},
	},
	Wants: []analyze.Need{logs.OnNode},
	Run:   overload,
})

func overload(p *analyze.Pass) error {
	l, err := logs.OnNode.Try(p, p.Node())
	if err != nil {
		p.UnknownErr(bundle.KindLogs, p.Node(), err)
		return nil
	}
	if !l.Has(signature.APIServer) {
		p.Unknown(bundle.KindLogs, p.Node(), bundle.NotCollected, "no log of the API server")
		return nil
	}
	for _, f := range l.Find(signature.APIServer, "A40") {
		if float64(f.Minute.Count) <= p.Param("refused") || len(f.Hits) == 0 {
			continue
		}
		at := logs.At{Stream: f.Stream, Stat: f.Stat, Hit: f.Hits[len(f.Hits)-1]}
		p.Report(analyze.Finding{Subject: "kube-apiserver refused requests", Severity: report.Medium, Confidence: report.Probable, ObservedAt: f.Minute.Start,
			Message:  fmt.Sprintf("the API server refused %d requests with 429 in one minute and %d in all", f.Minute.Count, f.Count),
			Evidence: []analyze.Evidence{at.See()}})
		break
	}
	if n := l.Count(signature.APIServer, "A12", "A46"); float64(n) >= p.Param("closed") {
		if at, ok := l.Last(signature.APIServer, "A12", "A46"); ok {
			p.Report(analyze.Finding{Subject: "kube-apiserver watchers", Severity: report.Medium, Confidence: report.Probable, ObservedAt: at.Time,
				Message:  fmt.Sprintf("the API server closed watchers %d times because they or its cache were too slow", n),
				Evidence: []analyze.Evidence{at.See()}})
		}
	}
	return nil
}
