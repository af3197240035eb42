package upg

import (
	"fmt"

	"coldplane/analyze"
	"coldplane/analyze/etcddir"
	"coldplane/analyze/host"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG502", Name: "no-room-for-upgrade", Scope: analyze.PerNode, Audit: true,
	Severities: []report.Severity{report.High, report.Medium},
	Latent:     true, Kubeadm: true,
	Doc: analyze.Doc{
		Title: "No room for the copy of etcd that kubeadm makes before it upgrades it",
		Why: "kubeadm upgrade copies the whole data directory of etcd to /etc/kubernetes/tmp first. When the file system fills up on the way, the upgrade stops " +
			"in the middle, and on a machine where that is also etcd's own file system etcd stops with it. Copies of earlier upgrades stay there for ever.",
		Fix: "Move old kubeadm-backup-* directories off the node, or make room. A copy of the data directory is no backup for the cluster: take a snapshot too (RST106), and keep it elsewhere.",
		Links: []string{
			"https://github.com/kubernetes/kubernetes/blob/master/cmd/kubeadm/app/phases/upgrade/staticpods.go",
		},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "factor", Default: 1.2, Unit: "times the data directory", Source: "the copy and some growth meanwhile"}},
	Needs:  []analyze.Need{etcddir.OnNode},
	Wants:  []analyze.Need{host.Mounts},
	Run:    upgradeRoom,
})

func upgradeRoom(p *analyze.Pass) error {
	dirs, _ := etcddir.OnNode.In(p)
	d := dirs.InUse()
	if d == nil {
		return p.NotApplicable("no data directory in use on this node")
	}
	size := d.Bytes()
	if d.Err != nil || size == 0 {
		p.Unknown(bundle.KindDataDir, p.Node(), bundle.NotCollected, "how large the data directory is")
		return nil
	}
	l, err := host.Mounts.Try(p, p.Node())
	if err != nil {
		p.UnknownErr(bundle.KindHost, p.Node(), err)
		return nil
	}
	m, ref, ok := host.Covering(l, "/etc/kubernetes/tmp")
	if !ok || m.Size == 0 {
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "how much room the file system of /etc/kubernetes has")
		return nil
	}
	var old int64
	backups := p.Node().Glob("/etc/kubernetes/tmp/kubeadm-backup-etcd-*/*/member/*/*")
	for _, f := range backups {
		if f.Mode.IsRegular() {
			old += f.Size
		}
	}
	room := fmt.Sprintf("%s has %s left", m.MountPoint, bundle.FormatBytes(m.Available))
	ev := []analyze.Evidence{analyze.See(ref, room), analyze.Context(p.Node().Ref(d.Path), "data directory: "+bundle.FormatBytes(size))}
	switch {
	case float64(m.Available) < p.Param("factor")*float64(size):
		msg := fmt.Sprintf("kubeadm copies the data directory (%s) to /etc/kubernetes/tmp, and %s", bundle.FormatBytes(size), room)
		if old > 0 {
			msg += fmt.Sprintf("; copies of earlier upgrades hold %s there", bundle.FormatBytes(old))
		}
		p.Report(analyze.Finding{Subject: "room in /etc/kubernetes", Severity: report.High, Message: msg, Evidence: ev})
	case old > 0 && old >= m.Available:
		p.Report(analyze.Finding{Subject: "room in /etc/kubernetes", Severity: report.Medium, Evidence: ev,
			Message: fmt.Sprintf("copies of earlier upgrades hold %s in /etc/kubernetes/tmp, and %s", bundle.FormatBytes(old), room)})
	}
	return nil
}
