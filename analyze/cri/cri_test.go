package cri

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"coldplane/analyze"
	"coldplane/bundle"
)

func view(t *testing.T, files map[string]string, asOf time.Time) (*View, error) {
	t.Helper()
	dir := t.TempDir()
	for p, content := range files {
		p = filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, err := bundle.Open(t.Context(), []string{dir}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	e := analyze.New(t.Context(), set, analyze.Options{AsOf: asOf})
	return OnNode.Get(e.Ctx(set.Nodes[0]))
}

const ps = `{"containers":[
 {"id":"aaaaaaaaaaaa1","podSandboxId":"s1","metadata":{"name":"etcd","attempt":2},"image":{"image":"sha256:1"},"state":"CONTAINER_RUNNING","createdAt":"1796054029263160659","labels":{"io.kubernetes.pod.name":"etcd-cp1","io.kubernetes.pod.namespace":"kube-system"}},
 {"id":"aaaaaaaaaaaa0","metadata":{"name":"etcd","attempt":1},"state":"CONTAINER_EXITED","createdAt":"1796054000000000000"}]}`

func TestListAndInspect(t *testing.T) {
	v, err := view(t, map[string]string{
		"crictl/ps.json": ps,
		"crictl/inspect/etcd-1.json": `{"status":{"id":"aaaaaaaaaaaa0","metadata":{"name":"etcd","attempt":1},"state":"CONTAINER_EXITED","exitCode":137,"reason":"OOMKilled",
			"startedAt":"2026-11-30T15:53:20Z","finishedAt":"2026-11-30T15:53:40Z","image":{"image":"registry.k8s.io/etcd:3.6.5-0"}},
			"info":{"config":{"command":["etcd","--name=cp1"],"args":["--x"]}}}`,
		"crictl/info.json":   `{"status":{"conditions":[{"type":"NetworkReady","status":false,"reason":"NetworkPluginNotReady"}]},"config":{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":{"SystemdCgroup":true}}}}}}`,
		"crictl/images.json": `{"images":[{"id":"sha256:1","repoTags":["registry.k8s.io/etcd:3.6.5-0"],"size":"58133225"}]}`,
	}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if !v.Listed || len(v.Of("etcd")) != 2 || v.Newest("etcd").Attempt != 2 || v.Running("etcd") == nil {
		t.Fatalf("%+v", v)
	}
	old := v.Of("etcd")[1]
	if old.ExitCode == nil || *old.ExitCode != 137 || old.Reason != "OOMKilled" || len(old.Command) != 3 || !old.Inspected || old.Image != "registry.k8s.io/etcd:3.6.5-0" {
		t.Errorf("%+v", old)
	}
	if v.SystemdCgroup == nil || !*v.SystemdCgroup || v.Conditions["NetworkReady"].Status || v.Conditions["NetworkReady"].Reason == "" {
		t.Errorf("info %+v", v)
	}
	if has, known := v.HasImage("registry.k8s.io/etcd:3.6.5-0"); !has || !known {
		t.Error("image")
	}
}

func TestTable(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v, err := view(t, map[string]string{"crictl/ps.txt": "CONTAINER           IMAGE               CREATED             STATE               NAME                ATTEMPT             POD ID\n" +
		"0dc22b980250c       0048118155842       43 seconds ago      Running             etcd                2                   ec877edb48950\n" +
		"0be9dfd049fcf       0048118155842       4 minutes ago       Exited              etcd                1                   ec877edb48950\n"}, at)
	if err != nil {
		t.Fatal(err)
	}
	c := v.Newest("etcd")
	if !v.Listed || c.Attempt != 2 || c.State != Running || !c.CreatedAt.Equal(at.Add(-43*time.Second)) || c.Ref.Line != 2 || v.Of("etcd")[1].State != Exited {
		t.Errorf("%+v", c)
	}
}

func TestLogDirectoriesAlone(t *testing.T) {
	v, err := view(t, map[string]string{
		"var/log/pods/kube-system_etcd-cp1_abc/etcd/162.log": "x\n",
		"var/log/pods/kube-system_etcd-cp1_abc/etcd/163.log": "x\n",
	}, time.Time{})
	if err != nil || v.Listed || len(v.Containers) != 1 || v.Containers[0].Attempt != 163 || v.Containers[0].State != Unknown {
		t.Errorf("%+v %v", v, err)
	}
}

func TestNothingAndDamage(t *testing.T) {
	if _, err := view(t, map[string]string{"etc/kubernetes/x": ""}, time.Time{}); bundle.ReasonOf(err) != bundle.NotCollected {
		t.Errorf("nothing: %v", err)
	}
	if _, err := view(t, map[string]string{"crictl/ps.json": `{"containers":[`}, time.Time{}); bundle.ReasonOf(err) != bundle.Damaged {
		t.Errorf("damage: %v", err)
	}
}

// FuzzTable: any table text is read without panic.
func FuzzTable(f *testing.F) {
	f.Add("CONTAINER IMAGE CREATED STATE NAME ATTEMPT POD ID\n", "x y 3 minutes ago Running etcd 1 z")
	f.Fuzz(func(t *testing.T, head, row string) {
		for _, c := range layout(head) {
			if c[0] < 0 || c[1] < c[0] {
				t.Fatalf("column %v", c)
			}
		}
		ago(row)
	})
}
