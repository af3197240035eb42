//go:build linux

package collect

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"coldplane/bundle/archive"
	"coldplane/bundle/decode/spki"
	"coldplane/bundle/redact"
)

// A tree is a node's root made for a test.
type tree struct {
	t        *testing.T
	dir      string
	r        *rand.Rand
	canaries map[string]string // secret -> where
}

func newTree(t *testing.T) *tree {
	return &tree{t: t, dir: t.TempDir(), r: rand.New(rand.NewPCG(21, 22)), canaries: map[string]string{}}
}

func (n *tree) secret(where string) string {
	s := fmt.Sprintf("CaNaRy%016x%08X", n.r.Uint64(), n.r.Uint32())
	n.canaries[s] = where
	return s
}

func (n *tree) put(p, content string) {
	n.t.Helper()
	full := filepath.Join(n.dir, p)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// key is something that looks like a private key and holds a canary.
func (n *tree) key(where string) string {
	return "-----BEGIN PRIVATE KEY-----\n" + b64("key "+n.secret(where)+strings.Repeat("z", 30)) + "\n-----END PRIVATE KEY-----\n"
}

// full fills the tree with secrets in all the places where nodes have them.
func (n *tree) full() {
	n.put("etc/hostname", "cp1\n")
	n.put("etc/kubernetes/manifests/etcd.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: etcd\n  namespace: kube-system\nspec:\n  containers:\n  - command:\n    - etcd\n    - --name=cp1\n    - --data-dir=/var/lib/etcd\n    - --listen-client-urls=https://127.0.0.1:2379\n    name: etcd\n    image: registry.k8s.io/etcd:3.6.0-0\n  volumes:\n  - hostPath:\n      path: /var/lib/etcd\n    name: data\n")
	n.put("etc/kubernetes/manifests/kube-apiserver.yaml", `apiVersion: v1
kind: Pod
metadata:
  name: kube-apiserver
  annotations:
    note: `+n.secret("annotation")+`
spec:
  containers:
  - command:
    - kube-apiserver
    - --advertise-address=10.0.0.11
    - --oidc-client-secret=`+n.secret("unknown flag")+`
    - --etcd-servers=https://root:`+n.secret("user in URL")+`@127.0.0.1:2379
    - --token-auth-file=/etc/kubernetes/tokens.csv
    - --encryption-provider-config=/etc/kubernetes/enc/enc.yaml
    - --admission-control-config-file=/etc/kubernetes/admission.yaml
    # `+n.secret("comment")+`
    env:
    - name: HTTP_PROXY
      value: http://u:`+n.secret("env proxy")+`@proxy:3128
    - name: DB_PASSWORD
      value: `+n.secret("env password")+`
    livenessProbe:
      httpGet:
        path: /livez
        httpHeaders:
        - name: Authorization
          value: `+n.secret("probe header")+`
    args: ["--foo", "`+n.secret("two-part flag")+`"]
    lifecycle:
      postStart:
        exec:
          command: ["sh", "-c", "curl -H 'X: `+n.secret("lifecycle")+`'"]
`)
	n.put("etc/kubernetes/manifests/broken.yaml", "apiVersion: v1\nkind: Pod\n  bad: [\n    - --password="+n.secret("broken manifest")+"\nvalue: "+n.secret("broken manifest 2")+"\n")
	n.put("etc/kubernetes/manifests/.kube-apiserver.yaml.swp", "b0VIM\x00\x00"+n.secret("editor swap"))
	n.put("etc/kubernetes/manifests/notes.txt", "password is "+n.secret("stray text")+"\n")
	n.put("etc/kubernetes/tokens.csv", n.secret("token file")+",user,uid\n")
	n.put("etc/kubernetes/enc/enc.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n  - aescbc:\n      keys:\n      - name: key1\n        secret: "+b64(n.secret("aes key"))+"\n  - identity: {}\n")
	n.put("etc/kubernetes/enc/broken.yaml", "kind: EncryptionConfiguration\n secret: "+n.secret("broken enc")+"\n\t- x")
	n.put("etc/kubernetes/admission.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: X\n  configuration:\n    password: "+n.secret("admission")+"\n")
	n.put("etc/kubernetes/cloud.conf", "[Global]\npassword="+n.secret("cloud.conf")+"\n")
	n.put("etc/kubernetes/pki/ca.key", n.key("ca.key"))
	n.put("etc/kubernetes/pki/sa.key", n.key("sa.key"))
	n.put("etc/kubernetes/pki/etcd/ca.key", n.key("etcd ca.key"))
	n.put("etc/kubernetes/pki/both.pem", n.key("cert and key"))
	n.put("etc/kubernetes/pki/garbage.crt", "not pem "+n.secret("garbage crt"))
	n.put("etc/kubernetes/pki/damaged.key", "-----BEGIN RSA PRIVATE KEY-----\n"+b64(n.secret("cut key")+"0123456789"))
	n.put("etc/kubernetes/pki/readme", n.secret("text in pki"))
	kubeconfig := func(where string) string {
		return "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: https://10.0.0.1:6443\ncontexts: []\nusers:\n- name: u\n  user:\n    client-key-data: " + b64(n.key(where+" key")) + "\n    token: " + n.secret(where+" token") + "\n    password: " + n.secret(where+" password") + "\n    exec:\n      command: aws\n      env:\n      - name: AWS_SECRET\n        value: " + n.secret(where+" exec env") + "\n    auth-provider:\n      config:\n        id-token: " + n.secret(where+" auth provider") + "\n"
	}
	for _, f := range []string{"etc/kubernetes/admin.conf", "etc/kubernetes/super-admin.conf", "etc/kubernetes/bootstrap-kubelet.conf", "root/.kube/config", "home/ann/.kube/config", "etc/kubernetes/kubelet.conf"} {
		n.put(f, kubeconfig(f))
	}
	n.put("etc/kubernetes/broken.conf", "users: [\n  token: "+n.secret("broken kubeconfig")+"\n")
	n.put("etc/kubernetes/tmp/kubeadm-init-dryrun1/ca.key", n.key("kubeadm tmp"))
	n.put("etc/kubernetes/tmp/kubeadm-backup-etcd-1/etcd/member/snap/db", n.secret("kubeadm backup"))
	n.put("var/lib/kubelet/config.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: /etc/kubernetes/manifests\nstaticPodURLHeader:\n  X-Auth: ["+n.secret("kubelet header")+"]\nunknownField: "+n.secret("unknown kubelet field")+"\n")
	n.put("var/lib/kubelet/kubeadm-flags.env", `KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.11 --image-pull-secret=`+n.secret("kubelet flag")+`"`+"\n")
	n.put("etc/default/kubelet", "KUBELET_EXTRA_ARGS=--foo="+n.secret("extra args")+"\nHTTPS_PROXY=http://a:"+n.secret("env file proxy")+"@p:1\nAWS_SECRET_ACCESS_KEY="+n.secret("env file")+"\n")
	n.put("etc/systemd/system/kubelet.service.d/10.conf", "[Service]\nEnvironment=\"TOKEN="+n.secret("unit environment")+"\"\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --secret="+n.secret("unit flag")+"\n# "+n.secret("unit comment")+"\n")
	n.put("var/lib/kubelet/pki/kubelet-client-2026.pem", n.key("kubelet client"))
	n.put("etc/containerd/config.toml", "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"r\".auth]\n  username = \"u\"\n  password = \""+n.secret("registry password")+"\"\n  auth = \""+b64(n.secret("registry auth"))+"\"\n[x.header]\n  Authorization = [\"Basic "+n.secret("registry header")+"\"]\n[proxy]\n  http_proxy = \"http://u:"+n.secret("toml proxy")+"@p\"\n")
	n.put("etc/crio/crio.conf", "[crio]\nglobal_auth_file = \""+n.secret("crio")+"\"\n")
	n.put("etc/fstab", "//srv/x /mnt cifs username=u,password="+n.secret("fstab")+" 0 0\n")
	logs := "var/log/pods/kube-system_kube-apiserver-cp1_0123/kube-apiserver/"
	var b strings.Builder
	for i, l := range []string{
		`I0102 03:04:05.1 1 rt.go:1] curl -H "Authorization: Bearer ` + n.secret("log bearer") + `"`,
		`E0102 failed: https://admin:` + n.secret("log url") + `@vc/sdk`,
		`password=` + n.secret("log password"), `{"auths":{"r":{"auth":"` + b64(n.secret("log docker")) + `"}}}`,
		`panic: &v1.Secret{Data:{"token":"` + b64(n.secret("log secret dump")) + `"}}`,
		`env: [{"name":"DB_PASSWORD","value":"` + n.secret("log env") + `"}]`,
		`-----BEGIN RSA PRIVATE KEY-----`, b64("k" + n.secret("log key") + strings.Repeat("q", 20)), `-----END RSA PRIVATE KEY-----`,
		`--token ` + n.secret("log flag"), `client_secret=` + n.secret("log form"),
	} {
		fmt.Fprintf(&b, "2026-01-02T03:04:%02d.000000000Z stderr F %s\n", i, l)
	}
	n.put(logs+"0.log", b.String())
	n.put(logs+"0.log.20260101-000000.gz", n.secret("gz log"))
	n.put("var/log/kubernetes/audit.log", `{"requestObject":{"password":"`+n.secret("audit")+`"}}`)
	n.put("etc/cni/net.d/10.conflist", `{"password":"`+n.secret("cni")+`"}`)
	n.put("etc/shadow", "root:"+n.secret("shadow")+":1\n")
	n.put("etc/ssh/ssh_host_rsa_key", n.key("ssh host key"))
	n.put("var/lib/etcd/member/wal/0000000000000000-0000000000000000.wal", strings.Repeat("\x00", 64)+n.secret("wal"))
	n.put("var/lib/etcd/member/snap/0000000000000001-0000000000000001.snap", "not a snap "+n.secret("snap"))
	n.put("var/lib/etcd/member/snap/db.tmp.123", n.secret("defrag rest"))
	n.put("var/lib/etcd/member/snap/db", strings.Repeat("not bolt ", 2000)+n.secret("not a db"))
}

func options(root string, t testing.TB) Options {
	return Options{Root: root, Now: time.Now, SpoolDir: t.TempDir(), Since: 24 * time.Hour, Tool: archive.Tool{Name: "coldplane"}}
}

// members returns every entry of a bundle.
func members(t *testing.T, b []byte) map[string]string {
	t.Helper()
	r, err := archive.Unwrap(bytes.NewReader(b), nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(c)
	}
}

func verified(t *testing.T, b []byte) *archive.Verification {
	t.Helper()
	r, err := archive.Unwrap(bytes.NewReader(b), nil)
	if err != nil {
		t.Fatal(err)
	}
	return archive.Verify(r, archive.Limits{})
}

func TestNoSecretEntersABundle(t *testing.T) {
	n := newTree(t)
	n.full()
	if len(n.canaries) < 60 {
		t.Fatalf("%d canaries", len(n.canaries))
	}
	var out bytes.Buffer
	if _, err := Run(t.Context(), &out, options(n.dir, t)); err != nil {
		t.Fatal(err)
	}
	v := verified(t, out.Bytes())
	if v.State != archive.Intact {
		t.Fatal(v.State, v.Problems)
	}
	ms := members(t, out.Bytes())
	for name, c := range ms {
		texts := []string{c}
		for f := range strings.FieldsFuncSeq(c, func(r rune) bool { return strings.ContainsRune(" \n\t\"',:", r) }) {
			for range 2 { // base64 of base64
				d, err := base64.StdEncoding.DecodeString(f)
				if err != nil {
					break
				}
				f = string(d)
				texts = append(texts, f)
			}
		}
		for s, where := range n.canaries {
			for _, text := range texts {
				if strings.Contains(text, s) || strings.Contains(text, s[6:22]) || strings.Contains(text, b64("x" + s)[4:24]) {
					t.Errorf("%s: the secret of %q is in it", name, where)
				}
			}
		}
	}
	for _, want := range []string{"etc/kubernetes/manifests/kube-apiserver.yaml", "etc/kubernetes/manifests/broken.yaml", "etc/kubernetes/admin.conf", "root/.kube/config", "etc/kubernetes/enc/enc.yaml",
		"var/log/pods/kube-system_kube-apiserver-cp1_0123/kube-apiserver/0.log", "etc/containerd/config.toml", "var/lib/kubelet/config.yaml"} {
		if _, ok := ms[want]; !ok {
			t.Errorf("%s is not in the bundle", want)
		}
	}
	m := ms["etc/kubernetes/manifests/kube-apiserver.yaml"]
	for _, want := range []string{"--advertise-address=10.0.0.11", "--token-auth-file=/etc/kubernetes/tokens.csv", "--oidc-client-secret=", "name: DB_PASSWORD"} {
		if !strings.Contains(m, want) {
			t.Errorf("the manifest lost %s", want)
		}
	}
	if !strings.Contains(ms["etc/kubernetes/enc/enc.yaml"], "name: key1") || !strings.Contains(ms["etc/kubernetes/enc/enc.yaml"], "secret: REDACTED") {
		t.Errorf("encryption configuration: %s", ms["etc/kubernetes/enc/enc.yaml"])
	}
	if !strings.Contains(ms["etc/kubernetes/admin.conf"], "client-key-data: REDACTED") {
		t.Errorf("kubeconfig: %s", ms["etc/kubernetes/admin.conf"])
	}
	entries := map[string]archive.Entry{}
	for _, e := range v.Manifest.Entries {
		entries[e.Path] = e
	}
	for p, want := range map[string]archive.Treatment{
		"etc/kubernetes/pki/ca.key":                         archive.Dropped,
		"etc/kubernetes/tmp/kubeadm-init-dryrun1/ca.key":    archive.Dropped,
		"etc/kubernetes/manifests/.kube-apiserver.yaml.swp": archive.Dropped,
		"etc/kubernetes/cloud.conf":                         archive.Dropped,
		"var/lib/etcd/member/snap/db":                       archive.Dropped,
		"var/lib/etcd/member/snap/db.tmp.123":               archive.Dropped,
		"etc/kubernetes/tokens.csv":                         archive.Dropped,
	} {
		if e, ok := entries[p]; !ok || e.Treatment != want || e.Stored {
			t.Errorf("%s: %+v, want %s", p, e, want)
		}
	}
	if !strings.Contains(ms[archive.KeysPath], "/etc/kubernetes/pki/ca.key") {
		t.Errorf("keys: %s", ms[archive.KeysPath])
	}
	_ = spki.PrivateKey
}

// What is no regular file is noted and never read; links lead nowhere outside.
func TestOddFiles(t *testing.T) {
	n := newTree(t)
	n.put("etc/hostname", "cp1\n")
	n.put("etc/kubernetes/manifests/a.yaml", "kind: Pod\n")
	n.put("outside/secret.yaml", "kind: Pod # inside the root\n")
	m := filepath.Join(n.dir, "etc/kubernetes/manifests")
	outside := filepath.Join(t.TempDir(), "host-secret")
	if err := os.WriteFile(outside, []byte("kind: HOST-SECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(syscall.Mkfifo(filepath.Join(m, "fifo.yaml"), 0o600))
	must(os.Symlink(outside, filepath.Join(m, "absolute.yaml")))
	must(os.Symlink("../../../../../../../../../.."+outside, filepath.Join(m, "dots.yaml")))
	must(os.Symlink("/outside/secret.yaml", filepath.Join(m, "inside.yaml")))
	must(os.Symlink("loop.yaml", filepath.Join(m, "loop.yaml")))
	must(os.Symlink("/etc/shadow", filepath.Join(m, "shadow.yaml")))
	n.put("etc/shadow", "root:HOST-SECRET\n")
	must(os.Mkdir(filepath.Join(m, "dir.yaml"), 0o700))
	f, err := os.Create(filepath.Join(m, "sparse.yaml"))
	must(err)
	must(f.Truncate(1 << 40))
	f.Close()
	if os.Geteuid() == 0 {
		if err := syscall.Mknod(filepath.Join(m, "device.yaml"), syscall.S_IFCHR|0o600, 1<<8|5); err != nil { // /dev/zero
			t.Logf("no device: %v", err)
		}
	}
	must(os.WriteFile(filepath.Join(m, "odd\nname\x1b.yaml"), []byte("kind: Pod\n"), 0o600))
	must(os.WriteFile(filepath.Join(m, "\xff.yaml"), []byte("kind: Pod\n"), 0o600))
	var out bytes.Buffer
	began := time.Now()
	if _, err := Run(t.Context(), &out, options(n.dir, t)); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("took %s", d)
	}
	v := verified(t, out.Bytes())
	if v.State != archive.Intact {
		t.Fatal(v.State, v.Problems)
	}
	all := ""
	for name, c := range members(t, out.Bytes()) {
		all += name + "\n" + c
	}
	if strings.Contains(all, "HOST-SECRET") {
		t.Error("a link led outside, or to a forbidden file")
	}
	got := map[string]archive.Entry{}
	for _, e := range v.Manifest.Entries {
		got[e.Path] = e
	}
	const d = "etc/kubernetes/manifests/"
	for p, typ := range map[string]string{"fifo.yaml": "fifo", "absolute.yaml": "link", "dots.yaml": "link", "loop.yaml": "link", "dir.yaml": "dir", "sparse.yaml": "file"} {
		if e := got[d+p]; e.Source == nil || e.Source.Type != typ || e.Stored {
			t.Errorf("%s: %+v", p, e)
		}
	}
	if !got["outside/secret.yaml"].Stored {
		t.Error("a link inside the root was not followed")
	}
	if e := got[d+"odd%0Aname%1B.yaml"]; !e.Stored {
		t.Error("the odd name is missing")
	}
}

// failing fails from the n-th byte on.
type failing struct {
	w io.Writer
	n int
}

var errFull = &fs.PathError{Op: "write", Path: "out", Err: syscall.ENOSPC}

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFull
	}
	return f.w.Write(p)
}

