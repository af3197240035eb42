package objects

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/etcdstore/storetest"
	"coldplane/bundle"
)

func set(t *testing.T, spec string) *Set {
	t.Helper()
	p := t.TempDir() + "/snapshot.db"
	if err := storetest.Write(p, spec); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), []string{p}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := Cluster.Get(analyze.New(t.Context(), b, analyze.Options{}).Ctx(nil))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const sample = `
object
apiVersion: v1
kind: Node
metadata: {name: cp1, uid: u-1, creationTimestamp: "2026-01-01T00:00:00Z"}
end
object
apiVersion: v1
kind: ConfigMap
metadata: {name: kubeadm-config, namespace: kube-system, creationTimestamp: "2026-01-01T00:01:00Z"}
data: {ClusterConfiguration: "kind: ClusterConfiguration"}
end
object
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: shop, creationTimestamp: "2026-01-01T00:02:00Z"}
type: helm.sh/release.v1
data: {password: c2VjcmV0}
end
object
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
status: {phase: Pending}
end
object
apiVersion: v1
kind: Pod
metadata: {name: q, namespace: shop}
status: {phase: Running}
end
object
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com, names: {plural: widgets, kind: Widget}, versions: [{name: v1, served: true, storage: true}]}
status: {storedVersions: [v1alpha1, v1]}
end
object
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: cp1, namespace: kube-node-lease}
spec: {holderIdentity: cp1, renewTime: "2026-01-01T01:00:00.000000Z"}
end
object
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: cp1, namespace: kube-node-lease}
spec: {holderIdentity: cp1, renewTime: "2026-01-01T01:00:10.000000Z"}
end
put /registry/secrets/shop/enc enc=aescbc:key1 size=100
put /registry/minions/broken value=k8s size=3
`

func TestTyped(t *testing.T) {
	s := set(t, sample)
	if n := s.Nodes(); len(n.Items) != 1 || n.Items[0].Value.UID != "u-1" || n.Failed != 1 || n.Total != 2 || n.Complete() {
		t.Errorf("nodes %+v", n)
	}
	if cm, err := s.ConfigMap("kube-system", "kubeadm-config"); err != nil || !strings.Contains(cm.Value.Data["ClusterConfiguration"], "kind") || cm.Ref.Key != "/registry/configmaps/kube-system/kubeadm-config" {
		t.Errorf("config map %+v, %v", cm, err)
	}
	if _, err := s.ConfigMap("kube-system", "no"); !bundle.IsAbsent(err) {
		t.Errorf("missing config map: %v", err)
	}
	if p := s.Pods(); len(p.Items) != 1 || p.Items[0].Value.Name != "p" {
		t.Errorf("pods %+v", p)
	}
	if c := s.CRDs(); len(c.Items) != 1 || len(c.Items[0].Value.Status.StoredVersions) != 2 {
		t.Errorf("CRDs %+v", c)
	}
	sec := s.Secrets()
	if len(sec.Items) != 1 || sec.Items[0].Value.SecretType != "helm.sh/release.v1" || sec.Encrypted != 1 {
		t.Errorf("secrets %+v", sec)
	}
}

func TestClock(t *testing.T) {
	s := set(t, sample)
	last, ok := s.LastWrite()
	if want := time.Date(2026, 1, 1, 1, 0, 10, 0, time.UTC); !ok || !last.Time.Equal(want) {
		t.Errorf("last write %v, want %v", last, want)
	}
	if at, ok := s.Clock().At(3); !ok || at.Before(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("revision 3 at %v", at)
	}
	// one writer an hour ahead does not move the clock
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var raw []Point
	for i := range 50 {
		p := Point{int64(10 + i), base.Add(time.Duration(i) * time.Second), "a"}
		if i%7 == 3 {
			p.Time = p.Time.Add(time.Hour)
		}
		raw = append(raw, p)
	}
	c := newClock(raw)
	if d := c.last.Time.Sub(base); d > time.Minute {
		t.Errorf("last %v after the beginning", d)
	}
	if at, _ := c.At(40); at.Sub(base) > time.Minute {
		t.Errorf("revision 40 at %v", at.Sub(base))
	}
}

func TestTooDeep(t *testing.T) {
	b := []byte{0x08, 1}
	for range 50 {
		b = protowire.AppendBytes([]byte{0x0a}, b)
	}
	if tooDeep(b, maxDepth) {
		t.Error("50 levels were refused")
	}
	for range 50 {
		b = protowire.AppendBytes([]byte{0x0a}, b)
	}
	if !tooDeep(b, maxDepth) {
		t.Error("100 levels were accepted")
	}
	if !tooDeep(bytes.Repeat([]byte{0x0b}, 1000), maxDepth) {
		t.Error("groups were accepted")
	}
}

// FuzzDecode: no stored value makes the decoders panic, and Secret data is never
// part of a head.
func FuzzDecode(f *testing.F) {
	data, err := storetest.Build(sample)
	if err != nil {
		f.Fatal(err)
	}
	s, err := etcdstore.Read(f.Context(), bytes.NewReader(data), int64(len(data)), etcdstore.Options{})
	if err != nil {
		f.Fatal(err)
	}
	list, _ := s.Select(100, func([]byte) bool { return true })
	for _, v := range list {
		if r, err := s.Load(v, maxObject); err == nil {
			f.Add(r.Value)
		}
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		_, _ = ReadHead(v)
		_, _ = typed[coreNode](v)
		_, _ = typed[corePod](v)
		_, _ = typed[coreEvent](v)
		_, _ = jsonOf[CRD](v)
	})
}
