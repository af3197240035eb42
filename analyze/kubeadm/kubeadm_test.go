package kubeadm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"coldplane/analyze"
	"coldplane/analyze/kubeadm"
	"coldplane/bundle"
)

func cluster(t *testing.T, files map[string]string) (*kubeadm.Config, error) {
	t.Helper()
	dir := t.TempDir()
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
	return kubeadm.Cluster.Get(analyze.New(t.Context(), set, analyze.Options{}).Ctx(nil))
}

const configMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: kubeadm-config, namespace: kube-system}
data:
  ClusterConfiguration: |
    apiVersion: kubeadm.k8s.io/v1beta3
    kind: ClusterConfiguration
    controlPlaneEndpoint: api:6443
    apiServer:
      extraArgs:
        profiling: "false"
        audit-log-maxage: "30"
    etcd:
      local:
        dataDir: /data/etcd/
        extraArgs: {quota-backend-bytes: "8589934592"}
`

// Lines are those of the file, although the configuration is a string in it.
func TestConfigMapAndMapArgs(t *testing.T) {
	cfg, err := cluster(t, map[string]string{"kubeadm-config.yaml": configMap})
	if err != nil {
		t.Fatal(err)
	}
	want := kubeadm.Args{{Name: "audit-log-maxage", Value: "30", Pointer: "/audit-log-maxage"}, {Name: "profiling", Value: "false", Pointer: "/profiling"}}
	if diff := cmp.Diff(want, cfg.APIServer.ExtraArgs); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if cfg.Source != "configmap" || cfg.DataDir() != "/data/etcd" || !cfg.DataDirSet || cfg.External() {
		t.Errorf("%+v", cfg)
	}
	for pointer, line := range map[string]int{"/controlPlaneEndpoint": 8, "/apiServer/extraArgs/audit-log-maxage": 12, "/etcd/local/dataDir": 15, "/etcd/local/extraArgs/quota-backend-bytes": 16, "/nowhere": 6} {
		if got := cfg.Ref(pointer).Line; got != line {
			t.Errorf("%s at line %d, want %d", pointer, got, line)
		}
	}
	if cfg.Networking.ServiceSubnet != kubeadm.DefaultServiceSubnet || cfg.CertificatesDir != kubeadm.DefaultCertificatesDir {
		t.Error("kubeadm's defaults are not filled in")
	}
}

func TestInitFileAndListArgs(t *testing.T) {
	cfg, err := cluster(t, map[string]string{"etc/kubernetes/kubeadm.yaml": `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 10.0.0.1}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
apiServer:
  extraArgs:
  - name: service-account-issuer
    value: https://a
  - name: service-account-issuer
    value: https://b
  extraVolumes:
  - {name: a, hostPath: /a, mountPath: /b, readOnly: true, pathType: File}
etcd:
  external:
    endpoints: ["https://10.0.0.9:2379"]
    caFile: /ca
`})
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := cfg.APIServer.ExtraArgs.Get("service-account-issuer"); a.Value != "https://b" || a.Pointer != "/1/value" {
		t.Errorf("the last of a name does not count: %+v", a)
	}
	if len(cfg.APIServer.ExtraArgs) != 2 || len(cfg.APIServer.ExtraVolumes) != 1 {
		t.Errorf("%+v", cfg.APIServer)
	}
	if l := cfg.Ref("/apiServer/extraArgs/1/value").Line; l != 12 {
		t.Errorf("second issuer at line %d", l)
	}
	if !cfg.External() || cfg.Source != "file" {
		t.Errorf("external %v, source %s", cfg.External(), cfg.Source)
	}
	if diff := cmp.Diff([]string{"https://10.0.0.9:2379"}, cfg.Etcd.External.Endpoints, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDefaultDataDir(t *testing.T) {
	cfg, err := cluster(t, map[string]string{"kubeadm-config.yaml": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"})
	if err != nil || cfg.DataDir() != "/var/lib/etcd" || cfg.DataDirSet {
		t.Errorf("%+v, %v", cfg, err)
	}
}

// The cluster's own file wins over a node's.
func TestSharedFileFirst(t *testing.T) {
	file := func(v string) string {
		return "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: " + v + "\n"
	}
	cfg, err := cluster(t, map[string]string{"kubeadm-config.yaml": file("v1.37.2"), "nodes/a/etc/kubernetes/kubeadm.yaml": file("v1.30.0"), "nodes/b/etc/kubernetes/admin.conf": "x"})
	if err != nil || cfg.KubernetesVersion != "v1.37.2" {
		t.Errorf("%+v, %v", cfg, err)
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want bundle.Reason
	}{
		"syntax":        {"kind: [x\n", bundle.Damaged},
		"other kind":    {"apiVersion: v1\nkind: Secret\n", bundle.Damaged},
		"empty string":  {"apiVersion: v1\nkind: ConfigMap\ndata: {ClusterConfiguration: \"\"}\n", bundle.Damaged},
		"inner syntax":  {"apiVersion: v1\nkind: ConfigMap\ndata:\n  ClusterConfiguration: |\n    a: [b\n", bundle.Damaged},
		"wrong shape":   {"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\napiServer: {extraArgs: 5}\n", bundle.Damaged},
		"number as arg": {"apiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\napiServer: {extraArgs: {v: 5}}\n", bundle.Damaged},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := cluster(t, map[string]string{"kubeadm-config.yaml": c.body, "etc/kubernetes/admin.conf": "x"}); bundle.ReasonOf(err) != c.want {
				t.Errorf("error %v", err)
			}
		})
	}
	if _, err := cluster(t, map[string]string{"etc/kubernetes/admin.conf": "x"}); bundle.ReasonOf(err) != bundle.NotCollected {
		t.Errorf("without any file: %v", err)
	}
}
