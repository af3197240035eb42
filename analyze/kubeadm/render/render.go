package render

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coldplane/analyze/kubeadm"
	"coldplane/analyze/releases"
)

// The minors whose defaults are modelled. A newer kubeadm is rendered as the
// newest known one only when the caller asks for that minor itself.
const OldestMinor = 25

// NewestMinor is the newest minor whose defaults are modelled.
const NewestMinor = 37

// Known reports whether the defaults of kubeadm 1.minor are modelled.
func Known(minor int) bool { return minor >= OldestMinor && minor <= NewestMinor }

// A Host is what kubeadm takes from the node rather than from the
// ClusterConfiguration.
type Host struct {
	Name             string // node name, also etcd's member name
	AdvertiseAddress string
	BindPort         int32
	ExternalCA       bool // ca.key is not on the node
}

// Components rendered, by name: kube-apiserver, kube-controller-manager,
// kube-scheduler and, for a stacked etcd, etcd.
type Components map[string]*corev1.Pod

// Pods renders the static pods kubeadm 1.minor writes. version is the
// Kubernetes version to install ("v1.34.2"); "" takes the configuration's own.
func Pods(minor int, version string, cfg *kubeadm.ClusterConfiguration, h Host) Components {
	if version == "" {
		version = cfg.KubernetesVersion
	}
	k := &kubeadmRun{minor: minor, version: version, cfg: cfg, host: h}
	out := Components{
		apiServer:         k.apiServer(),
		controllerManager: k.controllerManager(),
		scheduler:         k.scheduler(),
	}
	if cfg.Etcd.External == nil && cfg.Etcd.Local != nil {
		out[etcd] = k.etcd()
	}
	return out
}

const (
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	etcd              = "etcd"

	kubernetesDir = "/etc/kubernetes"
	probePort     = "probe-port"
)

type kubeadmRun struct {
	minor   int
	version string
	cfg     *kubeadm.ClusterConfiguration
	host    Host
}

// cert is a file of the certificates directory.
func (k *kubeadmRun) cert(name string) string { return path.Join(k.cfg.CertificatesDir, name) }

func (k *kubeadmRun) ipv6() bool {
	a, err := netip.ParseAddr(k.host.AdvertiseAddress)
	return err == nil && a.Is6() && !a.Is4In6()
}

func (k *kubeadmRun) loopback() string {
	if k.ipv6() {
		return "::1"
	}
	return "127.0.0.1"
}

func url(scheme, host string, port int) string {
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// image is the component's image.
func (k *kubeadmRun) image(component string) string {
	tag := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, k.version)
	return k.cfg.ImageRepository + "/" + component + ":" + tag
}

// EtcdTag is the tag of the etcd image kubeadm 1.minor installs for a
// Kubernetes version; "" when the minor is not in the tables.
func EtcdTag(minor int, version string, cfg *kubeadm.ClusterConfiguration) string {
	if l := cfg.Etcd.Local; l != nil && l.ImageTag != "" {
		return l.ImageTag
	}
	row, ok := releases.KubeadmOf(minor)
	if !ok {
		return ""
	}
	v, ok := releases.Parse(version)
	if !ok {
		return row.Etcd
	}
	if t, ok := row.EtcdFor[v.Minor]; ok {
		return t
	}
	ms := make([]int, 0, len(row.EtcdFor))
	for m := range row.EtcdFor {
		ms = append(ms, m)
	}
	if len(ms) == 0 {
		return row.Etcd
	}
	slices.Sort(ms)
	if v.Minor < ms[0] {
		return row.EtcdFor[ms[0]]
	}
	return row.EtcdFor[ms[len(ms)-1]]
}

// args is a command line as kubeadm builds it: base arguments sorted by name,
// replaced or merged by extra ones.
func (k *kubeadmRun) args(base map[string]string, extra kubeadm.Args) []string {
	type arg struct{ name, value string }
	var out, tail []arg
	over := map[string]kubeadm.Arg{}
	for _, a := range extra {
		over[a.Name] = a
		if a.Merge == "" {
			tail = append(tail, arg{a.Name, a.Value})
		}
	}
	for n, v := range base {
		if o, ok := over[n]; ok {
			switch o.Merge {
			case "append":
				v += o.Value
			case "prepend":
				v = o.Value + v
			default:
				continue
			}
		}
		out = append(out, arg{n, v})
	}
	less := func(l []arg) {
		sort.Slice(l, func(i, j int) bool {
			if l[i].name != l[j].name {
				return l[i].name < l[j].name
			}
			return l[i].value < l[j].value
		})
	}
	if k.minor <= 31 { // sorted together until 1.31, extra arguments last since
		out = append(out, tail...)
		less(out)
	} else {
		less(out)
		out = append(out, tail...)
	}
	var cmd []string
	for _, a := range out {
		cmd = append(cmd, "--"+a.name+"="+a.value)
	}
	return cmd
}

// pod is the frame every component gets.
func (k *kubeadmRun) pod(c corev1.Container, vols []corev1.Volume, annotations map[string]string) *corev1.Pod {
	priority := int32(2000001000)
	c.ImagePullPolicy = corev1.PullIfNotPresent
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: c.Name, Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{"component": c.Name, "tier": "control-plane"}, Annotations: annotations,
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{c}, Volumes: vols, HostNetwork: true,
			Priority: &priority, PriorityClassName: "system-node-critical",
			SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		},
	}
}

func quantityList(cpu, memory string) corev1.ResourceRequirements {
	l := corev1.ResourceList{corev1.ResourceCPU: mustQuantity(cpu)}
	if memory != "" {
		l[corev1.ResourceMemory] = mustQuantity(memory)
	}
	return corev1.ResourceRequirements{Requests: l}
}

func (k *kubeadmRun) annotation(name, value string) map[string]string {
	return map[string]string{"kubeadm.kubernetes.io/" + name: value}
}

func issuer(domain string) string { return fmt.Sprintf("https://kubernetes.default.svc.%s", domain) }
