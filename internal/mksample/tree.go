package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func gvk(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

const clusterConfiguration = `apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: kubernetes
controlPlaneEndpoint: api.k8s.example:6443
controllerManager: {}
dns: {}
encryptionAlgorithm: ECDSA-P256
etcd:
  local:
    dataDir: /var/lib/etcd
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.37.2
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/12
proxy: {}
scheduler: {}
`

// writeTree renders manifests and the kubelet's files; certificates come from
// the PKI.
func writeTree(root, base string, m machine) error {
	var initial []string
	for _, x := range machines {
		initial = append(initial, x.Name+"=https://"+x.IP+":2380")
	}
	data := map[string]any{"Name": m.Name, "IP": m.IP, "Initial": strings.Join(initial, ","), "External": false, "HA": true}
	return filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(base, p)
		if err != nil || d.IsDir() || strings.HasPrefix(rel, "etc/kubernetes/pki") || strings.HasSuffix(rel, ".conf") || rel == "kubeadm-config.yaml" {
			return err
		}
		t, err := template.ParseFiles(p)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, data); err != nil {
			return err
		}
		out := filepath.Join(root, rel)
		if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
			return err
		}
		return os.WriteFile(out, b.Bytes(), 0o644)
	})
}

// finishStory writes what is of the cluster, and cp1's edits.
func finishStory(out, _ string) error {
	var b strings.Builder
	b.WriteString("apiVersion: v1\ndata:\n  ClusterConfiguration: |\n")
	for l := range strings.Lines(clusterConfiguration) {
		b.WriteString("    " + l)
	}
	b.WriteString("kind: ConfigMap\nmetadata:\n  name: kubeadm-config\n  namespace: kube-system\n")
	if err := os.WriteFile(filepath.Join(out, "kubeadm-config.yaml"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	manifests := filepath.Join(out, "nodes/cp1/etc/kubernetes/manifests")
	old, err := os.ReadFile(filepath.Join(manifests, "etcd.yaml"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(manifests, "etcd.yaml.bak"), old, 0o644); err != nil {
		return err
	}
	edited := bytes.Replace(old, []byte("path: /var/lib/etcd\n"), []byte("path: /var/lib/etcd-restored\n"), 1)
	if bytes.Equal(old, edited) {
		return fmt.Errorf("the etcd manifest has no hostPath to edit")
	}
	return os.WriteFile(filepath.Join(manifests, "etcd.yaml"), edited, 0o644)
}

// copyMember copies a data directory without what is only preallocated: the
// database up to its high-water mark, WAL segments up to their last byte.
func copyMember(from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(p, ".tmp") {
			return err
		}
		rel, _ := filepath.Rel(from, p)
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		switch {
		case filepath.Base(p) == "db":
			b = b[:highWater(b)]
		case strings.HasSuffix(p, ".wal"):
			b = bytes.TrimRight(b, "\x00")
			b = append(b, make([]byte, (8-len(b)%8)%8)...)
		}
		out := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
			return err
		}
		return os.WriteFile(out, b, 0o644)
	})
}

// highWater is the size bbolt uses: the page after the last of the newer meta.
func highWater(b []byte) int64 {
	var size, best int64
	var txid uint64
	ps := int64(binary.LittleEndian.Uint32(b[24:]))
	for _, off := range []int64{0, ps} {
		m := b[off+16:]
		if id := binary.LittleEndian.Uint64(m[48:]); id >= txid {
			txid, best = id, int64(binary.LittleEndian.Uint64(m[40:]))
		}
	}
	if size = best * ps; size > int64(len(b)) {
		size = int64(len(b))
	}
	return size
}

// writeLogs turns etcd's own log into a CRI log file with the story's times.
func writeLogs(root string, m machine, file string, story func(time.Time) time.Time) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	dir := filepath.Join(root, "var/log/pods/kube-system_etcd-"+m.Name+"_0000000000000000000000000000000"+m.Name[2:], "etcd")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var out bytes.Buffer
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 1<<20)
	noise := map[string]int{}
	for sc.Scan() {
		var l map[string]any
		if json.Unmarshal(sc.Bytes(), &l) != nil {
			continue
		}
		ts, err := time.Parse("2006-01-02T15:04:05.999999Z0700", fmt.Sprint(l["ts"]))
		if err != nil {
			continue
		}
		msg := fmt.Sprint(l["msg"])
		if noise[msg]++; noise[msg] > 25 {
			continue
		}
		at := story(ts).UTC()
		if at.After(now) {
			break // the servers were stopped for the copy; the story ends before
		}
		line := strings.Replace(sc.Text(), fmt.Sprint(l["ts"]), at.Format("2006-01-02T15:04:05.000000Z0700"), 1)
		line = strings.ReplaceAll(line, filepath.Join(filepath.Dir(file), m.Name), "/var/lib")
		line = strings.ReplaceAll(line, "/var/lib/tls", "/etc/kubernetes/pki/etcd")
		fmt.Fprintf(&out, "%s stderr F %s\n", at.Format(time.RFC3339Nano), line)
	}
	if err := sc.Err(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "0.log"), out.Bytes(), 0o644)
}