func TestFullDisk(t *testing.T) {
	n := newTree(t)
	n.full()
	var whole bytes.Buffer
	if _, err := Run(t.Context(), &whole, options(n.dir, t)); err != nil {
		t.Fatal(err)
	}
	for k := 0; k < whole.Len()-600; k += whole.Len()/23 + 1 {
		var out bytes.Buffer
		_, err := Run(t.Context(), &failing{&out, k}, options(n.dir, t))
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("disk full after %d bytes: %v", k, err)
		}
		if v := verified2(out.Bytes()); v == archive.Intact {
			t.Errorf("disk full after %d bytes: what was written passes as whole", k)
		}
	}
	// A full spool costs the large entries, not the bundle.
	o := options(n.dir, t)
	o.Room = func(string) int64 { return 0 }
	n.put("var/log/pods/kube-system_etcd-cp1_1/etcd/0.log", strings.Repeat("2026-01-01T00:00:00Z stderr F a long line\n", 20000))
	var out bytes.Buffer
	rep, err := Run(t.Context(), &out, o)
	if err != nil || rep.Status != archive.Degraded || verified2(out.Bytes()) != archive.Intact {
		t.Errorf("full spool: %v %s", err, rep.Status)
	}
	if left, _ := os.ReadDir(o.SpoolDir); len(left) != 0 {
		t.Errorf("left in the spool directory: %v", left)
	}
}

