package cap

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/host"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP115", Name: "etcd-file-system-too-small", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "File system smaller than what etcd may use",
		Why:   "etcd may grow to its quota, keeps five write-ahead log segments of 64 MB, and a defragmentation or a snapshot sent to a follower needs a second copy of the database. A full disk stops the member.",
		Fix:   "Enlarge the file system, or lower the quota to what fits.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/hardware/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "segments", Default: 5, Unit: "WAL segments of 64,000,000 bytes", Source: "etcd keeps five"},
		{Name: "margin", Default: 2, Unit: "times the need", Source: "below it: medium"},
	},
	Needs: []analyze.Need{etcddb.OnNode, host.Mounts},
	Wants: []analyze.Need{etcddb.QuotaOf, objects.OnNode, etcddir.OnNode},
	Run:   diskRoom,
})

func diskRoom(p *analyze.Pass) error {
	asked := 0
	for _, m := range members(p) {
		if m.db.Dir == nil || m.node.Name == "" {
			continue
		}
		mounts, err := host.Mounts.Try(p, m.node)
		if err != nil {
			p.UnknownErr(bundle.KindHost, m.node, err)
			continue
		}
		mt, ref, ok := host.Covering(mounts, m.db.Dir.Path)
		if !ok || mt.Size == 0 {
			p.Unknown(bundle.KindHost, m.node, bundle.Undecided, "the free space of etcd's file system was not recorded")
			continue
		}
		asked++
		dbSize := m.s.Pages.DBSize
		limit := m.quota.Bytes
		if m.quota.Off {
			limit = dbSize * 2
		}
		need := max(0, limit-dbSize) + int64(p.Param("segments"))*64e6 + dbSize
		free := mt.Available
		var sev report.Severity
		switch {
		case free < need:
			sev = report.High
		case float64(free) < p.Param("margin")*float64(need):
			sev = report.Medium
		default:
			continue
		}
		ev := []analyze.Evidence{analyze.See(ref, fmt.Sprintf("%s: %d of %d bytes free", mt.MountPoint, free, mt.Size)), analyze.Context(m.db.Ref(), m.sizes())}
		if !m.quota.Ref.IsZero() {
			ev = append(ev, analyze.Context(m.quota.Ref, m.quota.Text))
		}
		p.Report(analyze.Finding{
			Node: m.node, Subject: "etcd file system", Severity: sev, Evidence: ev,
			Message: fmt.Sprintf("%s has %s free; etcd may need %s: %s up to its quota of %s, %s for logs, %s for a second copy", mt.MountPoint, size(free), size(need),
				size(max(0, limit-dbSize)), m.quota, size(int64(p.Param("segments"))*64e6), size(dbSize)),
		})
	}
	if asked == 0 {
		p.Unknown(bundle.KindHost, nil, bundle.NotCollected, "free space of etcd's file system")
	}
	return nil
}
