package sta

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/pki"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA202", Name: "flag-names-missing-file", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "A flag names a file that is not there, or that the container cannot see",
		Why: "The control-plane components open their certificates, keys, kubeconfigs and configuration files while they start and exit when one is missing. " +
			"A running process does not notice: the fault shows at the next restart. A file that exists on the host is still missing for the process when no volume " +
			"mounts it, and a hostPath of type FileOrCreate or DirectoryOrCreate puts an empty file or a directory where the real one should be.",
		Fix: "Put the file back (keys and CAs from another control-plane node, never new ones), or correct the flag, or mount the file; with kubeadm through " +
			"extraVolumes, so that the next upgrade keeps the mount.",
		Links: []string{"https://kubernetes.io/docs/setup/best-practices/certificates/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: []analyze.Need{pki.KeyIndex},
	Run:   missingFiles,
})

func missingFiles(p *analyze.Pass) error {
	d, _ := staticpod.Manifests.In(p)
	for _, pod := range d.Pods() {
		volumes(p, pod)
		done := map[string]bool{}
		for _, u := range pod.Files() {
			if !done[u.Path] {
				done[u.Path] = true
				judgeFile(p, pod, u)
			}
		}
	}
	for _, e := range d.Entries {
		if e.Err != nil && isComponentFile(d, e) {
			p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
		}
	}
	return nil
}

// judgeFile looks for one file a flag names, where the container would see it.
func judgeFile(p *analyze.Pass, pod *staticpod.Pod, u staticpod.FileUse) {
	n, m := p.Node(), u.Mount
	evidence := []analyze.Evidence{analyze.See(u.Flag.Ref, u.Flag.Text())}
	for _, other := range pod.Files() {
		if other.Path == u.Path && other.Flag.Ref != u.Flag.Ref {
			evidence = append(evidence, analyze.Context(other.Flag.Ref, other.Flag.Text()))
		}
	}
	what, fix := "", []report.Step(nil)
	switch m.Kind {
	case staticpod.None:
		what = fmt.Sprintf("no volume of the pod mounts %s, so the process cannot see it", u.Path)
		if f, err := n.Stat(u.Path); err == nil {
			what += " (the host has such a file)"
			evidence = append(evidence, analyze.Context(f.Ref(), bundle.FormatBytes(f.Size)))
		}
		fix = mountIt(pod, u)
	case staticpod.NoVolume:
		return // volumes says it
	case staticpod.Host:
		evidence = append(evidence, analyze.Context(m.VolumeRef, "hostPath: "+hostPathOf(m, u)))
		f, err := n.Stat(m.HostPath)
		switch {
		case err == nil && f.Mode.IsDir():
			what = fmt.Sprintf("%s on the host is a directory%s", m.HostPath, madeBy(m.HostType))
		case err == nil && f.Size == 0 && f.Mode.IsRegular():
			what = fmt.Sprintf("%s on the host is empty%s", m.HostPath, madeBy(m.HostType))
		case err == nil:
			return
		case bundle.IsAbsent(err):
			if u.Key {
				if known, exists := keyExists(p, m.HostPath); exists {
					return
				} else if !known {
					p.Unknown(bundle.KindPKI, n, bundle.NotCollected, m.HostPath+": no private key of that directory is in the input")
					return
				}
			}
			if !listed(n, m.HostPath) {
				p.Unknown(bundle.KindFiles, n, bundle.NotCollected, m.HostPath)
				return
			}
			what = fmt.Sprintf("%s does not exist on the host", m.HostPath)
			if near := similar(n, m.HostPath); near != "" {
				what += "; the directory has " + near
			}
		default:
			p.UnknownErr(bundle.KindFiles, n, err)
			return
		}
		fix = putBack(pod, u)
	default:
		return // made inside the pod
	}
	sev, effect := report.High, ""
	if u.Start {
		sev, effect = report.Critical, fmt.Sprintf("; %s does not start without it", pod.Component())
	}
	p.Report(analyze.Finding{
		Subject: pod.Component() + " --" + u.Flag.Name, Severity: sev,
		Message:  fmt.Sprintf("%s: %s%s", u.Flag.Text(), what, effect),
		Evidence: evidence, Fix: fix,
	})
}

// hostPathOf is the hostPath as the manifest has it.
func hostPathOf(m staticpod.Mount, u staticpod.FileUse) string {
	return strings.TrimSuffix(m.HostPath, strings.TrimPrefix(u.Path, m.MountPath))
}

