package nod

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/bundle/hostfacts"
	"coldplane/report"
)

// mount shortens the type of a mounted file system.
type mount = hostfacts.Mount

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD102", Name: "etcd-on-unsuitable-storage", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "etcd's data lies on storage that does not suit it",
		Why: "A tmpfs or a container layer is gone after a reboot. Network file systems keep neither the locks nor the durability etcd relies on. A " +
			"rotating disk, or one shared with images and logs, makes every sync wait for somebody else.",
		Fix:   "Move the data directory to a local SSD of its own: stop etcd, copy the directory with its owner and modes, change the hostPath in the manifest and etcd.local.dataDir in kubeadm-config together (DIR102).",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/hardware/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{host.Mounts, staticpod.Manifests},
	Wants: []analyze.Need{host.Blocks},
	Run:   storage,
})

func storage(p *analyze.Pass) error {
	l, _ := host.Mounts.In(p)
	dir, from := etcdPath(p)
	if dir == "" {
		return p.NotApplicable("etcd does not run on this node, or not on a hostPath")
	}
	m, ref, ok := host.Covering(l, dir)
	if !ok || m.FSType == "" {
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "the type of the file system below "+dir)
		return nil
	}
	f := analyze.Finding{Subject: "etcd storage", Evidence: []analyze.Evidence{analyze.See(ref, m.Device+" "+m.FSType+" on "+m.MountPoint), analyze.Context(from, dir)}}
	remote := []string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "glusterfs", "9p", "lustre", "ocfs2", "gfs2", "fuse.glusterfs", "fuse.sshfs", "fuse.s3fs"}
	switch {
	case slices.Contains([]string{"tmpfs", "ramfs", "overlay", "aufs"}, m.FSType):
		f.Severity, f.Message = report.Critical, fmt.Sprintf("%s lies on %s: it is lost at the next reboot", dir, m.FSType)
	case slices.Contains(remote, m.FSType) || strings.HasPrefix(m.FSType, "fuse."):
		f.Severity, f.Message = report.High, fmt.Sprintf("%s lies on %s (%s)", dir, m.FSType, m.Device)
	default:
		b, bref, ok := disk(p, m)
		img, _, shared := host.Covering(l, "/var/lib/containerd")
		switch {
		case ok && b.Rotational != nil && *b.Rotational && !strings.HasPrefix(b.Name, "vd"):
			f.Severity, f.Message = report.Medium, fmt.Sprintf("%s lies on %s, a rotating disk", dir, b.Name)
			f.Evidence = append(f.Evidence, analyze.Context(bref, b.Name+" rotational"))
		case shared && img.MountPoint == m.MountPoint && m.MountPoint != "/":
			f.Severity, f.Message = report.Medium, fmt.Sprintf("%s shares %s with the image store", dir, m.MountPoint)
		default:
			return nil
		}
	}
	p.Report(f)
	return nil
}

// disk returns the block device behind a mount. Hypervisors report virtual
// disks (vda) as rotating; that says nothing.
func disk(p *analyze.Pass, m mount) (hostfacts.Block, bundle.Ref, bool) {
	l, err := host.Blocks.Try(p, p.Node())
	if err != nil {
		return hostfacts.Block{}, bundle.Ref{}, false
	}
	for i, b := range l.Items {
		if m.DevNumber != "" && b.DevNumber == m.DevNumber || "/dev/"+b.Name == m.Device {
			if b.Parent != "" {
				for j, q := range l.Items {
					if q.Name == b.Parent {
						return q, l.Refs[j], true
					}
				}
			}
			return b, l.Refs[i], true
		}
	}
	return hostfacts.Block{}, bundle.Ref{}, false
}
