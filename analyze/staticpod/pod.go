package staticpod

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/bundle"
)

// A Pod is a decoded static pod with the places of its values.
type Pod struct {
	corev1.Pod
	Flags []Flag // of all containers, in order
	Env   []Env

	entry *Entry
}

// File is the manifest the pod was read from.
func (p *Pod) File() *bundle.File { return p.entry.File }

// Ref points at a value of the manifest.
func (p *Pod) Ref(pointer string) bundle.Ref { return p.entry.Doc.Ref(pointer) }

// Component names the control-plane component the pod runs, from its name,
// label or command; "" for any other pod.
func (p *Pod) Component() string {
	name, _ := p.identify()
	return name
}

// identify is Component with how sure it is: 3 by the pod's name, 2 by its
// label, 1 by a command alone (a second etcd for events, say).
func (p *Pod) identify() (name string, rank int) {
	known := Components()
	if slices.Contains(known, p.Name) {
		return p.Name, 3
	}
	if c := p.Labels["component"]; p.Namespace == "kube-system" && slices.Contains(known, c) {
		return c, 2
	}
	for _, c := range p.Spec.Containers {
		if b := program(c); slices.Contains(known, b) {
			return b, 1
		}
	}
	return "", 0
}

func program(c corev1.Container) string {
	if len(c.Command) == 0 {
		return ""
	}
	return path.Base(c.Command[0])
}

// Main is the index of the component's own container.
func (p *Pod) Main() int {
	want := p.Component()
	for i, c := range p.Spec.Containers {
		if c.Name == want {
			return i
		}
	}
	for i, c := range p.Spec.Containers {
		if program(c) == want {
			return i
		}
	}
	return 0
}

// ImageTag is the tag of the component's image, "" when it has none.
func (p *Pod) ImageTag() string {
	img := p.Spec.Containers[p.Main()].Image
	img, _, _ = strings.Cut(img, "@")
	i := strings.LastIndexByte(img, ':')
	if i < 0 || strings.Contains(img[i:], "/") {
		return ""
	}
	return img[i+1:]
}

// ImageRef points at the component's image.
func (p *Pod) ImageRef() bundle.Ref {
	return p.Ref(fmt.Sprintf("/spec/containers/%d/image", p.Main()))
}

func itoa(i int) string { return strconv.Itoa(i) }
