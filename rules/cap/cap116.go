package cap

import (
	"fmt"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP116", Name: "foreign-data-in-etcd", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Medium, report.Info},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Foreign data or lease explosion in etcd",
		Why:   "Keys outside the API server's prefix belong to another program that shares the quota, the disk and the risk. Leases cost memory on every member; the API server shares one among a thousand objects.",
		Fix:   "Move other tenants to an etcd of their own; find the client that grants a lease per key.",
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "share", Default: 0.1, Unit: "ratio", Source: "of all bytes kept"},
		{Name: "leases", Default: 10000, Unit: "leases", Source: "the API server reuses a lease for 60 s or 1000 objects"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Run:   foreignData,
})

func foreignData(p *analyze.Pass) error {
	s, ok := objects.Cluster.In(p)
	if !ok {
		return nil
	}
	st := s.Store
	if float64(st.LeaseTotal) > p.Param("leases") {
		p.Report(analyze.Finding{
			Node: s.DB.File.Node, Subject: "leases", Severity: report.Medium,
			Message:  fmt.Sprintf("%d etcd leases for %d keys that use one", st.LeaseTotal, st.Leased),
			Evidence: []analyze.Evidence{analyze.See(s.DB.AtKey("lease", 0), fmt.Sprintf("%d leases", st.LeaseTotal))},
		})
	}
	for _, t := range st.Types {
		if t.Type != etcdstore.Foreign {
			continue
		}
		var rows []string
		var bytes int64
		for _, n := range t.Namespaces {
			if n.Namespace == "compact_rev_key" {
				continue
			}
			bytes += n.RecBytes
			rows = append(rows, fmt.Sprintf("%s: %d keys, %d bytes", n.Namespace, n.Live, n.RecBytes))
		}
		if len(rows) == 0 {
			continue
		}
		sev := report.Info
		if ratio(bytes, st.RecBytes) > p.Param("share") {
			sev = report.Medium
		}
		p.Report(analyze.Finding{
			Node: s.DB.File.Node, Subject: "foreign keys", Severity: sev,
			Message:  fmt.Sprintf("%d bytes (%.0f %%) lie outside %s: %s", bytes, 100*ratio(bytes, st.RecBytes), st.Prefix, strings.Join(rows[:min(len(rows), 5)], "; ")),
			Evidence: []analyze.Evidence{analyze.See(keyRef(s, t.Largest), strings.Join(rows[:min(len(rows), 10)], "; "))},
		})
	}
	return nil
}
