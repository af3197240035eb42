package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"coldplane/report"
)

// An etcdMember is a real etcd server that runs inside the test, with its files
// where a kubeadm node has them.
type etcdMember struct {
	name, root, log string
	peer, client    url.URL
	quota           int64
	etcd            *embed.Etcd
}

// newEtcdMember prepares a member below nodes/NAME of a tree.
func newEtcdMember(t *testing.T, tree, name string) *etcdMember {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real etcd")
	}
	return &etcdMember{name: name, root: filepath.Join(tree, "nodes", name), log: filepath.Join(t.TempDir(), "etcd.log"), peer: freeURL(t), client: freeURL(t)}
}

func freeURL(t *testing.T) url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}
}

func (m *etcdMember) dir() string { return filepath.Join(m.root, "var/lib/etcd") }

// initial is the member's part of --initial-cluster.
func (m *etcdMember) initial() string { return m.name + "=" + m.peer.String() }

// start begins the server; wait with ready.
func (m *etcdMember) start(t *testing.T, initial, state string) {
	t.Helper()
	if err := os.MkdirAll(m.dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.Name = m.dir(), m.name
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{m.peer}, []url.URL{m.peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{m.client}, []url.URL{m.client}
	cfg.InitialCluster, cfg.ClusterState = initial, state
	cfg.QuotaBackendBytes = m.quota
	cfg.LogOutputs, cfg.LogLevel = []string{m.log}, "info"
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.etcd = e
	t.Cleanup(m.stop)
}

func (m *etcdMember) ready(t *testing.T) {
	t.Helper()
	select {
	case <-m.etcd.Server.ReadyNotify():
	case <-time.After(2 * time.Minute):
		t.Fatalf("etcd %s does not start", m.name)
	}
}

func (m *etcdMember) stop() {
	if m.etcd != nil {
		m.etcd.Close()
		m.etcd = nil
	}
}

func (m *etcdMember) dial(t *testing.T) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.client.String()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// manifest writes the node's static pod manifest of etcd.
func (m *etcdMember) manifest(t *testing.T) {
	t.Helper()
	flags := fmt.Sprintf("    - --name=%s\n    - --data-dir=/var/lib/etcd\n    - --listen-client-urls=%s\n    - --initial-advertise-peer-urls=%s\n", m.name, m.client.String(), m.peer.String())
	if m.quota > 0 {
		flags += fmt.Sprintf("    - --quota-backend-bytes=%d\n", m.quota)
	}
	writeTo(t, filepath.Join(m.root, "etc/kubernetes/manifests/etcd.yaml"), []byte("apiVersion: v1\nkind: Pod\nmetadata:\n  name: etcd\n  namespace: kube-system\nspec:\n  containers:\n  - name: etcd\n    image: registry.k8s.io/etcd:3.7.3-0\n    command:\n    - etcd\n"+flags+
		"    volumeMounts:\n    - mountPath: /var/lib/etcd\n      name: etcd-data\n  volumes:\n  - name: etcd-data\n    hostPath:\n      path: /var/lib/etcd\n"))
}

// saveLog writes the server's log as the kubelet keeps it.
func (m *etcdMember) saveLog(t *testing.T, root string) {
	t.Helper()
	in, err := os.ReadFile(m.log)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for s := bufio.NewScanner(bytes.NewReader(in)); s.Scan(); {
		var l struct{ TS string }
		if json.Unmarshal(s.Bytes(), &l) != nil {
			continue
		}
		at, err := time.Parse("2006-01-02T15:04:05.999999Z0700", l.TS)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s stderr F %s\n", at.UTC().Format(time.RFC3339Nano), s.Bytes())
	}
	writeTo(t, filepath.Join(root, "var/log/pods/kube-system_etcd-"+m.name+"_0123456789abcdef0123456789abcdef/etcd/0.log"), out.Bytes())
}

func writeTo(t *testing.T, p string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyFiles copies a tree that nobody writes to at the moment; zeros at a
// file's end, which etcd preallocates, become a hole.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(p string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		writeTo(t, dst, bytes.TrimRight(b, "\x00"))
		return os.Truncate(dst, int64(len(b)))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// putObject stores an object as an API server does, and returns etcd's error.
func putObject(ctx context.Context, c *clientv3.Client, key, kind string, o runtime.Object) error {
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	var b bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(o, &b); err != nil {
		return err
	}
	_, err := c.Put(ctx, path.Join("/registry", key), b.String())
	return err
}

func putConfigMap(ctx context.Context, c *clientv3.Client, ns, name string, bytes int) error {
	return putObject(ctx, c, path.Join("configmaps", ns, name), "ConfigMap",
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string]string{"text": strings.Repeat("x", bytes)}})
}

// saveSnapshot is etcdctl snapshot save.
func saveSnapshot(t *testing.T, c *clientv3.Client, p string) {
	t.Helper()
	rc, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	b, err := io.ReadAll(rc)
	if err != nil {
		t.Fatal(err)
	}
	writeTo(t, p, b)
}

// peerTool builds a tool of the module internal/peers. It skips the test where
// that cannot be done, without the modules or the go command.
func peerTool(t testing.TB, name, pkg string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	c := exec.Command("go", "build", "-trimpath", "-o", bin, pkg)
	c.Dir = "../../internal/peers"
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("%s cannot be built here: %v\n%s", name, err, out)
	}
	return bin
}

// judged analyzes inputs as of now, or of the time that etcd's evidence holds.
func judged(t *testing.T, inputs ...string) *report.Report {
	t.Helper()
	args := append([]string{"analyze", "-o", "json", "--fail-on", "none", "--as-of", time.Now().UTC().Format(time.RFC3339)}, inputs...)
	code, out, errs := coldplane(t, args...)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	r := &report.Report{}
	if err := json.Unmarshal([]byte(out), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// findings returns those of a rule.
func findings(r *report.Report, rule string) []report.Finding {
	var out []report.Finding
	for _, f := range r.Findings {
		if f.Rule == rule {
			out = append(out, f)
		}
	}
	return out
}

// one returns the only finding of a rule.
func one(t *testing.T, r *report.Report, rule string) report.Finding {
	t.Helper()
	fs := findings(r, rule)
	if len(fs) != 1 {
		t.Fatalf("%d findings of %s: %+v", len(fs), rule, fs)
	}
	return fs[0]
}

// logHas reports whether a line of a member's log holds two texts.
func logHas(t *testing.T, m *etcdMember, a, b string) bool {
	t.Helper()
	log, err := os.ReadFile(m.log)
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(log) {
		if bytes.Contains(l, []byte(a)) && bytes.Contains(l, []byte(b)) {
			return true
		}
	}
	return false
}
