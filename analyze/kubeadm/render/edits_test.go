package render_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze/kubeadm/render"
)

// flags are those of a pod's first container, as the analysis reads them.
func flags(p *corev1.Pod) []render.Flag {
	var out []render.Flag
	for i, a := range p.Spec.Containers[0].Command[1:] {
		n, v, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		out = append(out, render.Flag{Name: n, Value: v, Pointer: fmt.Sprintf("/spec/containers/0/command/%d", i+1)})
	}
	return out
}

// mount adds a hostPath to a pod.
func mount(p *corev1.Pod, path string) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "more", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}})
	c := &p.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "more", MountPath: path})
}

// TestHandEdits: fifteen edits people make in manifests, each of which is named
// alone; those that lose something worse than a setting say what.
func TestHandEdits(t *testing.T) {
	add := func(f string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Command = append(p.Spec.Containers[0].Command, f) }
	}
	set := func(name, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for i, a := range p.Spec.Containers[0].Command {
				if strings.HasPrefix(a, "--"+name+"=") {
					p.Spec.Containers[0].Command[i] = "--" + name + "=" + value
					return
				}
			}
			panic("no flag " + name)
		}
	}
	const api, kcm, sched, etcd = "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"
	edits := []struct {
		component, item string
		edit            func(*corev1.Pod)
		loses           bool
	}{
		{etcd, "--quota-backend-bytes", add("--quota-backend-bytes=8589934592"), true},
		{etcd, "--data-dir", set("data-dir", "/data/etcd"), true},
		{etcd, "--auto-compaction-retention", add("--auto-compaction-retention=1h"), false},
		{etcd, "--listen-metrics-urls", set("listen-metrics-urls", "http://0.0.0.0:2381"), false},
		{etcd, "mount /backup", func(p *corev1.Pod) { mount(p, "/backup") }, false},
		{api, "--audit-policy-file", add("--audit-policy-file=/etc/kubernetes/audit.yaml"), true},
		{api, "--encryption-provider-config", add("--encryption-provider-config=/etc/kubernetes/enc.yaml"), true},
		{api, "--oidc-issuer-url", add("--oidc-issuer-url=https://login.example"), true},
		{api, "--service-node-port-range", add("--service-node-port-range=1-32767"), false},
		{api, "--enable-admission-plugins", set("enable-admission-plugins", "NodeRestriction,AlwaysPullImages"), false},
		{api, "mount /etc/kubernetes/audit", func(p *corev1.Pod) { mount(p, "/etc/kubernetes/audit") }, false},
		{api, "env GOGC", func(p *corev1.Pod) {
			p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "GOGC", Value: "50"})
		}, false},
		{api, "image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "mirror.example/kube-apiserver:v1.37.2" }, false},
		{kcm, "--bind-address", set("bind-address", "0.0.0.0"), false},
		{sched, "--config", add("--config=/etc/kubernetes/sched.yaml"), false},
	}
	dir := filepath.Join("testdata", "oracle", "v1.37.2", "default")
	cfg := config(t, filepath.Join(dir, "kubeadm-config.yaml"))
	want := render.Pods(37, "", &cfg.ClusterConfiguration, render.Host{Name: "cp1", AdvertiseAddress: "10.0.0.11", BindPort: 6443})
	for _, e := range edits {
		p := pod(t, filepath.Join(dir, e.component+".yaml"))
		if got := render.Compare(p, 0, flags(p), want[e.component]); len(got) != 0 {
			t.Fatalf("%s untouched: %v", e.component, got)
		}
		e.edit(p)
		got := render.Compare(p, 0, flags(p), want[e.component])
		if len(got) != 1 || got[0].Item != e.item || got[0].Pointer == "" {
			t.Errorf("%s %s: %+v", e.component, e.item, got)
			continue
		}
		if what, _ := render.Loss(e.component, got[0]); e.loses && what == "" {
			t.Errorf("%s %s: nothing said about what is lost", e.component, e.item)
		}
	}
}
