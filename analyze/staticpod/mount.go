package staticpod

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/bundle"
)

// A Mount is where a path of a container lies.
type Mount struct {
	Kind      MountKind
	MountPath string     // the volumeMount that covers the path; "" for None
	MountRef  bundle.Ref // its line
	Volume    string
	VolumeRef bundle.Ref // the volume's line; zero for None and NoVolume
	HostPath  string     // the path on the host; "" unless Host
	HostType  corev1.HostPathType
}

// A MountKind says what stands behind a path of a container.
type MountKind int

// Kinds of mounts.
const (
	None     MountKind = iota // no mount covers it: the container's own layer
	NoVolume                  // a mount names a volume that is not declared
	Host                      // a hostPath
	Empty                     // an emptyDir, lost with the pod
	Other                     // any other volume
)

// Resolve finds where a path inside a container of the pod lies on the host,
// through the longest volumeMount that covers it.
func (p *Pod) Resolve(container int, file string) Mount {
	file = path.Clean("/" + file)
	c := p.Spec.Containers[container]
	best := -1
	for i, m := range c.VolumeMounts {
		mp := path.Clean("/" + m.MountPath)
		if Covers(mp, file) && (best < 0 || len(mp) > len(path.Clean("/"+c.VolumeMounts[best].MountPath))) {
			best = i
		}
	}
	if best < 0 {
		return Mount{Kind: None}
	}
	vm := c.VolumeMounts[best]
	out := Mount{
		Kind: NoVolume, MountPath: path.Clean("/" + vm.MountPath), Volume: vm.Name,
		MountRef: p.Ref(fmt.Sprintf("/spec/containers/%d/volumeMounts/%d/mountPath", container, best)),
	}
	for i, v := range p.Spec.Volumes {
		if v.Name != vm.Name {
			continue
		}
		out.VolumeRef = p.Ref(fmt.Sprintf("/spec/volumes/%d", i))
		switch {
		case v.HostPath != nil:
			out.Kind = Host
			out.VolumeRef = p.Ref(fmt.Sprintf("/spec/volumes/%d/hostPath/path", i))
			rel := strings.TrimPrefix(file, out.MountPath)
			out.HostPath = path.Join("/", v.HostPath.Path, vm.SubPath, rel)
			if v.HostPath.Type != nil {
				out.HostType = *v.HostPath.Type
			}
		case v.EmptyDir != nil:
			out.Kind = Empty
		default:
			out.Kind = Other
		}
		return out
	}
	return out
}

// Covers reports whether a directory is the path itself or above it.
func Covers(dir, file string) bool {
	return dir == file || dir == "/" || strings.HasPrefix(file, dir+"/")
}
