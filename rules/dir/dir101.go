package dir

import (
	"fmt"
	"path"

	"coldplane/analyze"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "DIR101", Name: "etcd-data-outside-hostpath", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical},
	Doc: analyze.Doc{
		Title: "etcd writes its data into the container instead of the host",
		Why: "What lies under no hostPath mount is part of the container's own layer, and goes when the container is made anew: at the next change of the " +
			"manifest, the next upgrade, sometimes the next crash. Until then everything seems to work.",
		Fix: "Do NOT restart etcd. Save a snapshot out of the running member first, move it off the node, then correct the mount and restore the snapshot " +
			"into the directory on the host.",
		Links: []string{"https://etcd.io/docs/latest/op-guide/recovery/", "https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Run:   dataOutside,
})

func dataOutside(p *analyze.Pass) error {
	m, _ := staticpod.Manifests.In(p)
	pod := m.Component(staticpod.Etcd)
	if pod == nil {
		if e := m.Broken(staticpod.Etcd); e != nil {
			p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
			return nil
		}
		return p.NotApplicable("no etcd manifest on this node")
	}
	if f, ok := pod.Setting("config-file"); ok {
		p.Unknown(bundle.KindFiles, p.Node(), bundle.Unsupported, "etcd takes its settings from "+f.Value)
		return nil
	}
	data, ok := pod.Setting("data-dir")
	if !ok || data.Value == "" {
		// etcd's default is NAME.etcd in its working directory.
		name, _ := pod.Setting("name")
		if name.Value == "" {
			name.Value = "default"
		}
		dir := pod.Spec.Containers[pod.Main()].WorkingDir
		data = staticpod.Flag{Name: "data-dir", Value: path.Join("/", dir, name.Value+".etcd"), Dynamic: name.Dynamic,
			Ref: pod.Ref(fmt.Sprintf("/spec/containers/%d/command", pod.Main()))}
	}
	outside(p, pod, data, "data directory", ok)
	if wal, ok := pod.Setting("wal-dir"); ok && wal.Value != "" {
		outside(p, pod, wal, "write-ahead log", true)
	}
	return nil
}

func outside(p *analyze.Pass, pod *staticpod.Pod, f staticpod.Flag, what string, given bool) {
	if f.Dynamic {
		p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, f.Text()+" holds a variable")
		return
	}
	mount := pod.Resolve(pod.Main(), f.Value)
	where := ""
	switch mount.Kind {
	case staticpod.None:
		where = "no volume is mounted there, so it lies in the container and goes with it"
	case staticpod.Empty:
		where = "an emptyDir is mounted there, which goes with the pod"
	default:
		return // a hostPath or another lasting volume; a mount without a volume is STA202
	}
	excerpt := f.Text()
	if !given {
		excerpt = "no --data-dir: etcd takes " + f.Value
	}
	evidence := []analyze.Evidence{analyze.See(f.Ref, excerpt)}
	if mount.Kind == staticpod.Empty {
		evidence = append(evidence, analyze.Context(mount.VolumeRef, "emptyDir"))
	}
	mounts := ""
	for i, vm := range pod.Spec.Containers[pod.Main()].VolumeMounts {
		r := pod.Resolve(pod.Main(), vm.MountPath)
		if r.Kind != staticpod.Host {
			continue
		}
		ref := pod.Ref(fmt.Sprintf("/spec/containers/%d/volumeMounts/%d/mountPath", pod.Main(), i))
		evidence = append(evidence, analyze.Context(ref, "mountPath: "+vm.MountPath), analyze.Context(r.VolumeRef, "hostPath: "+r.HostPath))
		if mounts != "" {
			mounts += ", "
		}
		mounts += vm.MountPath
	}
	p.Report(analyze.Finding{
		Subject: "etcd " + what, Severity: report.Critical,
		Message:  fmt.Sprintf("etcd keeps its %s in %s: %s (mounted from the host: %s)", what, f.Value, where, orNone(mounts)),
		Evidence: evidence, Fix: rescue(p, pod, f),
	})
}

func orNone(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// rescue gets the data out before anything is restarted. Inside the container
// only what is mounted from the host and writable survives it.
func rescue(p *analyze.Pass, pod *staticpod.Pod, f staticpod.Flag) []report.Step {
	steps := []report.Step{{Text: "Do NOT restart etcd, the kubelet or the node, and do not touch etcd.yaml: the only copy of the data is inside the running container."}}
	inside, host := "", ""
	for _, vm := range pod.Spec.Containers[pod.Main()].VolumeMounts {
		if r := pod.Resolve(pod.Main(), vm.MountPath); r.Kind == staticpod.Host && !vm.ReadOnly {
			inside, host = path.Join(vm.MountPath, "rescue.db"), path.Join(r.HostPath, "rescue.db")
		}
	}
	if inside != "" {
		steps = append(steps,
			report.Step{Text: fmt.Sprintf("Save a snapshot through a directory of the host that the container can write to; it appears as %s.", host), Command: recipe.Etcdctl("snapshot save " + recipe.Quote(inside))},
			report.Step{Text: "Move it off the node at once, it holds every Secret, and check it there.", Command: fmt.Sprintf("mv %s /root/ && sha256sum /root/rescue.db", recipe.Quote(host))})
	} else {
		steps = append(steps, report.Step{Text: "Save a snapshot with an etcdctl on the host, through the client port.",
			Command: "etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt --cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key snapshot save /root/rescue.db"})
	}
	return append(steps,
		report.Step{Text: "Other members healthy: take etcd.yaml out, remove this member, join the node again with a correct manifest. Only member: stop the API server, take etcd.yaml out, restore the snapshot into the host's directory (etcdutl snapshot restore, with this member's name and peer URL), then put the corrected manifest back."},
		report.Step{Text: fmt.Sprintf("The correct manifest: --%s, the volumeMount's mountPath and etcd.local.dataDir of kubeadm-config agree, and the volume is a hostPath. Check with:", f.Name), Command: "kubeadm init phase etcd local --dry-run --config full.yaml"})
}
