package bun

import (
	"fmt"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "BUN104", Name: "evidence-cut-off", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Info},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Logs are cut off, unreadable or of unknown time",
		Why:   "What is missing at the beginning of a log may hold the cause; what ends early may hide that something still goes on. Times without a zone or year place events wrongly between nodes.",
		Fix:   "Collect the rotated files too (/var/log/pods/*/*/*.log.*), and journals with journalctl -o export, which carries exact times.",
		Links: []string{"https://kubernetes.io/docs/concepts/cluster-administration/logging/#log-rotation"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{logs.OnNode},
	Run:   cutOff,
})

func cutOff(p *analyze.Pass) error {
	n, _ := logs.OnNode.In(p)
	if len(n.Binary) > 0 {
		p.Report(analyze.Finding{Subject: "binary journal", Severity: report.Info, Message: fmt.Sprintf("%d journal files need journalctl to be read", len(n.Binary)),
			Evidence: []analyze.Evidence{analyze.See(n.Binary[0].Ref(), "journald's own format")},
			Fix:      []report.Step{{Text: "Turn them into text and add the result as journal/units.export.", Command: n.JournalCommand()}}})
	}
	for _, s := range n.Streams {
		name := s.File.Origin
		if s.Err != nil {
			p.Report(analyze.Finding{Subject: name, Severity: report.Info, Message: "the log cannot be read: " + s.Err.Error(),
				Evidence: []analyze.Evidence{analyze.See(s.File.Ref(), string(bundle.ReasonOf(s.Err)))}})
			continue
		}
		r := s.Result
		what := ""
		switch {
		case r.Broken != "":
			what = "reading ended early: " + r.Broken
		case r.Limited:
			what = "only the first " + bundle.FormatBytes(r.Bytes) + " were read"
		case r.NULs > 4096:
			what = fmt.Sprintf("%s of NUL bytes inside, as after a power loss", bundle.FormatBytes(r.NULs))
		case r.NoYear:
			what = "its times have no year and nothing tells it"
		case r.ZoneAssumed && len(r.Stats) > 0:
			what = "its times have no zone; they were taken for UTC and may be off by hours"
		}
		if what == "" {
			continue
		}
		p.Report(analyze.Finding{Subject: name, Severity: report.Info, Message: what, Evidence: []analyze.Evidence{analyze.See(s.File.Ref(), what)}})
	}
	if now, ok := p.AsOf(p.Node()); ok {
		if end, s := n.End(); s != nil && now.Sub(end) > time.Hour {
			p.Report(analyze.Finding{Subject: "end of the logs", Severity: report.Info, Message: fmt.Sprintf("the newest log line is %s older than the collection", now.Sub(end).Round(time.Minute)),
				Evidence: []analyze.Evidence{analyze.See(s.File.Ref(), "last line "+end.UTC().Format(time.RFC3339))}, ObservedAt: end})
		}
	}
	return nil
}
