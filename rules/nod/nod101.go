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
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD101", Name: "disk-full", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "A file system the control plane needs is full or nearly full",
		Why: "etcd ends when it cannot write its log. The kubelet deletes images and evicts pods before that, and at the limit it can neither write a " +
			"manifest backup nor a log. This is the disk, not etcd's quota: compaction and defragmentation do not help, defragmentation even needs room.",
		Fix: "Make room with what is safe to lose: rotated logs (journalctl --vacuum-size=500M), old /etc/kubernetes/tmp/kubeadm-backup-* directories, " +
			"leftover tmp files of etcd snapshots. crictl rmi --prune removes every unpinned image without a container: not while a static pod is parked " +
			"or its container is gone. Then let the kubelet start etcd again.",
		Links: []string{"https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "critical", Default: 0.95, Unit: "of the file system"},
		{Name: "high", Default: 0.90, Unit: "of the file system", Source: "kubelet evictionHard nodefs.available<10%"},
		{Name: "medium", Default: 0.85, Unit: "of the file system", Source: "kubelet evictionHard imagefs.available<15%"},
		{Name: "floor", Default: 1 << 30, Unit: "bytes free"},
		{Name: "leftovers", Default: 10 << 30, Unit: "bytes of leftover files"},
	},
	Wants: []analyze.Need{host.Mounts, host.Listings, logs.OnNode, staticpod.Manifests},
	Run:   diskFull,
})

func diskFull(p *analyze.Pass) error {
	looked := false
	if l, err := host.Mounts.Try(p, p.Node()); err == nil {
		looked = true
		etcd, _ := etcdPath(p)
		needed := map[string][]string{}
		var order []string
		for _, path := range []string{etcd, "/", "/etc/kubernetes", "/var/lib/containerd", "/var/lib/kubelet", "/var/log"} {
			if path == "" {
				continue
			}
			if m, _, ok := host.Covering(l, path); ok {
				if needed[m.MountPoint] == nil {
					order = append(order, m.MountPoint)
				}
				needed[m.MountPoint] = append(needed[m.MountPoint], path)
			}
		}
		for _, point := range order {
			judgeMount(p, l, point, needed[point], etcd)
		}
	}
	if n, err := logs.OnNode.Try(p, p.Node()); err == nil {
		looked = true
		diskWords(p, n)
	}
	if ls, err := host.Listings.Try(p, p.Node()); err == nil {
		looked = true
		leftovers(p, ls)
	}
	if !looked {
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "no df output, no logs, no listing")
	}
	return nil
}

func judgeMount(p *analyze.Pass, l *host.List[mount], point string, paths []string, etcd string) {
	m, ref, _ := host.Covering(l, point)
	if m.Size == 0 || slices.Contains([]string{"squashfs", "iso9660", "tmpfs", "overlay", "devtmpfs"}, m.FSType) || strings.HasPrefix(m.Device, "/dev/loop") {
		return
	}
	used := full(m)
	grave := point == "/" || slices.Contains(paths, etcd)
	var sev report.Severity
	switch {
	case used >= p.Param("critical") && grave, grave && float64(m.Available) < p.Param("floor") && m.Size > 4<<30:
		sev = report.Critical
	case used >= p.Param("high"):
		sev = report.High
	case used >= p.Param("medium"):
		sev = report.Medium
	}
	what := fmt.Sprintf("%s is %s full, %s left", point, percent(used), bundle.FormatBytes(m.Available))
	if m.Inodes > 0 {
		if in := float64(m.InodesFree) / float64(m.Inodes); in < 0.05 {
			what = fmt.Sprintf("%s has %d of %d inodes left", point, m.InodesFree, m.Inodes)
			if sev = report.High; in < 0.01 && grave {
				sev = report.Critical
			}
		}
	}
	if sev == "" {
		return
	}
	p.Report(analyze.Finding{Subject: point, Severity: sev,
		Message:  what + "; it holds " + strings.Join(paths, ", "),
		Evidence: []analyze.Evidence{analyze.See(ref, what)}})
}

