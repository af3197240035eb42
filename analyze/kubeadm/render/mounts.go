package render

import (
	"math"
	neturl "net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"coldplane/analyze/kubeadm"
)

// CertVolumes are the host directories kubeadm mounts beside /etc/ssl/certs
// when they exist on the host. Whether they do is not in the configuration.
func CertVolumes() []string {
	return []string{"/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates"}
}

type hostMount struct {
	name, host, path string // path "" is as on the host
	kind             corev1.HostPathType
	readOnly         bool
}

type hostMounts []hostMount

func (h hostMounts) mounts() []corev1.VolumeMount {
	var out []corev1.VolumeMount
	for _, m := range h {
		p := m.path
		if p == "" {
			p = m.host
		}
		out = append(out, corev1.VolumeMount{Name: m.name, MountPath: p, ReadOnly: m.readOnly})
	}
	return out
}

func (h hostMounts) volumes() []corev1.Volume {
	var out []corev1.Volume
	for _, m := range h {
		kind := m.kind
		out = append(out, corev1.Volume{Name: m.name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: m.host, Type: &kind}}})
	}
	return out
}

// set replaces the mount of a name or adds it.
func (h hostMounts) set(m hostMount) hostMounts {
	h = slices.DeleteFunc(h, func(x hostMount) bool { return x.name == m.name })
	return append(h, m)
}

// hostMounts are the hostPath mounts of a component other than etcd, sorted by name.
func (k *kubeadmRun) hostMounts(component string) hostMounts {
	c := k.cfg
	const dir, file = corev1.HostPathDirectoryOrCreate, corev1.HostPathFileOrCreate
	var h hostMounts
	var comp *kubeadm.Component
	switch component {
	case apiServer:
		comp = &c.APIServer.Component
		h = hostMounts{{"k8s-certs", c.CertificatesDir, "", dir, true}, {"ca-certs", "/etc/ssl/certs", "", dir, true}}
		if e := c.Etcd.External; e != nil {
			for i, d := range etcdCertDirs(e, c.CertificatesDir) {
				h = h.set(hostMount{"etcd-certs-" + strconv.Itoa(i), d, "", dir, true})
			}
		}
	case controllerManager:
		comp = &c.ControllerManager
		h = hostMounts{{"k8s-certs", c.CertificatesDir, "", dir, true}, {"ca-certs", "/etc/ssl/certs", "", dir, true}, {"kubeconfig", kubernetesDir + "/controller-manager.conf", "", file, true}}
		if k.minor <= 35 {
			flex := "/usr/libexec/kubernetes/kubelet-plugins/volume/exec"
			if a, ok := comp.ExtraArgs.Get("flex-volume-plugin-dir"); ok {
				flex = a.Value
			}
			h = append(h, hostMount{"flexvolume-dir", flex, "", dir, false})
		}
	case scheduler:
		comp = &c.Scheduler
		h = hostMounts{{"kubeconfig", kubernetesDir + "/scheduler.conf", "", file, true}}
	}
	for _, v := range comp.ExtraVolumes {
		h = h.set(hostMount{v.Name, v.HostPath, v.MountPath, corev1.HostPathType(v.PathType), v.ReadOnly})
	}
	slices.SortFunc(h, func(a, b hostMount) int { return strings.Compare(a.name, b.name) })
	return h
}

// etcdCertDirs are the directories of the external etcd's client files that
// no other mount covers.
func etcdCertDirs(e *kubeadm.ExternalEtcd, certDir string) []string {
	var dirs []string
	for _, f := range []string{e.CAFile, e.CertFile, e.KeyFile} {
		d := path.Dir(f)
		if f == "" || strings.HasPrefix(d, "/etc/ssl/certs") || strings.HasPrefix(d, certDir) || slices.ContainsFunc(CertVolumes(), func(p string) bool { return strings.HasPrefix(d, p) }) {
			continue
		}
		if slices.ContainsFunc(dirs, func(x string) bool { return strings.HasPrefix(d, x) }) {
			continue
		}
		dirs = slices.DeleteFunc(dirs, func(x string) bool { return strings.HasPrefix(x, d) })
		dirs = append(dirs, d)
	}
	slices.Sort(dirs)
	return dirs
}

type probeKind int

const (
	liveness probeKind = iota
	readiness
	startup
)

// probe is one of kubeadm's HTTP probes; the port has a name since 1.34.
func (k *kubeadmRun) probe(kind probeKind, host, p string, port int32, scheme corev1.URIScheme) *corev1.Probe {
	out := &corev1.Probe{TimeoutSeconds: 15}
	switch kind {
	case liveness:
		out.InitialDelaySeconds, out.FailureThreshold, out.PeriodSeconds = 10, 8, 10
	case readiness:
		out.FailureThreshold, out.PeriodSeconds = 3, 1
	case startup:
		timeout := 240.0
		if t := k.cfg.APIServer.TimeoutForControlPlane; t != nil && t.Duration > 0 {
			timeout = t.Seconds()
		}
		out.InitialDelaySeconds, out.FailureThreshold, out.PeriodSeconds = 10, int32(math.Ceil(timeout/10)), 10
	}
	at := intstr.FromInt32(port)
	if k.minor >= 34 {
		at = intstr.FromString(probePort)
	}
	out.HTTPGet = &corev1.HTTPGetAction{Host: host, Path: p, Port: at, Scheme: scheme}
	return out
}

func (k *kubeadmRun) ports(port int32) []corev1.ContainerPort {
	if k.minor < 34 {
		return nil
	}
	return []corev1.ContainerPort{{Name: probePort, ContainerPort: port, Protocol: corev1.ProtocolTCP}}
}

// probeAddress leaves the unspecified addresses to the kubelet.
func probeAddress(addr string) string {
	if addr == "0.0.0.0" || addr == "::" {
		return ""
	}
	return addr
}

func bindAddress(extra kubeadm.Args) string {
	if a, ok := extra.Get("bind-address"); ok {
		return probeAddress(a.Value)
	}
	return "127.0.0.1"
}

// metricsEndpoint is where etcd's probes go: the first of listen-metrics-urls.
func metricsEndpoint(extra kubeadm.Args, loopback string) (host string, port int32, scheme corev1.URIScheme) {
	host, port, scheme = loopback, 2381, corev1.URISchemeHTTP
	a, ok := extra.Get("listen-metrics-urls")
	if !ok {
		return
	}
	first, _, _ := strings.Cut(a.Value, ",")
	u, err := neturl.Parse(first)
	if err != nil {
		return
	}
	if u.Scheme == "https" {
		scheme = corev1.URISchemeHTTPS
	}
	if h := u.Hostname(); h != "" {
		host = h
	}
	if p, err := strconv.ParseInt(u.Port(), 10, 32); err == nil && p > 0 && p < 65536 {
		port = int32(p)
	}
	return
}

// env is extraEnvs as kubeadm merges it: one per name, the last wins, sorted
// by name. What kubeadm takes from its own proxy variables is not known here.
func (k *kubeadmRun) env(extra []corev1.EnvVar) []corev1.EnvVar { return sortedEnv(extra) }

func sortedEnv(extra []corev1.EnvVar) []corev1.EnvVar {
	by := map[string]corev1.EnvVar{}
	for _, e := range extra {
		by[e.Name] = e
	}
	var out []corev1.EnvVar
	for _, e := range by {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return out
}
