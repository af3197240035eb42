package logs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
)

// node opens files given by path as one node's evidence.
func node(t *testing.T, files map[string]string, asOf string) *Node {
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
	o := analyze.Options{}
	if asOf != "" {
		if o.AsOf, err = time.Parse(time.RFC3339, asOf); err != nil {
			t.Fatal(err)
		}
	}
	e := analyze.New(t.Context(), set, o)
	n, err := OnNode.Get(e.Ctx(set.Nodes[0]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const slow = `{"level":"warn","ts":"2026-01-02T03:04:06.1Z","caller":"wal/wal.go:806","msg":"slow fdatasync","took":"3s","expected-duration":"1s"}`

func TestSameLinesCountOnce(t *testing.T) {
	n := node(t, map[string]string{
		"var/log/pods/kube-system_etcd-cp1_abc/etcd/0.log": "2026-01-02T03:04:06.2Z stderr F " + slow + "\n",
		"crictl/logs/etcd-0-0123456789abc.log":             slow + "\n",
		"crictl/logs/etcd.log":                             slow + "\n",
		"var/log/pods/default_web_x/web/0.log":             "2026-01-02T03:04:06.2Z stderr F " + slow + "\n",
	}, "")
	if c := n.Count(0, "E05"); c != 1 {
		t.Errorf("E05 counted %d times, want once", c)
	}
	if len(n.Streams) != 3 {
		t.Errorf("%d streams: the tenant's container is none", len(n.Streams))
	}
	at, ok := n.First(signature.Etcd, "E05")
	if !ok || at.Ref().Line != 1 || at.Value("took") != "3s" || at.Excerpt() == "" {
		t.Errorf("first: %+v %v", at, ok)
	}
}

func TestOtherAttemptIsAnotherStream(t *testing.T) {
	n := node(t, map[string]string{
		"var/log/pods/kube-system_etcd-cp1_abc/etcd/1.log": "2026-01-02T04:00:00Z stderr F x\n",
		"crictl/logs/etcd-0-0123456789abc.log":             slow + "\n",
	}, "")
	if c := n.Count(0, "E05"); c != 1 {
		t.Errorf("E05 counted %d times", c)
	}
}

// TestZoneEast: a kubelet that seems to write in the future writes local time.
func TestZoneEast(t *testing.T) {
	n := node(t, map[string]string{
		"journal/kubelet.log": "I0102 11:59:00.000000 1 a.go:1] \"Node became not ready\" node=\"cp1\"\nI0102 12:00:00.000000 1 a.go:1] x\n",
	}, "2026-01-02T03:00:30Z")
	at, ok := n.First(signature.Kubelet, "K28")
	if !ok || !at.Time.Equal(time.Date(2026, 1, 2, 2, 59, 0, 0, time.UTC)) {
		t.Errorf("at %v", at.Time)
	}
}

func TestFileNames(t *testing.T) {
	s, ok := podStream("/var/log/pods/kube-system_etcd-cp1_abc/etcd/12.log.20260102-030405.gz")
	if !ok || s.Attempt != 12 || !s.Rotated || s.Pod != "etcd-cp1" || s.PodUID != "abc" {
		t.Errorf("%+v", s)
	}
	if s := crictlStream("kube-controller-manager-3-ccc731216110c.log"); s.Component != "kube-controller-manager" || s.Attempt != 3 || s.Program != signature.ControllerManager {
		t.Errorf("%+v", s)
	}
	for name, want := range map[string]signature.Emitter{"kubelet.log": signature.Kubelet, "journal-kubelet.log": signature.Kubelet,
		"kernel.json": signature.Kernel, "journal.log": 0, "units.export": 0, "syslog.1": 0, "kern.log": signature.Kernel} {
		if s := unitStream(name); s.Program != want {
			t.Errorf("%s: %v", name, s.Program)
		}
	}
}

func TestBinaryJournalNamesTheCommand(t *testing.T) {
	n := node(t, map[string]string{
		"var/log/journal/0123/system.journal": "LPKSHHRH\x00",
		"crictl/logs/etcd.log":                slow + "\n",
	}, "")
	if c := n.JournalCommand(); c != "journalctl -D /var/log/journal/0123 -u kubelet -u containerd -k -o export > journal/units.export" {
		t.Errorf("%q", c)
	}
}