func verified2(b []byte) archive.State {
	r, err := archive.Unwrap(bytes.NewReader(b), nil)
	if err != nil {
		return archive.Altered
	}
	return archive.Verify(r, archive.Limits{}).State
}

// A cancelled collection is a valid interrupted bundle.
func TestInterrupted(t *testing.T) {
	n := newTree(t)
	n.full()
	for i := range 15 {
		ctx, cancel := context.WithCancel(t.Context())
		o := options(n.dir, t)
		o.Progress = func(e Event) {
			if e.Index == i+1 && e.Result == nil {
				cancel()
			}
		}
		var out bytes.Buffer
		rep, err := Run(ctx, &out, o)
		cancel()
		if err != nil || rep.Status != archive.Interrupted {
			t.Fatalf("at source %d: %v %s", i+1, err, rep.Status)
		}
		v := verified(t, out.Bytes())
		if v.State != archive.Incomplete || v.Manifest == nil || v.Manifest.Status != archive.Interrupted || len(v.Problems) != 1 {
			t.Errorf("at source %d: %s %v", i+1, v.State, v.Problems)
		}
	}
}

// A source that hangs in a way nobody can end is left behind.
func TestHungSourceIsLeftBehind(t *testing.T) {
	n := newTree(t)
	n.put("etc/kubernetes/manifests/a.yaml", "kind: Pod\n")
	root, err := openRoot(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.close()
	r := &run{o: options(n.dir, t).withDefaults(), root: root, scan: redact.NewScanner()}
	stop := make(chan struct{})
	defer close(stop)
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, r.header(), archive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	late := make(chan struct{})
	s := &source{name: "hung", deadline: 50 * time.Millisecond, run: func(_ context.Context, s *sink) error {
		s.add(archive.Entry{Path: "early", Treatment: archive.Kept}, []byte("x"))
		<-stop
		s.add(archive.Entry{Path: "late", Treatment: archive.Kept}, []byte("x"))
		close(late)
		return nil
	}}
	began := time.Now()
	res, err := r.one(t.Context(), t.Context(), s, w)
	if err != nil || res.Outcome != archive.TimedOut || time.Since(began) > 5*time.Second {
		t.Errorf("%v %+v after %s", err, res, time.Since(began))
	}
	if !w.Has("early") {
		t.Error("what it had found before is lost")
	}
	res, err = r.one(t.Context(), t.Context(), &source{name: "panics", run: func(context.Context, *sink) error { panic("x") }}, w)
	if err != nil || res.Outcome != archive.Failure {
		t.Errorf("a panic: %v %+v", err, res)
	}
	if _, err := w.Close(archive.Complete, archive.Clock{}); err != nil {
		t.Fatal(err)
	}
	if _, ok := members(t, out.Bytes())["late"]; ok {
		t.Error("what came late is in the bundle")
	}
}

// Commands that misbehave end at their deadline or limit.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		name, text, want string
		limit            int64
		fails            bool
	}{
		{"good", "echo hello", "hello\n", 100, false},
		{"sleeps", "echo part; sleep 60", "part\n", 100, true},
		{"ignores-term", "trap '' TERM INT HUP; echo part; while :; do sleep 1; done", "part\n", 100, true},
		{"forks", "echo part; (sleep 60) & (sleep 60) & exit 0", "part\n", 100, false},
		{"setsid-keeps-the-pipe", "echo part; setsid sleep 60 & exit 0", "part\n", 100, false},
		{"endless", "yes", "y\ny\n", 4, true},
		{"long-line", "head -c 100000000 /dev/zero | tr '\\0' a", "aaaa", 4, true},
		{"exits-137", "echo part; exit 137", "part\n", 100, true},
		{"sees-no-environment", "echo \"$HOME$COLDPLANE_SECRET\"", "\n", 100, false},
	} {
		t.Setenv("COLDPLANE_SECRET", "x")
		began := time.Now()
		b, err := command(t.Context(), 2, c.limit, script(c.name, c.text))
		if d := time.Since(began); d > 8*time.Second {
			t.Errorf("%s: took %s", c.name, d)
		}
		if (err != nil) != c.fails || string(b) != c.want {
			t.Errorf("%s: %q %v, want %q", c.name, b, err, c.want)
		}
	}
	t.Setenv("PATH", dir)
	script("coldplane-test-program", "echo mine")
	if _, err := command(t.Context(), 1, 100, "coldplane-test-program"); !errors.Is(err, errNoProgram) {
		t.Errorf("a program from the caller's PATH ran: %v", err)
	}
}

