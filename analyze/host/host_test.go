package host

import (
	"os"
	"path/filepath"
	"testing"

	"coldplane/analyze"
	"coldplane/bundle"
)

func ctx(t *testing.T, files map[string]string) *analyze.Ctx {
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
	return analyze.New(t.Context(), set, analyze.Options{}).Ctx(set.Nodes[0])
}

func TestCollectorFiles(t *testing.T) {
	c := ctx(t, map[string]string{
		"host/mounts.json": `[{"device":"/dev/sda1","mountPoint":"/","fsType":"ext4","size":100,"free":5,"available":4,"inodesFree":0},
			{"device":"/dev/sdb1","mountPoint":"/var/lib/etcd","fsType":"xfs","size":10,"free":9,"available":9,"inodesFree":0}]`,
		"host/node.json":  `{"hostname":"cp1","swaps":[],"cpus":2,"futureField":1}`,
		"host/units.json": `[{"name":`,
	})
	m, err := Mounts.Get(c)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/var/lib/etcd/member": "/var/lib/etcd", "/var/lib/etcd-old": "/", "/": "/"} {
		if got, ref, ok := Covering(m, path); !ok || got.MountPoint != want || ref.Path != "host/mounts.json" {
			t.Errorf("%s lies on %q (%v)", path, got.MountPoint, ref)
		}
	}
	if i, err := Machine.Get(c); err != nil || i.Hostname != "cp1" || i.Swaps == nil {
		t.Errorf("machine %+v %v", i, err)
	}
	if _, err := Units.Get(c); bundle.ReasonOf(err) != bundle.Damaged {
		t.Errorf("units: %v", err)
	}
	if _, err := Sockets.Get(c); bundle.ReasonOf(err) != bundle.NotCollected {
		t.Errorf("sockets: %v", err)
	}
}

func TestSavedOutput(t *testing.T) {
	c := ctx(t, map[string]string{
		"listing/df-h.txt": "Filesystem      Size  Used Avail Use% Mounted on\n/dev/sda1        40G   39G  512M  99% /\ntmpfs            2.0G     0  2.0G   0% /run\n",
		"listing/df-i.txt": "Filesystem      Inodes  IUsed   IFree IUse% Mounted on\n/dev/sda1      2621440 2621400      40  100% /\n",
		"listing/ss-ltnp.txt": "State  Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n" +
			"LISTEN 0      4096   127.0.0.1:2379 0.0.0.0:* users:((\"etcd\",pid=812,fd=7))\nLISTEN 0 4096 *:6443 *:* users:((\"kube-apiserver\",pid=9,fd=3))\n",
		"listing/systemctl-kubelet.txt": "● kubelet.service - kubelet\n     Loaded: loaded (/lib/systemd/system/kubelet.service; enabled)\n     Active: activating (auto-restart) (Result: exit-code) since Mon\n",
		"listing/timedatectl.txt":       "               Local time: Mon 2026-01-02 12:00:00 KST\n                Time zone: Asia/Seoul (KST, +0900)\nSystem clock synchronized: no\n",
		"listing/ip-addr.txt":           "1: lo: <LOOPBACK,UP> mtu 65536\n    inet 127.0.0.1/8 scope host lo\n2: eth0: <BROADCAST,UP> mtu 1500\n    inet 10.0.0.11/24 brd 10.0.0.255 scope global eth0\n",
	})
	m, err := Mounts.Get(c)
	if err != nil || m.Items[0].Size != 40<<30 || m.Items[0].Available != 512<<20 || m.Items[0].Inodes != 2621440 || m.Items[0].InodesFree != 40 || m.Refs[0].Line != 2 {
		t.Errorf("mounts %+v %v", m, err)
	}
	s, err := Sockets.Get(c)
	if err != nil || len(s.Items) != 2 || s.Items[0].Comm != "etcd" || s.Items[0].Port != 2379 || s.Items[1].Address != "::" {
		t.Errorf("sockets %+v %v", s, err)
	}
	u, err := Units.Get(c)
	if err != nil || u.Items[0].ActiveState != "activating" || u.Items[0].SubState != "auto-restart" || u.Items[0].Result != "exit-code" {
		t.Errorf("units %+v %v", u, err)
	}
	clk, err := Clock.Get(c)
	if err != nil || clk.Synchronized == nil || *clk.Synchronized || clk.UTCOffset == nil || *clk.UTCOffset != 9*3600 {
		t.Errorf("clock %+v %v", clk, err)
	}
	i, err := Interfaces.Get(c)
	if err != nil || len(i.Items) != 2 || len(i.Items[1].Addresses) != 1 || i.Items[1].Addresses[0] != "10.0.0.11/24" {
		t.Errorf("interfaces %+v %v", i, err)
	}
}

func TestListing(t *testing.T) {
	c := ctx(t, map[string]string{"listing/var-lib-etcd-member-snap.txt": "total 983G\n-rw------- 1 root root 145M Aug  4 22:11 tmp158215125\n-rw------- 1 root root 799M Aug  4 22:10 db\n"})
	ls, err := Listings.Get(c)
	if err != nil || len(ls) != 1 || ls[0].Dir != "/var/lib/etcd/member/snap" || ls[0].Total != 983<<30 || len(ls[0].Entries) != 2 || ls[0].Entries[0].Name != "tmp158215125" || ls[0].Entries[1].Size != 799<<20 {
		t.Errorf("%+v %v", ls, err)
	}
}
