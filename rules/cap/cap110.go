package cap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP110", Name: "managed-fields-weight", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.Medium, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "managedFields and last-applied annotations outweigh the objects",
		Why:   "Field ownership and kubectl's copy of the object are stored with every revision. When they are most of a type's bytes, each write costs more than its content.",
		Fix:   "Repair managers that rewrite the object at every sync; use server-side apply with one manager, which needs no last-applied annotation.",
		Links: []string{"https://kubernetes.io/docs/reference/using-api/server-side-apply/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "medium", Default: 0.5, Unit: "ratio", Source: "more bookkeeping than content"},
		{Name: "low", Default: 0.3, Unit: "ratio", Source: "a third of a type"},
		{Name: "bytes", Default: 50 * mib, Unit: "bytes", Source: "smaller types do not matter"},
		{Name: "sample", Default: 500, Unit: "objects", Source: "evenly over a type's keys"},
	},
	Needs: []analyze.Need{objects.Cluster},
	Run:   managedWeight,
})

func managedWeight(p *analyze.Pass) error {
	s, ok := objects.Cluster.In(p)
	if !ok {
		return nil
	}
	for _, t := range s.Store.Types {
		if float64(t.LiveBytes) < p.Param("bytes") {
			continue
		}
		list, _ := s.Store.TypeKeys(t.Type, "", 1<<20)
		step := max(1, len(list)/int(p.Param("sample")))
		var own, all int64
		n := 0
		managers := map[string]int{}
		var worst etcdstore.Version
		worstBytes := 0
		for i := 0; i < len(list); i += step {
			r, err := s.Store.Load(list[i], 4*mib)
			if err != nil {
				continue
			}
			h, err := objects.ReadHead(r.Value)
			if err != nil {
				continue
			}
			n++
			own += int64(h.Managed + h.LastApplied)
			all += int64(len(r.Value))
			if b := h.Managed + h.LastApplied; b > worstBytes {
				worst, worstBytes = list[i], b
			}
			for _, m := range h.Managers {
				managers[m.Name]++
			}
		}
		share := ratio(own, all)
		sev := report.Low
		switch {
		case n == 0 || share <= p.Param("low"):
			continue
		case share > p.Param("medium"):
			sev = report.Medium
		}
		p.Report(analyze.Finding{
			Node: s.DB.File.Node, Subject: t.Type, Severity: sev,
			Message: fmt.Sprintf("%.0f %% of the bytes of %s (%s live) are managedFields and last-applied annotations, by a sample of %d objects; managers: %s",
				100*share, t.Type, size(t.LiveBytes), n, strings.Join(most(managers, 5), ", ")),
			Evidence: []analyze.Evidence{analyze.See(s.Ref(worst), fmt.Sprintf("%d of %d bytes", worstBytes, worst.Len))},
		})
	}
	return nil
}

// most returns the n names with the highest count.
func most(m map[string]int, n int) []string {
	var names []string
	for k := range m {
		names = append(names, k)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return names[:min(n, len(names))]
}