func madeBy(t corev1.HostPathType) string {
	switch t {
	case corev1.HostPathFileOrCreate, corev1.HostPathDirectoryOrCreate:
		return fmt.Sprintf(", as hostPath type %s makes one where nothing was", t)
	}
	return ""
}

// listed reports whether a directory was collected with its files, and not
// only passed through on the way to a sub-directory.
func listed(n *bundle.Node, file string) bool {
	fs, err := n.ReadDir(path.Dir(file))
	if err != nil || n.Complete() || len(fs) == 0 {
		return true
	}
	for _, in := range n.Inputs() {
		if in.Format == bundle.FormatBundle {
			return true
		}
	}
	return slices.ContainsFunc(fs, func(f *bundle.File) bool { return !f.Mode.IsDir() })
}

// keyExists looks for a private key that is not among the files. Keys are
// left out of evidence on purpose, so its absence counts only where other
// keys are known.
func keyExists(p *analyze.Pass, file string) (known, exists bool) {
	if k, err := pki.KeyIndex.Try(p, p.Node()); err == nil {
		for _, r := range k.Records {
			if r.Path == file {
				return true, true
			}
		}
		return len(k.Records) > 0, false
	}
	fs, err := p.Node().ReadDir(path.Dir(file))
	if err != nil {
		return false, false
	}
	return slices.ContainsFunc(fs, func(f *bundle.File) bool {
		return strings.HasSuffix(f.Name(), ".key") || strings.HasSuffix(f.Name(), "-key.pem")
	}), false
}

// similar names files beside a missing one whose names begin alike.
func similar(n *bundle.Node, file string) string {
	fs, err := n.ReadDir(path.Dir(file))
	if err != nil {
		return ""
	}
	base := path.Base(file)
	stem := base[:len(base)-len(path.Ext(base))]
	var out []string
	for _, f := range fs {
		name := f.Name()
		have := name[:len(name)-len(path.Ext(name))]
		if !f.Mode.IsDir() && path.Ext(name) == path.Ext(base) && (strings.HasPrefix(stem, have) || strings.HasPrefix(have, stem) || len(stem) > 6 && strings.HasPrefix(have, stem[:len(stem)/2])) {
			out = append(out, name)
		}
	}
	if len(out) > 3 {
		out = out[:3]
	}
	return strings.Join(out, ", ")
}

func mountIt(pod *staticpod.Pod, u staticpod.FileUse) []report.Step {
	dir := path.Dir(u.Path)
	return recipe.Edit(pod.File().Origin, pod.Component(),
		fmt.Sprintf("Add a hostPath volume for %s (type Directory) and a readOnly volumeMount with mountPath %s; or correct --%s.", dir, dir, u.Flag.Name),
		extraVolumes(pod.Component()))
}

func extraVolumes(component string) string {
	switch component {
	case staticpod.APIServer:
		return "apiServer.extraVolumes"
	case staticpod.ControllerManager:
		return "controllerManager.extraVolumes"
	case staticpod.Scheduler:
		return "scheduler.extraVolumes"
	}
	return ""
}

// putBack tells where a missing file comes from: kubeadm can make leaf
// certificates and kubeconfigs anew, never CAs and service-account keys.
func putBack(pod *staticpod.Pod, u staticpod.FileUse) []report.Step {
	host, q := u.Mount.HostPath, recipe.Quote(u.Mount.HostPath)
	var first report.Step
	phase, leaf := kubeadmPhase[host]
	switch {
	case leaf:
		first = report.Step{Text: "Restore the file from a backup, or let kubeadm make it anew; full.yaml holds the ClusterConfiguration of kubeadm-config and an InitConfiguration with this node's name and advertise address. What is at the path now is moved aside first.",
			Command: fmt.Sprintf("[ -e %s ] && mv %s /root/; kubeadm init phase %s --config full.yaml", q, q, phase)}
	case shared[host]:
		first = report.Step{Text: "Copy the file from another control-plane node or from a backup. Do not make a new one: it is the same on every node, and everything it signed would become worthless."}
	default:
		first = report.Step{Text: fmt.Sprintf("Put the file back at %s from another control-plane node or a backup, or correct --%s (next step) if the name is wrong.", host, u.Flag.Name), Command: "ls -l " + recipe.Quote(path.Dir(host))}
	}
	steps := []report.Step{first}
	if !leaf && !shared[host] {
		return append(steps, recipe.Edit(pod.File().Origin, pod.Component(), fmt.Sprintf("If the flag is wrong: correct --%s.", u.Flag.Name), "")...)
	}
	return append(steps, recipe.Watch(pod.Component()))
}

