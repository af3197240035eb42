package logs

import (
	"fmt"
	"strings"
	"testing"
)

func zap(at, msg string, more ...string) string {
	s := fmt.Sprintf(`{"level":"warn","ts":"2026-01-02T%sZ","caller":"a/b.go:1","msg":%q`, at, msg)
	for i := 0; i+1 < len(more); i += 2 {
		s += fmt.Sprintf(",%q:%q", more[i], more[i+1])
	}
	return s + "}\n"
}

func TestNoQuorum(t *testing.T) {
	var lost strings.Builder
	lost.WriteString(zap("03:00:00", "raft.node: a1 lost leader b2 at term 3"))
	for i := range 8 {
		lost.WriteString(zap(fmt.Sprintf("03:00:%02d", 2+i*3), "a1 is starting a new election at term 3"))
	}
	won := zap("03:01:00", "raft.node: a1 elected leader b2 at term 4")
	n := node(t, map[string]string{"crictl/logs/etcd.log": lost.String() + won}, "")
	if p := n.NoQuorum(); len(p) != 1 || p[0].Open || p[0].To.Sub(p[0].From).Seconds() != 60 || p[0].Begin.Line != 1 {
		t.Errorf("lost and found: %+v", p)
	}
	n = node(t, map[string]string{"crictl/logs/etcd.log": lost.String()}, "")
	if p := n.NoQuorum(); len(p) != 1 || !p[0].Open {
		t.Errorf("lost: %+v", p)
	}
	n = node(t, map[string]string{"crictl/logs/etcd.log": zap("03:00:00", "raft.node: a1 lost leader b2 at term 3") +
		zap("03:00:01", "a1 is starting a new election at term 3") + zap("03:00:02", "a1 became leader at term 4")}, "")
	if p := n.NoQuorum(); len(p) != 0 {
		t.Errorf("an election is no loss of quorum: %+v", p)
	}
}

func TestQuotaIncident(t *testing.T) {
	n := node(t, map[string]string{"crictl/logs/etcd.log": zap("03:00:00", "message exceeded backend quota; raising alarm", "error", "x") +
		zap("03:00:05", "failed to apply request", "error", "etcdserver: mvcc: database space exceeded")}, "")
	if p, ok := n.QuotaIncident(); !ok || p.From.Second() != 0 || p.To.Second() != 5 {
		t.Errorf("%+v %v", p, ok)
	}
	n = node(t, map[string]string{"crictl/logs/etcd.log": zap("03:00:00", "write failed", "error", "no space left on device")}, "")
	if _, ok := n.QuotaIncident(); ok {
		t.Error("a full disk is no quota")
	}
}

func TestUpgrades(t *testing.T) {
	n := node(t, map[string]string{"crictl/logs/etcd.log": zap("03:00:00", "starting an etcd server", "etcd-version", "3.5.24") +
		zap("03:10:00", "starting an etcd server", "etcd-version", "3.5.24") + zap("03:20:00", "starting an etcd server", "etcd-version", "3.6.5")}, "")
	if u := n.Upgrades(); len(u) != 1 || u[0].From != "3.5.24" || u[0].To != "3.6.5" || u[0].At.Line != 3 {
		t.Errorf("%+v", u)
	}
}

func TestStoreOutage(t *testing.T) {
	line := func(at, text string) string { return "W0102 " + at + ".000000       1 a.go:1] " + text + "\n" }
	n := node(t, map[string]string{
		"crictl/logs/kube-apiserver.log": line("03:00:00", `"watch chan error" err="etcdserver: no leader"`) + line("03:00:10", "unexpected ListAndWatch error: x") + line("03:20:00", `"watch chan error" err="compacted"`),
		"crictl/logs/kube-scheduler.log": line("03:00:20", "error retrieving resource lock kube-system/kube-scheduler: timeout"),
	}, "2026-01-02T04:00:00Z")
	if p := n.StoreOutage(); len(p) != 1 || p[0].Open || p[0].To.Minute() != 0 {
		t.Errorf("%+v", p)
	}
}