// Logs over the limit, growing and shrinking ones.
func TestLargeAndMovingLogs(t *testing.T) {
	n := newTree(t)
	n.put("etc/hostname", "cp1\n")
	p := "var/log/pods/kube-system_etcd-cp1_1/etcd/0.log"
	n.put(p, "first line\n"+strings.Repeat("2026-01-01T00:00:00Z stderr F some line\n", 100_000)+"last line\n")
	o := options(n.dir, t)
	o.LogBytes = 1 << 20
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		f, err := os.OpenFile(filepath.Join(n.dir, "var/log/pods/kube-system_etcd-cp1_1/etcd/1.log"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return
		}
		defer f.Close()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if i%50 == 0 {
				_ = f.Truncate(0)
			}
			fmt.Fprintf(f, "2026-01-01T00:00:00Z stderr F line %d\n", i)
		}
	}()
	for range 10 {
		var out bytes.Buffer
		if _, err := Run(t.Context(), &out, o); err != nil {
			t.Fatal(err)
		}
		if v := verified(t, out.Bytes()); v.State != archive.Intact {
			t.Fatal(v.State, v.Problems)
		}
		c := members(t, out.Bytes())[p]
		if !strings.HasPrefix(c, "first line\n") || !strings.HasSuffix(c, "last line\n") || !strings.Contains(c, "bytes left out]") || len(c) > 1<<20+100 {
			t.Fatalf("%d bytes: %.40q ... %.40q", len(c), c, c[max(0, len(c)-40):])
		}
	}
	close(stop)
	<-done
}

func newScan() *redact.Scanner { return redact.NewScanner() }