// kubeadmPhase says which phase of kubeadm init writes a file.
var kubeadmPhase = map[string]string{
	"/etc/kubernetes/pki/apiserver.crt":                "certs apiserver",
	"/etc/kubernetes/pki/apiserver-kubelet-client.crt": "certs apiserver-kubelet-client",
	"/etc/kubernetes/pki/apiserver-etcd-client.crt":    "certs apiserver-etcd-client",
	"/etc/kubernetes/pki/front-proxy-client.crt":       "certs front-proxy-client",
	"/etc/kubernetes/pki/etcd/server.crt":              "certs etcd-server",
	"/etc/kubernetes/pki/etcd/peer.crt":                "certs etcd-peer",
	"/etc/kubernetes/controller-manager.conf":          "kubeconfig controller-manager",
	"/etc/kubernetes/scheduler.conf":                   "kubeconfig scheduler",
}

// shared are files that must be the same on every control-plane node.
var shared = map[string]bool{
	"/etc/kubernetes/pki/ca.crt": true, "/etc/kubernetes/pki/ca.key": true, "/etc/kubernetes/pki/sa.key": true, "/etc/kubernetes/pki/sa.pub": true,
	"/etc/kubernetes/pki/front-proxy-ca.crt": true, "/etc/kubernetes/pki/front-proxy-ca.key": true, "/etc/kubernetes/pki/etcd/ca.crt": true, "/etc/kubernetes/pki/etcd/ca.key": true,
}

// volumes looks at what keeps the kubelet from starting the pod at all.
func volumes(p *analyze.Pass, pod *staticpod.Pod) {
	sev := report.High
	name := pod.Name
	if c := pod.Component(); c != "" {
		sev, name = report.Critical, c
	}
	declared := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		declared[v.Name] = true
	}
	for i, c := range pod.Spec.Containers {
		for j, m := range c.VolumeMounts {
			if declared[m.Name] {
				continue
			}
			p.Report(analyze.Finding{
				Subject: name + " volume " + m.Name, Severity: sev,
				Message:  fmt.Sprintf("the container %s mounts the volume %s at %s, but the pod declares no such volume: the kubelet refuses the manifest", c.Name, m.Name, m.MountPath),
				Evidence: []analyze.Evidence{analyze.See(pod.Ref(fmt.Sprintf("/spec/containers/%d/volumeMounts/%d/name", i, j)), "name: "+m.Name)},
				Fix:      recipe.Edit(pod.File().Origin, c.Name, fmt.Sprintf("Declare the volume %s under spec.volumes, or remove the mount.", m.Name), extraVolumes(pod.Component())),
			})
		}
	}
	for i, v := range pod.Spec.Volumes {
		if v.HostPath == nil || v.HostPath.Type == nil {
			continue
		}
		f, err := p.Node().Stat(v.HostPath.Path)
		what := ""
		switch t := *v.HostPath.Type; {
		case t == corev1.HostPathFile && bundle.IsAbsent(err) && listed(p.Node(), v.HostPath.Path) && !strings.HasSuffix(v.HostPath.Path, ".key"):
			what = "does not exist, and a hostPath of type File keeps the pod from starting"
		case t == corev1.HostPathFile && err == nil && f.Mode.IsDir():
			what = "is a directory, and a hostPath of type File keeps the pod from starting"
		case t == corev1.HostPathFileOrCreate && err == nil && f.Mode.IsRegular() && f.Size == 0 && !namedByFlag(pod, v.HostPath.Path):
			what = "is empty, as hostPath type FileOrCreate makes one where nothing was"
		default:
			continue
		}
		p.Report(analyze.Finding{
			Subject: name + " volume " + v.Name, Severity: sev,
			Message:  fmt.Sprintf("%s, which the pod %s mounts, %s", v.HostPath.Path, pod.Name, what),
			Evidence: []analyze.Evidence{analyze.See(pod.Ref(fmt.Sprintf("/spec/volumes/%d/hostPath/path", i)), "path: "+v.HostPath.Path)},
			Fix: []report.Step{{Text: "Put the file back from another node or a backup.", Command: "ls -l " + recipe.Quote(path.Dir(v.HostPath.Path))},
				recipe.Watch(pod.Spec.Containers[pod.Main()].Name)},
		})
	}
}

func namedByFlag(pod *staticpod.Pod, host string) bool {
	return slices.ContainsFunc(pod.Files(), func(u staticpod.FileUse) bool { return u.Mount.HostPath == host })
}
