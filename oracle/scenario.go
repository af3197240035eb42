package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A scenario is one configuration kubeadm is run with. Parts in %s are the
// kubeadm API version and the Kubernetes version.
type scenario struct {
	name     string
	external bool
	address  string
	cluster  string // ClusterConfiguration below apiVersion, kind and kubernetesVersion
}

const customArgs4 = `
clusterName: blue
certificatesDir: /srv/pki
imageRepository: registry.example/k8s
networking:
  dnsDomain: corp.example
  serviceSubnet: 10.200.0.0/16
  podSubnet: 10.201.0.0/16
apiServer:
  extraArgs:
  - {name: audit-log-path, value: /var/log/kubernetes/audit.log}
  - {name: authorization-mode, value: "Node,RBAC,Webhook"}
  - {name: service-account-issuer, value: "https://issuer.example"}
  - {name: service-account-issuer, value: "https://kubernetes.default.svc.corp.example"}
  - {name: enable-admission-plugins, value: "NodeRestriction,AlwaysPullImages"}
  extraVolumes:
  - {name: audit, hostPath: /var/log/kubernetes, mountPath: /var/log/kubernetes, pathType: DirectoryOrCreate}
  extraEnvs:
  - {name: GOGC, value: "50"}
controllerManager:
  extraArgs:
  - {name: bind-address, value: 0.0.0.0}
  - {name: node-cidr-mask-size, value: "26"}
scheduler:
  extraArgs:
  - {name: bind-address, value: 10.0.0.11}
  extraVolumes:
  - {name: schedconf, hostPath: /etc/kubernetes/sched.yaml, mountPath: /etc/kubernetes/sched.yaml, readOnly: true, pathType: File}
dns:
  imageTag: v1.11.3
etcd:
  local:
    dataDir: /data/etcd
    imageRepository: registry.example/etcd
    extraArgs:
    - {name: quota-backend-bytes, value: "8589934592"}
    - {name: listen-metrics-urls, value: "http://0.0.0.0:2381"}
    - {name: snapshot-count, value: "5000"}
`

const customArgs3 = `
clusterName: blue
certificatesDir: /srv/pki
imageRepository: registry.example/k8s
networking:
  dnsDomain: corp.example
  serviceSubnet: 10.200.0.0/16
  podSubnet: 10.201.0.0/16
apiServer:
  extraArgs:
    audit-log-path: /var/log/kubernetes/audit.log
    authorization-mode: "Node,RBAC,Webhook"
    service-account-issuer: "https://issuer.example"
    enable-admission-plugins: "NodeRestriction,AlwaysPullImages"
  extraVolumes:
  - {name: audit, hostPath: /var/log/kubernetes, mountPath: /var/log/kubernetes, pathType: DirectoryOrCreate}
controllerManager:
  extraArgs:
    bind-address: 0.0.0.0
    node-cidr-mask-size: "26"
scheduler:
  extraArgs:
    bind-address: 10.0.0.11
  extraVolumes:
  - {name: schedconf, hostPath: /etc/kubernetes/sched.yaml, mountPath: /etc/kubernetes/sched.yaml, readOnly: true, pathType: File}
etcd:
  local:
    dataDir: /data/etcd
    imageRepository: registry.example/etcd
    extraArgs:
      quota-backend-bytes: "8589934592"
      listen-metrics-urls: "http://0.0.0.0:2381"
      snapshot-count: "5000"
`

func scenarios(v1beta4 bool) []scenario {
	custom := customArgs3
	if v1beta4 {
		custom = customArgs4
	}
	return []scenario{
		{name: "default", address: "10.0.0.11"},
		{name: "ipv6", address: "fd00::11", cluster: "networking: {serviceSubnet: 'fd00:10::/112', podSubnet: 'fd00:20::/56'}\n"},
		{name: "external", external: true, address: "10.0.0.11", cluster: `controlPlaneEndpoint: api.example:6443
networking: {podSubnet: 10.244.0.0/16}
etcd:
  external:
    endpoints: ["https://10.0.0.21:2379", "https://10.0.0.22:2379"]
    caFile: /etc/etcd/ca.crt
    certFile: /srv/etcd/client.crt
    keyFile: /srv/etcd/client.key
`},
		{name: "custom", address: "10.0.0.11", cluster: custom},
		{name: "pinned", address: "10.0.0.11", cluster: "controlPlaneEndpoint: api.example:6443\netcd: {local: {imageTag: 3.5.21-0}}\n"},
	}
}

// generate runs kubeadm's phases for every scenario.
func generate(bin, out, work, version string) error {
	minor, err := strconv.Atoi(strings.SplitN(version, ".", 3)[1])
	if err != nil {
		return err
	}
	api := "v1beta3"
	if minor >= 31 {
		api = "v1beta4"
	}
	for _, s := range scenarios(api == "v1beta4") {
		root, err := os.MkdirTemp(work, "root")
		if err != nil {
			return err
		}
		cluster := fmt.Sprintf("apiVersion: kubeadm.k8s.io/%s\nkind: ClusterConfiguration\nkubernetesVersion: %s\n%s", api, version, strings.TrimPrefix(s.cluster, "\n"))
		full := cluster + fmt.Sprintf("---\napiVersion: kubeadm.k8s.io/%s\nkind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: %q}\nnodeRegistration: {name: cp1, criSocket: unix:///run/containerd/containerd.sock}\n", api, s.address)
		if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, "full.yaml"), []byte(full), 0o600); err != nil {
			return err
		}
		phases := [][]string{{"control-plane", "all"}}
		if !s.external {
			phases = append(phases, []string{"etcd", "local"})
		}
		for _, p := range phases {
			args := append(append([]string{"init", "phase"}, p...), "--config", "/full.yaml", "--rootfs", root)
			if _, err := command(root, bin, args...); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		dir := filepath.Join(out, version, s.name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "kubeadm-config.yaml"), []byte(cluster), 0o644); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(root, "etc/kubernetes/manifests/*.yaml"))
		if err != nil {
			return err
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o644); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(root); err != nil {
			return err
		}
	}
	return nil
}
