package cap

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP105", Name: "etcd-filled-by-type", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium, report.Info},
	Doc: analyze.Doc{
		Title: "Which object types fill the database",
		Why:   "What fills etcd decides what helps: a controller to stop, a history to compact or a type to delete. Counted over every revision that is kept.",
		Fix:   "First stop what writes the type that leads. Then make room: delete its objects that nobody needs where live bytes lead, compact where history leads, and defragment the members one at a time afterwards. For what writes such objects, see CAP106 to CAP113.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/maintenance/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "share", Default: 0.5, Unit: "ratio", Source: "one type outweighs all others"},
		{Name: "bytes", Default: 200 * mib, Unit: "bytes", Source: "a tenth of the default quota"},
		{Name: "live", Default: 1.5 * gib, Unit: "bytes", Source: "three quarters of the default quota"},
		{Name: "quota", Default: 0.8, Unit: "ratio", Source: "CAP102"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{etcddb.QuotaOf},
	Run:   filledBy,
})

// coreTypes are big in every large cluster.
var coreTypes = map[string]bool{"pods": true, "secrets": true, "configmaps": true, "events": true, "minions": true, "replicasets": true, "leases": true,
	"endpointslices": true, "services/endpoints": true, "deployments": true}

func filledBy(p *analyze.Pass) error {
	s, q, ok := content(p)
	if !ok || len(s.Store.Types) == 0 {
		return nil
	}
	st := s.Store
	types := byBytes(st.Types)
	top := types[0]
	for _, t := range types {
		if t.LiveRec > top.LiveRec && t.RecBytes*10 > top.RecBytes*9 {
			top = t
		}
	}
	full := !q.Off && float64(st.Pages.DBSize) >= p.Param("quota")*float64(q.Bytes) && 2*st.Pages.InUse > st.Pages.DBSize && !st.Lossy
	share := ratio(top.RecBytes, st.RecBytes)
	sev := report.Info
	switch {
	case full && share > p.Param("share"):
		sev = report.High
	case !coreTypes[top.Type] && ratio(top.LiveRec, st.LiveRec) > p.Param("share") && float64(top.LiveRec) > p.Param("bytes"),
		float64(st.LiveRec) > p.Param("live"):
		sev = report.Medium
	}
	f := analyze.Finding{
		Node: s.DB.File.Node, Subject: "etcd content", Severity: sev,
		Message: fmt.Sprintf("%s holds %.0f %% of all records (%s in %d live objects, %s of history); %s live in all, %s of history",
			top.Type, 100*share, size(top.LiveRec), top.Live, size(top.History()), size(st.LiveRec), size(st.RecBytes-st.LiveRec)),
	}
	for i, t := range types {
		if i == 20 {
			break
		}
		f.Evidence = append(f.Evidence, analyze.Context(keyRef(s, example(s, t)), row(t)))
	}
	f.Evidence[0].Role = report.RoleSubject
	p.Report(f)
	return nil
}

// example is a key that stands for a type: its largest object, else any.
func example(s *objects.Set, t etcdstore.TypeStats) etcdstore.KeyStats {
	if t.Largest.Key != "" {
		return t.Largest
	}
	if v, _ := s.Store.Dead(1, s.Store.MatchType(t.Type, "")); len(v) > 0 {
		return etcdstore.KeyStats{Key: v[0].Key, Rev: v[0].Rev}
	}
	return etcdstore.KeyStats{Key: s.Store.Prefix + "/" + t.Type}
}

// row is one type in one line.
func row(t etcdstore.TypeStats) string {
	var ns []string
	for i, n := range t.Namespaces {
		if i == 3 {
			break
		}
		if n.Namespace != "" {
			ns = append(ns, fmt.Sprintf("%s %d", n.Namespace, n.Live))
		}
	}
	r := fmt.Sprintf("%s: %d live, %d bytes; %d records, %d bytes of history; %d tombstones", t.Type, t.Live, t.LiveRec, t.Records, t.History(), t.Tombstones)
	if len(ns) > 0 {
		r += "; namespaces " + strings.Join(ns, ", ")
	}
	return r
}
