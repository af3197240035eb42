package kubelet_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"coldplane/analyze"
	"coldplane/analyze/kubelet"
	"coldplane/bundle"
)

func node(t *testing.T, files map[string]string) *analyze.Ctx {
	t.Helper()
	dir := t.TempDir()
	files["etc/kubernetes/kubelet.conf"] = "x"
	for p, s := range files {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := bundle.Open(t.Context(), []string{dir}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return analyze.New(t.Context(), set, analyze.Options{}).Ctx(set.Nodes[0])
}

const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func TestConfigWithInstanceConfig(t *testing.T) {
	c := node(t, map[string]string{
		"var/lib/kubelet/config.yaml":          head + "staticPodPath: /etc/kubernetes/manifests\ncontainerRuntimeEndpoint: unix:///a.sock\nfeatureGates: {X: true}\nfailSwapOn: false\n",
		"var/lib/kubelet/instance-config.yaml": "containerRuntimeEndpoint: unix:///b.sock\n",
	})
	cfg, err := kubelet.File.Get(c)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.ContainerRuntimeEndpoint != "unix:///b.sock" || !cfg.FeatureGates["X"] || cfg.FailSwapOn == nil || *cfg.FailSwapOn {
		t.Errorf("%+v", cfg.KubeletConfiguration)
	}
	if l := cfg.Doc.Ref("/staticPodPath").Line; l != 3 {
		t.Errorf("staticPodPath at line %d", l)
	}
}

func TestConfigFaults(t *testing.T) {
	for name, body := range map[string]string{"empty": "", "syntax": "kind: [x\n", "shape": head + "featureGates: 1\n"} {
		t.Run(name, func(t *testing.T) {
			_, err := kubelet.File.Get(node(t, map[string]string{"var/lib/kubelet/config.yaml": body}))
			if bundle.ReasonOf(err) != bundle.Damaged {
				t.Errorf("error %v", err)
			}
		})
	}
	_, err := kubelet.File.Get(node(t, map[string]string{"var/lib/kubelet/kubeadm-flags.env": "A=1\n"}))
	if !bundle.IsAbsent(err) {
		t.Errorf("without the file: %v", err)
	}
}

// The last of a name wins, in the order of kubeadm's unit: drop-ins, then
// kubeadm's file, then the administrator's.
func TestCommandLine(t *testing.T) {
	c := node(t, map[string]string{
		"usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": "[Service]\n" +
			`Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"` + "\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_EXTRA_ARGS\n",
		"var/lib/kubelet/kubeadm-flags.env": `KUBELET_KUBEADM_ARGS="--hostname-override=cp1 --node-ip 10.0.0.1 --v=2"` + "\n",
		"etc/default/kubelet":               "# KUBELET_EXTRA_ARGS=--v=9\nKUBELET_EXTRA_ARGS='--v=4 --fail-swap-on'\n",
	})
	fs, err := kubelet.CommandLine.Get(c)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, n := range []string{"config", "hostname-override", "node-ip", "v", "fail-swap-on", "absent"} {
		if f, ok := fs.Get(n); ok {
			got[n] = f.Value
			if f.Ref.Line == 0 {
				t.Errorf("%s has no line", n)
			}
		}
	}
	want := map[string]string{"config": "/var/lib/kubelet/config.yaml", "hostname-override": "cp1", "node-ip": "10.0.0.1", "v": "4", "fail-swap-on": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestStaticPodPath(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		path  string
		known bool // something says so
	}{
		{"assumed", map[string]string{}, "/etc/kubernetes/manifests", false},
		{"configured", map[string]string{"var/lib/kubelet/config.yaml": head + "staticPodPath: /etc/kubelet.d//\n"}, "/etc/kubelet.d", true},
		{"switched off", map[string]string{"var/lib/kubelet/config.yaml": head}, "", true},
		{"flag wins", map[string]string{"var/lib/kubelet/config.yaml": head + "staticPodPath: /a\n", "var/lib/kubelet/kubeadm-flags.env": "ARGS=--pod-manifest-path=/b\n"}, "/b", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sp, err := kubelet.StaticPods.Get(node(t, c.files))
			if err != nil || sp.Path != c.path || sp.Ref.IsZero() == c.known {
				t.Errorf("%+v, %v", sp, err)
			}
		})
	}
}
