package rst

import (
	"fmt"
	"strconv"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "RST103", Name: "components-older-than-restore", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "Components were not restarted after the restore",
		Why:   "An API server that ran through the restore serves its old watch cache, and controllers act on objects that no longer exist or exist again.",
		Fix:   "Restart the components that are older than the restore: API servers first, then controller-manager and scheduler, then all kubelets.",
		Links: []string{"https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/#restoring-an-etcd-cluster"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{logs.OnNode},
	Wants: []analyze.Need{etcddb.OnNode, cri.OnNode},
	Run:   notRestarted,
})

func notRestarted(p *analyze.Pass) error {
	n := p.Node()
	l, ok := logs.OnNode.In(p)
	if !ok {
		return nil
	}
	at, evidence, found := restoreTime(p, n, l)
	if !found {
		return p.NotApplicable("nothing shows a restore on this node")
	}
	rt, err := cri.OnNode.Try(p, n)
	if err != nil {
		p.UnknownErr(bundle.KindCRI, n, err)
		return nil
	}
	for _, c := range []struct {
		name string
		sev  report.Severity
	}{{staticpod.APIServer, report.High}, {staticpod.ControllerManager, report.Medium}, {staticpod.Scheduler, report.Medium}} {
		for i := range rt.Containers {
			x := rt.Containers[i]
			if x.Name != c.name || x.State != cri.Running || x.Began().IsZero() || !x.Began().Before(at) {
				continue
			}
			p.Report(analyze.Finding{
				Subject: c.name, Severity: c.sev, Confidence: report.Probable,
				Message:  fmt.Sprintf("%s runs since %s, etcd was restored at %s", c.name, x.Began().UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339)),
				Evidence: []analyze.Evidence{analyze.See(x.Where(), "started "+x.Began().UTC().Format(time.RFC3339)), evidence},
			})
		}
	}
	return nil
}

// restoreTime is when etcd first opened a store at a lower revision than before.
func restoreTime(p *analyze.Pass, n *bundle.Node, l *logs.Node) (time.Time, analyze.Evidence, bool) {
	var before int64
	for _, hit := range l.Hits(signature.Etcd, "E50") {
		rev, err := strconv.ParseInt(hit.Value("current-rev"), 10, 64)
		if err != nil || hit.Time.IsZero() {
			continue
		}
		if before > 0 && rev < before && rev > 1 {
			return hit.Time, analyze.Context(hit.Ref(), hit.Excerpt()), true
		}
		before = rev
	}
	dbs, err := etcddb.OnNode.Try(p, n)
	if err != nil || dbs.Live() == nil {
		return time.Time{}, analyze.Evidence{}, false
	}
	if _, ok := restored(dbs.Live().Store); !ok {
		return time.Time{}, analyze.Evidence{}, false
	}
	// A restored member's first start says that it was not initialised by joining;
	// without a drop of the revision only the first start of this log dates it.
	for _, hit := range l.Hits(signature.Etcd, "E52") {
		if d := hit.Value("data-dir"); d != "" && dbs.Live().Dir != nil && hit.Value("member-initialized") == "false" && !hit.Time.IsZero() {
			return hit.Time, analyze.Context(hit.Ref(), hit.Excerpt()), true
		}
	}
	return time.Time{}, analyze.Evidence{}, false
}
