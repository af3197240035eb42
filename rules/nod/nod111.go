package nod

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
	"coldplane/report"
)

// socket shortens the type of a listening socket.
type socket = hostfacts.Socket

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD111", Name: "kernel-storage-errors", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "The kernel reports errors of a disk or file system",
		Why:   "A file system that turns read-only ends etcd at once; I/O errors damage data silently before that. Tasks that hang for minutes in the kernel mean a disk or a network mount that does not answer.",
		Fix:   "First copy the data directory to another disk. Then replace the member: remove it from the cluster, give the node another disk, and join it again with an empty directory. Treat the old disk as failing: do not repair the file system under etcd.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/failures/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "hung", Default: 1, Unit: "tasks"}},
	Needs:  []analyze.Need{logs.OnNode},
	Wants:  []analyze.Need{host.Mounts, staticpod.Manifests},
	Run:    kernelErrors,
})

func kernelErrors(p *analyze.Pass) error {
	n, _ := logs.OnNode.In(p)
	if !n.Has(signature.Kernel) {
		p.Unknown(bundle.KindJournal, p.Node(), bundle.NotCollected, "the kernel's log")
		return nil
	}
	etcdDev := etcdDevice(p)
	byDevice := map[string][]logs.At{}
	var order []string
	for _, at := range n.Hits(signature.Kernel, "X04", "X05", "X06", "X07") {
		d := at.Value("device")
		if strings.HasPrefix(d, "loop") || strings.HasPrefix(d, "sr") || strings.HasPrefix(d, "fd") {
			continue // images and empty drives
		}
		if byDevice[d] == nil {
			order = append(order, d)
		}
		byDevice[d] = append(byDevice[d], at)
	}
	for _, d := range order {
		hits := byDevice[d]
		sev, name := report.High, d
		if name == "" {
			name = "a device"
		}
		readOnly := slices.ContainsFunc(hits, func(a logs.At) bool { return a.Stat.Sig.ID == "X06" })
		if etcdDev != "" && d != "" {
			if same(etcdDev, d) {
				sev = report.Critical
			} else {
				sev = report.Medium // another device
			}
		} else if readOnly {
			sev = report.Critical
		}
		said := "errors"
		if readOnly {
			said = "errors, made read-only"
		}
		ev := seeAll(hits, 3)
		ev[0].Role = report.RoleSubject
		p.Report(analyze.Finding{Subject: "device " + name, Severity: sev, Confidence: report.Probable,
			Message: fmt.Sprintf("the kernel reports %s on %s, %d lines, last%s", said, name, len(hits), when(hits[len(hits)-1].Time)), Evidence: ev, ObservedAt: hits[0].Time})
	}
	if hits := n.Hits(signature.Kernel, "X03"); len(hits) >= int(p.Param("hung")) && len(hits) > 0 {
		ev := seeAll(hits, 3)
		ev[0].Role = report.RoleSubject
		p.Report(analyze.Finding{Subject: "hung tasks", Severity: report.High, Confidence: report.Probable,
			Message:  fmt.Sprintf("tasks hang in the kernel (%s), %d lines, last%s", hits[len(hits)-1].Value("task"), len(hits), when(hits[len(hits)-1].Time)),
			Evidence: ev, ObservedAt: hits[0].Time})
	}
	return nil
}

// etcdDevice is the device below etcd's data directory, "" if not known.
func etcdDevice(p *analyze.Pass) string {
	dir, _ := etcdPath(p)
	l, err := host.Mounts.Try(p, p.Node())
	if err != nil || dir == "" {
		return ""
	}
	m, _, ok := host.Covering(l, dir)
	if !ok {
		return ""
	}
	return strings.TrimPrefix(m.Device, "/dev/")
}

// same compares a partition with the name the kernel uses, which may be the
// whole disk. Mapped devices go by several names and are never told apart.
func same(a, b string) bool {
	if strings.HasPrefix(a, "mapper/") || strings.HasPrefix(b, "dm-") {
		return true
	}
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}
