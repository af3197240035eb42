package releases

import (
	"strings"
	"testing"
)

func TestFlag(t *testing.T) {
	for _, c := range []struct {
		component, flag string
		minor           int
		want            Presence
	}{
		{"kubelet", "container-runtime", 26, Present},
		{"kubelet", "container-runtime", 27, Removed},
		{"kubelet", "container-runtime-endpoint", 27, Present},
		{"kubelet", "pod-infra-container-image", 35, Removed},
		{"kubelet", "network-plugin", 24, Removed},
		{"kubelet", "config-dir", 27, NotYet},
		{"kubelet", "pod-manifets-path", 30, Never},
		{"kube-apiserver", "advertise_address", 30, Present},
		{"kube-apiserver", "cloud-provider", 33, Removed},
		{"kube-scheduler", "port", 24, Removed},
		{"kube-controller-manager", "concurrent-service-syncs", 37, Removed},
		{"etcd", "experimental-initial-corrupt-check", 6, Present},
		{"etcd", "experimental-initial-corrupt-check", 7, Removed},
		{"etcd", "enable-v2", 6, Removed},
		{"etcd", "watch-progress-notify-interval", 5, NotYet},
		{"kubelet", "v", 99, NoTable},
	} {
		if got, _ := Flag(c.component, c.flag, c.minor); got != c.want {
			t.Errorf("%s --%s at %d: %d, want %d", c.component, c.flag, c.minor, got, c.want)
		}
	}
	if got := RemovedIn("kubelet", "container-runtime", 30); got != 27 {
		t.Errorf("container-runtime removed in %d", got)
	}
	if got := Nearest("kube-apiserver", "etcd-serverss", 34); got != "etcd-servers" {
		t.Errorf("nearest: %q", got)
	}
}

func TestFeatureGate(t *testing.T) {
	p, g, _ := FeatureGate("MemoryManager", 33)
	if p != Present || !g.Locked || !g.Default || g.Stage != "ga" {
		t.Errorf("MemoryManager at 33: %d %+v", p, g)
	}
	if p, _, last := FeatureGate("MemoryManager", 36); p != Removed || last != 35 {
		t.Errorf("MemoryManager at 36: %d, last %d", p, last)
	}
	if p, _, _ := FeatureGate("NoSuchGate", 36); p != Never {
		t.Errorf("NoSuchGate: %d", p)
	}
	if p, _, _ := FeatureGate("AllAlpha", 36); p != Present {
		t.Errorf("AllAlpha: %d", p)
	}
}

func TestDecodable(t *testing.T) {
	for _, c := range []struct {
		gv, kind string
		minor    int
		want     Presence
		ok       bool
	}{
		{"storagemigration.k8s.io/v1alpha1", "StorageVersionMigration", 34, Present, true},
		{"storagemigration.k8s.io/v1alpha1", "StorageVersionMigration", 35, Removed, true},
		{"autoscaling/v2beta2", "HorizontalPodAutoscaler", 35, Present, true},
		{"autoscaling/v2beta2", "HorizontalPodAutoscaler", 36, Removed, true},
		{"scheduling.k8s.io/v1alpha2", "Workload", 37, Removed, true},
		{"apps/v1", "Deployment", 37, Present, true},
		{"v1", "Secret", 37, Present, true},
		{"example.com/v1", "Widget", 37, Never, false},
		{"apps/v1", "Deployment", 99, NoTable, true},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", 30, Present, true},
	} {
		p, ok := Decodable(c.gv, c.kind, c.minor)
		if ok != c.ok || ok && p != c.want {
			t.Errorf("%s %s at %d: %d %v", c.gv, c.kind, c.minor, p, ok)
		}
	}
}

func TestKubeadm(t *testing.T) {
	k, ok := KubeadmOf(36)
	if !ok || k.Etcd != "3.6.8-0" || k.EtcdFor[34] != "3.6.8-0" || strings.Join(k.ConfigAPIs, ",") != "v1beta3,v1beta4" {
		t.Errorf("%+v", k)
	}
	if _, ok := KubeadmOf(99); ok {
		t.Error("kubeadm 1.99 is known")
	}
	if l, ok := APILife("policy/v1beta1", "PodSecurityPolicy"); !ok || l.Removed != 25 {
		t.Errorf("PodSecurityPolicy: %+v", l)
	}
	if NewestMinor() != 37 {
		t.Errorf("newest is %d", NewestMinor())
	}
}

func TestVersion(t *testing.T) {
	for in, want := range map[string]string{
		"v1.34.2": "1.34.2", "3.6.6-0": "3.6.6", "v1.34.0-rc.1": "1.34.0-rc.1", "v1.30.3+vmware.1": "1.30.3",
		"v1.28.15-eks-1234": "1.28.15", "v1.35": "1.35.0", "v3.5.15": "3.5.15", "1.6.20~ds1": "1.6.20",
	} {
		v, ok := Parse(in)
		if !ok || v.String() != want {
			t.Errorf("%s: %s %v", in, v, ok)
		}
	}
	for _, in := range []string{"", "latest", "sha256:abc", "v1"} {
		if _, ok := Parse(in); ok {
			t.Errorf("%q is read as a version", in)
		}
	}
	a, _ := Parse("v1.34.0-rc.1")
	b, _ := Parse("v1.34.0")
	if !a.Less(b) || b.Less(a) {
		t.Error("a pre-release is not older than its release")
	}
}

func TestEtcdFloor(t *testing.T) {
	f, _, ok := EtcdFloor(6, 7)
	if !ok || f.String() != "3.6.11" {
		t.Errorf("%s %v", f, ok)
	}
	if _, _, ok := EtcdFloor(6, 6); ok {
		t.Error("a floor inside one minor")
	}
	v, _ := Parse("3.5.1")
	if bs := EtcdBugs(v); len(bs) == 0 || !bs[0].Grave {
		t.Errorf("%+v", bs)
	}
}

// FuzzParse: any text is read without a panic, and a version that was read
// prints as one that reads the same.
func FuzzParse(f *testing.F) {
	f.Add("v1.34.0-rc.1")
	f.Add("3.6.6-0")
	f.Fuzz(func(t *testing.T, s string) {
		v, ok := Parse(s)
		if !ok {
			return
		}
		w, ok := Parse(v.String())
		if !ok || w.Compare(v) != 0 {
			t.Errorf("%q: %v %v", s, v, w)
		}
	})
}