// diskWords finds programs that ran out of disk space. etcd's own quota speaks
// of "database space" and does not count.
func diskWords(p *analyze.Pass, n *logs.Node) {
	hits := n.Hits(signature.Etcd|signature.APIServer|signature.Kubelet|signature.Containerd|signature.Kernel|signature.Systemd, "X08", "E29", "K23", "K29", "K41")
	hits = slices.DeleteFunc(hits, func(a logs.At) bool {
		text := a.Excerpt()
		switch a.Stat.Sig.ID {
		case "K29": // a kubelet that has just started has no statistics yet
			return strings.Contains(text, "failed once")
		case "K23": // memory, process ids
			return !strings.Contains(text, "storage") && !strings.Contains(text, "fs")
		}
		return false
	})
	if len(hits) == 0 {
		return
	}
	full := slices.DeleteFunc(slices.Clone(hits), func(a logs.At) bool { return a.Stat.Sig.ID != "X08" && a.Stat.Sig.ID != "E29" })
	sev, said := report.Medium, "the kubelet frees disk space or fails to"
	if len(full) > 0 {
		hits, sev, said = full, report.High, "writes fail for lack of space"
		if slices.ContainsFunc(full, func(a logs.At) bool { return a.Stat.Program == signature.Etcd }) {
			sev, said = report.Critical, "etcd's writes fail for lack of disk space"
		}
	}
	last := hits[len(hits)-1]
	if end, _ := n.End(); !last.Time.IsZero() && end.Sub(last.Time).Hours() > 6 && sev != report.Medium {
		sev = report.Medium
		said += ", hours ago"
	}
	ev := seeAll(hits, 3)
	ev[0].Role = report.RoleSubject
	p.Report(analyze.Finding{Subject: "disk space in the logs", Severity: sev, Confidence: report.Probable,
		Message: fmt.Sprintf("%s, %d times, last%s", said, len(hits), when(last.Time)), Evidence: ev, ObservedAt: hits[0].Time})
}

// leftovers finds files of interrupted snapshot transfers in a saved listing.
func leftovers(p *analyze.Pass, ls []*host.Listing) {
	for _, l := range ls {
		var size, db int64
		var ev []analyze.Evidence
		for _, e := range l.Entries {
			switch {
			case e.Name == "db":
				db = e.Size
			case strings.HasPrefix(e.Name, "tmp") || strings.HasPrefix(e.Name, "db.tmp"):
				size += e.Size
				if len(ev) < 4 {
					ev = append(ev, analyze.Context(e.Ref, e.Name+" "+bundle.FormatBytes(e.Size)))
				}
			}
		}
		if db == 0 || len(ev) == 0 {
			continue
		}
		if l.Total > size+db { // the listing shows a part only
			size = l.Total - db
		}
		if float64(size) < p.Param("leftovers") && size < 2*db {
			continue
		}
		sev := report.Medium
		if float64(size) >= p.Param("leftovers") {
			sev = report.High
		}
		p.Report(analyze.Finding{Subject: "leftovers in " + l.Dir, Severity: sev, Confidence: report.Probable,
			Message: fmt.Sprintf("%s holds %s of tmp files beside a database of %s: leftovers of interrupted snapshot transfers, which etcd does not remove",
				l.Dir, bundle.FormatBytes(size), bundle.FormatBytes(db)),
			Evidence: append([]analyze.Evidence{analyze.See(l.Ref, "total "+bundle.FormatBytes(l.Total))}, ev...),
			Fix: []report.Step{{Text: "With etcd stopped on this node, remove the tmp files that no running process holds open; keep db and the .snap files. " +
				"Find out why transfers break off: slow network, or a probe that kills etcd while it receives one."}}})
	}
}
