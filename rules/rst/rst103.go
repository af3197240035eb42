package rst

import (
	"fmt"
	"strconv"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/pki"
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
	Wants: []analyze.Need{etcddb.OnNode, etcdwal.OnNode, pki.Starts},
	Run:   notRestarted,
})

func notRestarted(p *analyze.Pass) error {
	n := p.Node()
	l, ok := logs.OnNode.In(p)
	if !ok {
		return nil
	}
	at, evidence, found := restoreTime(p, n, l)
	where := ""
	if !found {
		if at, evidence, where, found = restoredElsewhere(p, n); !found {
			return p.NotApplicable("nothing shows a restore")
		}
		where = " on " + where
	}
	starts, err := pki.Starts.Try(p, n)
	if err != nil {
		p.UnknownErr(bundle.KindCRI, n, err)
		return nil
	}
	for _, c := range []struct {
		name string
		sev  report.Severity
	}{{staticpod.APIServer, report.High}, {staticpod.ControllerManager, report.Medium}, {staticpod.Scheduler, report.Medium}, {"kubelet", report.Medium}} {
		x, ok := starts[c.name]
		if !ok || !x.At.Before(at) {
			continue
		}
		p.Report(analyze.Finding{
			Subject: c.name, Severity: c.sev, Confidence: report.Probable,
			Message:  fmt.Sprintf("%s runs since %s, etcd was restored%s at %s", c.name, x.At.Format(time.RFC3339), where, at.UTC().Format(time.RFC3339)),
			Evidence: []analyze.Evidence{analyze.See(x.Ref, x.Text), evidence},
		})
	}
	return nil
}

// skew is how far the clocks of two nodes may be apart before the start of one's
// component is held against the restore of the other's etcd.
const skew = time.Minute

// restoredElsewhere is the first restore that the log of another member of the
// node's own cluster shows. A node that went on alone has its old store.
func restoredElsewhere(p *analyze.Pass, n *bundle.Node) (at time.Time, e analyze.Evidence, node string, found bool) {
	for _, o := range p.Nodes() {
		if o == n || clusterID(p, n) == 0 || clusterID(p, o) != clusterID(p, n) {
			continue
		}
		l, err := logs.OnNode.Try(p, o)
		if err != nil {
			continue
		}
		if t, x, ok := restoreTime(p, o, l); ok && (!found || t.Before(at)) {
			at, e, node, found = t, x, o.Name, true
		}
	}
	return at.Add(-skew), e, node, found
}

// clusterID is the cluster that a node's write-ahead log names, 0 without one.
func clusterID(p *analyze.Pass, n *bundle.Node) uint64 {
	ds, err := etcdwal.OnNode.Try(p, n)
	if err != nil {
		return 0
	}
	if d := ds.Live(); d != nil && d.Log != nil && d.Log.Identified {
		return d.Log.Identity.Cluster
	}
	return 0
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
