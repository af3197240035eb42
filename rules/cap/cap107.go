package cap

import (
	"coldplane/analyze/logs"
	"coldplane/bundle"
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "CAP107", Name: "oversized-objects", Scope: analyze.PerCluster,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "Oversized objects",
		Why:   "etcd refuses requests above 1.5 MiB by default. An object near that can soon be neither updated nor, when an update must come first, deleted; every revision of it is kept whole.",
		Fix:   "Split the object or move its content to object storage; drop the last-applied annotation with server-side apply.",
		Links: []string{"https://etcd.io/docs/v3.6/dev-guide/limit/#request-size-limit"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "high", Default: 1.2 * mib, Unit: "bytes", Source: "80 % of etcd's --max-request-bytes default"},
		{Name: "medium", Default: 512 * kib, Unit: "bytes", Source: "a third of it"},
		{Name: "annotations", Default: 200 * kib, Unit: "bytes", Source: "the API server refuses 256 KiB of annotations"},
	},
	Wants: []analyze.Need{objects.Cluster, logs.OnNode},
	Run:   oversized,
})

func oversized(p *analyze.Pass) error {
	s, err := objects.Cluster.Try(p, nil)
	if err != nil {
		if !tooLarge(p) {
			p.UnknownErr(bundle.KindStore, nil, err)
		}
		return nil
	}
	for _, k := range s.Store.Largest {
		size := float64(k.Size)
		sev := report.Low
		switch {
		case size >= p.Param("high"):
			sev = report.High
		case size >= p.Param("medium"):
			sev = report.Medium
		case size < p.Param("annotations"):
			return nil // sorted by size
		}
		h, known := head(s, k)
		if sev == report.Low && (!known || float64(h.Annotations) < p.Param("annotations")) {
			continue
		}
		msg := fmt.Sprintf("%s is %d bytes", k.Key, k.Size)
		if k.Records > 1 {
			msg += fmt.Sprintf(", kept in %d revisions of %d bytes together", k.Records, k.RecBytes)
		}
		if known && h.Annotations > 10*kib {
			msg += fmt.Sprintf("; annotations %d bytes", h.Annotations)
		}
		if known && h.Managed > 10*kib {
			msg += fmt.Sprintf("; managedFields %d bytes", h.Managed)
		}
		if known && len(h.Managers) > 0 {
			msg += "; last written by " + h.Managers[len(h.Managers)-1].Name
		}
		p.Report(analyze.Finding{
			Node: s.DB.File.Node, Subject: k.Key, Severity: sev, Message: msg,
			Evidence: []analyze.Evidence{analyze.See(keyRef(s, k), fmt.Sprintf("value of %d bytes", k.Size))},
		})
	}
	return nil
}

// tooLarge reports refused writes from logs, without a database to name the
// object. looked is whether there was a log that could tell.
func tooLarge(p *analyze.Pass) (looked bool) {
	for _, n := range p.Nodes() {
		l, err := logs.OnNode.Try(p, n)
		if err != nil {
			continue
		}
		hits := l.Hits(0, "E43")
		if len(hits) == 0 {
			continue
		}
		looked = true
		last := hits[len(hits)-1]
		p.Report(analyze.Finding{
			Node: n, Subject: "requests to etcd", Severity: report.Medium, Confidence: report.Probable, ObservedAt: last.Time,
			Message:  fmt.Sprintf("etcd refuses to store an object that is larger than one request may be (1.5 MiB unless --max-request-bytes says otherwise), %d times in the log", len(hits)),
			Evidence: []analyze.Evidence{last.See()},
			Fix: []report.Step{
				{Text: "Find the writer: its own log, or the API server's audit log, names the object at this time; policy reports, Helm releases and large ConfigMaps are the usual ones."},
				{Text: "Split the object, or move its content out of the API. Raising --max-request-bytes only postpones it, and makes every member slower."},
			},
		})
	}
	return looked
}

// head reads the metadata of a key's newest value.
func head(s *objects.Set, k etcdstore.KeyStats) (objects.Head, bool) {
	v, ok := s.Store.Latest(k.Key)
	if !ok {
		return objects.Head{}, false
	}
	r, err := s.Store.Load(v, 4*mib)
	if err != nil {
		return objects.Head{}, false
	}
	h, err := objects.ReadHead(r.Value)
	return h, err == nil
}
