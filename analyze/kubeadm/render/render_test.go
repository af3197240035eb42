package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"coldplane/analyze/kubeadm"
	"coldplane/analyze/kubeadm/render"
	"coldplane/analyze/releases"
	"coldplane/analyze/yamlfile"
	"coldplane/bundle"
)

// config reads a ClusterConfiguration as the analysis does.
func config(t *testing.T, file string) *kubeadm.Config {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := yamlfile.FromBytes(bundle.Ref{Path: file}, b)
	if err != nil || len(docs) != 1 {
		t.Fatalf("%s: %v", file, err)
	}
	cfg, err := kubeadm.FromDoc(docs[0])
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func pod(t *testing.T, file string) *corev1.Pod {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(b, p); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return p
}

// TestOracle compares every pod with what kubeadm of that version wrote.
func TestOracle(t *testing.T) {
	files, err := filepath.Glob("testdata/oracle/*/*/kube*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("testdata/oracle/*/*/etcd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	minors := map[int]bool{}
	n := 0
	for _, f := range append(files, more...) {
		if filepath.Base(f) == "kubeadm-config.yaml" {
			continue
		}
		n++
		version := filepath.Base(filepath.Dir(filepath.Dir(f)))
		v, ok := releases.Parse(version)
		if !ok {
			t.Fatal(version)
		}
		minors[v.Minor] = true
		cfg := config(t, filepath.Join(filepath.Dir(f), "kubeadm-config.yaml"))
		h := render.Host{Name: "cp1", AdvertiseAddress: "10.0.0.11", BindPort: 6443}
		if strings.Contains(f, "ipv6") {
			h.AdvertiseAddress = "fd00::11"
		}
		want := pod(t, f)
		got := render.Pods(v.Minor, "", &cfg.ClusterConfiguration, h)[want.Name]
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-kubeadm +rendered):\n%s", f, d)
		}
	}
	if len(minors) < 1 || n < 19 {
		t.Errorf("only %d manifests of %d minors", n, len(minors))
	}
}
