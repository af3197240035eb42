package staticpod_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"coldplane/analyze"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

const manifests = "etc/kubernetes/manifests/"

// read lays files out as a node and returns its manifest directory. A name
// that ends in "/" is a directory.
func read(t *testing.T, files map[string]string) *staticpod.Dir {
	t.Helper()
	dir := t.TempDir()
	for p, s := range files {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if strings.HasSuffix(p, "/") {
			if err := os.MkdirAll(full, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
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
	e := analyze.New(t.Context(), set, analyze.Options{})
	d, err := staticpod.Manifests.Get(e.Ctx(set.Nodes[0]))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// pod is a small manifest; args are lines of its command.
func pod(name string, args ...string) string {
	s := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\n  namespace: kube-system\nspec:\n  containers:\n  - name: " + name +
		"\n    image: registry.k8s.io/" + name + ":v1.37.2\n    command:\n"
	for _, a := range append([]string{name}, args...) {
		s += fmt.Sprintf("    - %q\n", a)
	}
	return s
}

func entry(t *testing.T, d *staticpod.Dir, name string) *staticpod.Entry {
	t.Helper()
	for _, e := range d.Entries {
		if e.File.Name() == name {
			return e
		}
	}
	t.Fatalf("no entry %s", name)
	return nil
}

func TestDirectoryAsTheKubeletSeesIt(t *testing.T) {
	d := read(t, map[string]string{
		manifests + "etcd.yaml":           pod("etcd", "--name=a"),
		manifests + "etcd.yaml.bak":       pod("etcd", "--name=b"),
		manifests + ".etcd.yaml.swp":      "binary\x00",
		manifests + "old/":                "",
		manifests + "old/etcd.yaml":       pod("etcd", "--name=c"),
		manifests + "00-no-extension":     pod("kube-vip"),
		manifests + "policy.yaml":         "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n",
		manifests + "tab.yaml":            "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: x\n",
		manifests + "empty.yaml":          "",
		manifests + "second.yaml":         pod("second") + "---\nthis: [is\nbroken\n",
		manifests + "list.yaml":           "apiVersion: v1\nkind: PodList\nitems: []\n",
		manifests + "kube-apiserver.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n  name: kube-apiserver\nspec:\n  containers: []\n",
	})
	var got []string
	for _, e := range d.Entries {
		s := e.File.Name() + ":"
		switch {
		case e.Ignored != "":
			s += e.Ignored
		case e.Pod != nil:
			s += "pod " + e.Pod.Name
		default:
			s += "broken"
		}
		got = append(got, s)
	}
	want := []string{
		".etcd.yaml.swp:hidden", "00-no-extension:pod kube-vip", "empty.yaml:broken", "etcd.yaml:pod etcd", "etcd.yaml.bak:pod etcd",
		"kube-apiserver.yaml:broken", "list.yaml:broken", "old:directory", "policy.yaml:broken", "second.yaml:pod second", "tab.yaml:broken",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The kubelet keeps one pod per name: the last file's.
	for _, p := range d.Pods() {
		if p.Name == "etcd" && p.File().Name() != "etcd.yaml.bak" {
			t.Errorf("etcd would run from %s", p.File().Name())
		}
	}
	if p := d.Component(staticpod.Etcd); p == nil || p.File().Name() != "etcd.yaml" {
		t.Error("the component's own file is not the canonical one")
	}
	if e := d.Broken(staticpod.APIServer); e == nil || e.File.Name() != "kube-apiserver.yaml" {
		t.Error("the broken kube-apiserver.yaml is not recognised")
	}
	if e := d.Broken(staticpod.Etcd); e != nil {
		t.Errorf("%s passes for etcd's broken manifest", e.File.Name())
	}
	if err := entry(t, d, "tab.yaml").Err; err == nil || !strings.Contains(err.Error(), "line 4") || !strings.Contains(err.Error(), "tab") {
		t.Errorf("the tab is not placed: %v", err)
	}
	if !entry(t, d, "second.yaml").MoreDoc {
		t.Error("the second document goes unmentioned")
	}
}

func TestDuplicateKeyTakesTheLast(t *testing.T) {
	d := read(t, map[string]string{manifests + "etcd.yaml": pod("etcd", "--name=a") + "  hostNetwork: true\n  hostNetwork: false\n"})
	e := entry(t, d, "etcd.yaml")
	if e.Pod == nil || e.Pod.Spec.HostNetwork {
		t.Fatal("the last of two equal keys does not count")
	}
	if len(e.Dups) != 1 || e.Dups[0].Pointer != "/spec/hostNetwork" {
		t.Errorf("duplicates: %+v", e.Dups)
	}
}

func TestJSONManifest(t *testing.T) {
	d := read(t, map[string]string{manifests + "etcd.json": "{\n\t\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"etcd\"},\n" +
		"\t\"spec\": {\"containers\": [{\"name\": \"etcd\", \"image\": \"x\",\n\t\t\"command\": [\"etcd\",\n\t\t\t\"--data-dir=/d\"]}]}\n}\n"})
	e := entry(t, d, "etcd.json")
	if e.Err != nil {
		t.Fatal(e.Err)
	}
	f, ok := e.Pod.Flag("data-dir")
	if !ok || f.Value != "/d" || f.Ref.Line != 6 {
		t.Errorf("flag %+v", f)
	}
	if e.Pod.Namespace != "default" {
		t.Errorf("namespace %q", e.Pod.Namespace)
	}
}

func TestFlags(t *testing.T) {
	d := read(t, map[string]string{manifests + "etcd.yaml": pod("etcd",
		"--data-dir=/a", "--data-dir=/b", "--name", "cp1", "-snapshot-count=5", "--force-new-cluster", "--advertise-client-urls=https://$(IP):2379",
		"--listen-client-urls=https://$(POD):2379", "--log=$$(IP) $(NOPE) $5", "--empty=", "-v", "--", "--not-a-flag") +
		"    env:\n    - name: IP\n      value: 10.0.0.1\n    - name: POD\n      valueFrom:\n        fieldRef:\n          fieldPath: status.podIP\n" +
		"    - name: ETCD_MAX_WALS\n      value: \"3\"\n    - name: ETCD_NAME\n      value: other\n"})
	p := d.Component(staticpod.Etcd)
	type flag struct {
		Value         string
		Bare, Dynamic bool
		Line          int
	}
	want := map[string]flag{
		"data-dir":              {"/b", false, false, 13},
		"name":                  {"cp1", false, false, 14},
		"snapshot-count":        {"5", false, false, 16},
		"force-new-cluster":     {"", true, false, 17},
		"advertise-client-urls": {"https://10.0.0.1:2379", false, false, 18},
		"listen-client-urls":    {"https://$(POD):2379", false, true, 19},
		"log":                   {"$(IP) $(NOPE) $5", false, false, 20},
		"empty":                 {"", false, false, 21},
		"max-wals":              {"3", false, false, 32},
	}
	got := map[string]flag{}
	for name := range want {
		if f, ok := p.Setting(name); ok {
			got[name] = flag{f.Value, f.Bare, f.Dynamic, f.Ref.Line}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, ok := p.Flag("not-a-flag"); ok {
		t.Error("what follows -- is taken for a flag")
	}
	if f, _ := p.Setting("max-wals"); f.Text() != "ETCD_MAX_WALS=3" {
		t.Errorf("text %q", f.Text())
	}
	if len(p.FlagAll("data-dir")) != 2 {
		t.Error("a flag given twice is one")
	}
	if f, _ := p.Flag("force-new-cluster"); !f.True() {
		t.Error("a bare flag is off")
	}
}

func TestResolve(t *testing.T) {
	d := read(t, map[string]string{manifests + "etcd.yaml": pod("etcd") + `    volumeMounts:
    - {name: data, mountPath: /var/lib/etcd}
    - {name: certs, mountPath: /var/lib/etcd/certs/}
    - {name: sub, mountPath: /sub, subPath: inner}
    - {name: gone, mountPath: /gone}
    - {name: tmp, mountPath: /tmp}
  volumes:
  - {name: data, hostPath: {path: /data/etcd/, type: DirectoryOrCreate}}
  - {name: certs, hostPath: {path: /pki}}
  - {name: sub, hostPath: {path: /outer}}
  - {name: tmp, emptyDir: {}}
`})
	p := d.Component(staticpod.Etcd)
	for in, want := range map[string]staticpod.Mount{
		"/var/lib/etcd":           {Kind: staticpod.Host, HostPath: "/data/etcd"},
		"/var/lib/etcd/member":    {Kind: staticpod.Host, HostPath: "/data/etcd/member"},
		"/var/lib/etcd/certs/a/b": {Kind: staticpod.Host, HostPath: "/pki/a/b"},
		"/var/lib/etcd-other":     {Kind: staticpod.None},
		"/sub/x":                  {Kind: staticpod.Host, HostPath: "/outer/inner/x"},
		"/gone/x":                 {Kind: staticpod.NoVolume},
		"/tmp/../tmp/x":           {Kind: staticpod.Empty},
		"/":                       {Kind: staticpod.None},
	} {
		m := p.Resolve(0, in)
		if m.Kind != want.Kind || m.HostPath != want.HostPath {
			t.Errorf("%s: kind %v at %q, want %v at %q", in, m.Kind, m.HostPath, want.Kind, want.HostPath)
		}
	}
}

func TestMainContainerByCommand(t *testing.T) {
	d := read(t, map[string]string{manifests + "x.yaml": `apiVersion: v1
kind: Pod
metadata: {name: server, namespace: kube-system, labels: {component: etcd}}
spec:
  containers:
  - {name: sidecar, image: a, command: [helper, --data-dir=/no]}
  - {name: main, image: "b:1.2.3@sha256:00", command: [/usr/local/bin/etcd, --data-dir=/yes]}
`})
	p := d.Component(staticpod.Etcd)
	if f, _ := p.Flag("data-dir"); f.Value != "/yes" {
		t.Errorf("flag of the wrong container: %+v", f)
	}
	if p.ImageTag() != "1.2.3" {
		t.Errorf("tag %q", p.ImageTag())
	}
}

// A directory elsewhere, named by the kubelet's configuration.
func TestStaticPodPath(t *testing.T) {
	d := read(t, map[string]string{
		"etc/kubernetes/manifests/etcd.yaml": pod("etcd"),
		"etc/kubelet.d/kube-apiserver.yaml":  pod("kube-apiserver"),
		"var/lib/kubelet/config.yaml":        "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nstaticPodPath: /etc/kubelet.d/\n",
	})
	if d.Path != "/etc/kubelet.d" || d.Component(staticpod.APIServer) == nil || d.Component(staticpod.Etcd) != nil {
		t.Errorf("read %s", d.Path)
	}
	if d.From.Line != 3 {
		t.Errorf("named at line %d", d.From.Line)
	}
}
