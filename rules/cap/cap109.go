package cap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP109", Name: "helm-release-history", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Medium, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Helm release history bloat",
		Why:   "Helm keeps every revision of a release as a Secret with the whole rendered chart. Without a limit they add up to the largest part of etcd.",
		Fix:   "Look at the history, set --history-max (10 is Helm's default), delete superseded revisions; then compact and defragment.",
		Links: []string{"https://helm.sh/docs/helm/helm_upgrade/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "share", Default: 0.2, Unit: "ratio", Source: "of live bytes, above a tenth of the quota or 100 MB"},
		{Name: "revisions", Default: 10, Unit: "revisions", Source: "Helm's --history-max default"},
		{Name: "bytes", Default: 100e6, Unit: "bytes", Source: "all releases together"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Wants: []analyze.Need{etcddb.QuotaOf},
	Run:   helmHistory,
})

// A release is what etcd holds of one Helm release.
type release struct {
	ns, name  string
	revisions int
	bytes     int64
	largest   etcdstore.Version
}

const helmPrefix = "sh.helm.release.v1."

func helmHistory(p *analyze.Pass) error {
	s, q, ok := content(p)
	if !ok {
		return nil
	}
	by := map[string]*release{}
	var total int64
	list, _ := s.Store.Select(1<<20, func(key []byte) bool {
		return strings.Contains(string(key), "/"+helmPrefix)
	})
	for _, v := range list {
		n := etcdstore.Classify(s.Store.Prefix, []byte(v.Key))
		rest, ok := strings.CutPrefix(n.Object, helmPrefix)
		i := strings.LastIndex(rest, ".v")
		if !ok || i < 0 || n.Type != "secrets" && n.Type != "configmaps" {
			continue
		}
		k := n.Namespace + "/" + rest[:i]
		r := by[k]
		if r == nil {
			r = &release{ns: n.Namespace, name: rest[:i]}
			by[k] = r
		}
		r.revisions++
		r.bytes += int64(v.Len)
		total += int64(v.Len)
		if v.Len > r.largest.Len {
			r.largest = v
		}
	}
	var rs []*release
	for _, r := range by {
		rs = append(rs, r)
	}
	slices.SortFunc(rs, func(a, b *release) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.ns, b.ns), cmp.Compare(a.name, b.name))
	})
	many := slices.ContainsFunc(rs, func(r *release) bool { return float64(r.revisions) > p.Param("revisions") })
	var sev report.Severity
	switch {
	case many || ratio(total, s.Store.LiveRec) > p.Param("share") && total >= floor(q):
		sev = report.Medium
	case float64(total) > p.Param("bytes"):
		sev = report.Low
	default:
		return nil
	}
	f := analyze.Finding{
		Node: s.DB.File.Node, Subject: "Helm releases", Severity: sev,
		Message: fmt.Sprintf("%d Helm revisions (%s…) of %d releases hold %s, %.0f %% of live bytes; the largest: %s/%s with %d revisions, %s",
			len(list), helmPrefix, len(rs), size(total), 100*ratio(total, s.Store.LiveRec), rs[0].ns, rs[0].name, rs[0].revisions, size(rs[0].bytes)),
	}
	for i, r := range rs {
		if i < 10 || float64(r.revisions) > p.Param("revisions") && len(f.Evidence) < 20 {
			f.Evidence = append(f.Evidence, analyze.Context(ref(s, r.largest), fmt.Sprintf("%s/%s: %d revisions, %d bytes", r.ns, r.name, r.revisions, r.bytes)))
		}
	}
	f.Evidence[0].Role = report.RoleSubject
	p.Report(f)
	return nil
}

func ref(s *objects.Set, v etcdstore.Version) bundle.Ref { return s.Ref(v) }
