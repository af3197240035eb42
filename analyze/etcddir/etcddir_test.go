package etcddir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"coldplane/analyze"
	"coldplane/analyze/etcddir"
	"coldplane/bundle"
)

// dirs lays files out as a node; "a -> b" in a name is a link, a trailing
// slash a directory.
func dirs(t *testing.T, files map[string]string) (etcddir.Dirs, error) {
	t.Helper()
	dir := t.TempDir()
	for p, s := range files {
		name, target, link := strings.Cut(p, " -> ")
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case link:
			err = os.Symlink(target, full)
		case strings.HasSuffix(p, "/"):
			err = os.MkdirAll(full, 0o755)
		default:
			err = os.WriteFile(full, []byte(s), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set, err := bundle.Open(t.Context(), []string{dir}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return etcddir.OnNode.Get(analyze.New(t.Context(), set, analyze.Options{}).Ctx(set.Nodes[0]))
}

func manifest(flag, mount, host string) string {
	return `apiVersion: v1
kind: Pod
metadata: {name: etcd, namespace: kube-system}
spec:
  containers:
  - name: etcd
    image: etcd
    command: [etcd, "--data-dir=` + flag + `"]
    volumeMounts: [{name: d, mountPath: ` + mount + `}]
  volumes: [{name: d, hostPath: {path: ` + host + `}}]
`
}

func paths(ds etcddir.Dirs) []string {
	var out []string
	for _, d := range ds {
		s := d.Path
		if d.InUse {
			s += " used"
		}
		if d.Known {
			s += " known"
		}
		if d.Member() {
			s += " member"
		}
		out = append(out, s)
	}
	return out
}

const wal = "0000000000000000-0000000000000000.wal"

func TestUsedKnownAndFound(t *testing.T) {
	ds, err := dirs(t, map[string]string{
		"etc/kubernetes/manifests/etcd.yaml": manifest("/var/lib/etcd", "/var/lib/etcd", "/data/etcd"),
		"kubeadm-config.yaml":                "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n",
		"data/etcd/member/snap/db":           "12345", "data/etcd/member/wal/" + wal: "123",
		"var/lib/etcd-backup/member/snap/db": "1",
		"opt/etcd/restored/member/snap/db":   "1",
		"var/lib/other/file":                 "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/data/etcd used member", "/var/lib/etcd known", "/var/lib/etcd-backup", "/opt/etcd/restored"}
	if diff := cmp.Diff(want, paths(ds)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	used := ds.InUse()
	if used.Bytes() != 8 || used.Segments() != 1 || used.DB == nil || used.Newest().IsZero() {
		t.Errorf("%+v", used)
	}
	if bundle.ReasonOf(ds.At("/var/lib/etcd").Err) == "" {
		t.Error("a directory that is not there can be listed")
	}
}

// A link and what it leads to are one directory.
func TestLinkIsTheSame(t *testing.T) {
	ds, err := dirs(t, map[string]string{
		"etc/kubernetes/manifests/etcd.yaml": manifest("/var/lib/etcd", "/var/lib/etcd", "/var/lib/etcd"),
		"data/etcd/member/snap/db":           "1", "data/etcd/member/wal/" + wal: "1",
		"var/lib/etcd -> ../../data/etcd": "",
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/var/lib/etcd used member"}, paths(ds)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if ds[0].Resolved != "/data/etcd" {
		t.Errorf("leads to %s", ds[0].Resolved)
	}
}

func TestLogElsewhereOrLeftOut(t *testing.T) {
	m := strings.Replace(manifest("/d", "/d", "/data/etcd"), `"--data-dir=/d"`, `"--data-dir=/d", --wal-dir=/d/fast`, 1)
	ds, err := dirs(t, map[string]string{"etc/kubernetes/manifests/etcd.yaml": m, "data/etcd/member/snap/db": "1", "data/etcd/fast/" + wal: "1"})
	if err != nil || ds.InUse().WALDir != "/data/etcd/fast" || !ds.InUse().Member() {
		t.Errorf("%+v, %v", ds.InUse(), err)
	}
	ds, err = dirs(t, map[string]string{"etc/kubernetes/manifests/etcd.yaml": manifest("/d", "/d", "/data/etcd"), "data/etcd/member/snap/db": "1"})
	if err != nil || ds.InUse().Member() || bundle.ReasonOf(ds.InUse().WALErr) != bundle.NotCollected {
		t.Errorf("a log that was left out: %+v, %v", ds.InUse().WALErr, err)
	}
}

func TestEmptyDirectory(t *testing.T) {
	ds, err := dirs(t, map[string]string{"etc/kubernetes/manifests/etcd.yaml": manifest("/d", "/d", "/data/etcd"), "data/etcd/": ""})
	if err != nil || ds.InUse().Err != nil || len(ds.InUse().Top) != 0 || ds.InUse().DB != nil {
		t.Errorf("%+v, %v", ds.InUse(), err)
	}
}

func TestNotOnTheHost(t *testing.T) {
	_, err := dirs(t, map[string]string{"etc/kubernetes/manifests/etcd.yaml": manifest("/elsewhere", "/d", "/data/etcd")})
	if bundle.ReasonOf(err) != bundle.NotCollected {
		t.Errorf("error %v", err)
	}
}
