package etcdservice

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"coldplane/analyze"
	"coldplane/bundle"
)

func TestUnitAndEnvironment(t *testing.T) {
	dir := t.TempDir()
	for p, s := range map[string]string{
		"etc/kubernetes/admin.conf": "x",
		"etc/etcd.env":              "# ETCD_FORCE_NEW_CLUSTER=true\nETCD_DATA_DIR=/data/etcd\nexport ETCD_NAME=\"etcd1\"\nETCD_CLIENT_CERT_AUTH=true\nOTHER=1\n",
		"etc/systemd/system/etcd.service": "[Service]\nEnvironment=\"ETCD_MAX_WALS=3\" ETCD_MAX_SNAPSHOTS=2\nExecStart=/usr/local/bin/etcd --name etcd2 \\\n" +
			"  --listen-client-urls=https://${IP}:2379 \\\n  --force-new-cluster\nRestart=always\n",
	} {
		full := filepath.Join(dir, p)
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
	defer set.Close()
	s, err := OnNode.Get(analyze.New(t.Context(), set, analyze.Options{}).Ctx(set.Nodes[0]))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"name", "data-dir", "client-cert-auth", "max-wals", "max-snapshots", "force-new-cluster", "listen-client-urls", "other"} {
		if f, ok := s.Setting(name); ok {
			got[name] = f.Text()
			if f.Ref.Line == 0 {
				t.Errorf("%s has no line", name)
			}
		}
	}
	want := map[string]string{
		"name": "--name=etcd2", "data-dir": "ETCD_DATA_DIR=/data/etcd", "client-cert-auth": "ETCD_CLIENT_CERT_AUTH=true", "max-wals": "ETCD_MAX_WALS=3",
		"max-snapshots": "ETCD_MAX_SNAPSHOTS=2", "force-new-cluster": "--force-new-cluster", "listen-client-urls": "--listen-client-urls=https://${IP}:2379",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if f, _ := s.Setting("listen-client-urls"); !f.Dynamic {
		t.Error("a variable passes for a value")
	}
}
