package objectdiff

import (
	"testing"

	"coldplane/analyze"
	"coldplane/analyze/etcdstore/storetest"
	"coldplane/analyze/objects"
	"coldplane/bundle"
)

func set(t *testing.T, spec string) *objects.Set {
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
	s, err := objects.Cluster.Get(analyze.New(t.Context(), b, analyze.Options{}).Ctx(nil))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCompare(t *testing.T) {
	const cm = "object\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %N, namespace: ns, uid: %U}\ndata: {v: \"%V\"}\nend\n"
	mk := func(n, u, v string) string {
		s := cm
		for _, r := range [][2]string{{"%N", n}, {"%U", u}, {"%V", v}} {
			s = replace(s, r[0], r[1])
		}
		return s
	}
	a := set(t, mk("same", "u1", "1")+mk("lost", "u2", "1")+mk("changed", "u3", "1")+mk("again", "u4", "1"))
	b := set(t, mk("same", "u1", "1")+mk("new", "u9", "1")+mk("changed", "u3", "22")+mk("again", "u5", "11"))
	got, err := Compare(t.Context(), a, b)
	if err != nil || len(got) != 1 {
		t.Fatalf("%v %v", got, err)
	}
	x := got[0]
	if x.OnlyA != 1 || x.OnlyB != 1 || x.Changed != 1 || x.Recreated != 1 || x.Unchanged != 1 || x.SamplesA[0] != "/registry/configmaps/ns/lost" {
		t.Errorf("%+v", x)
	}
}

func replace(s, from, to string) string {
	for i := 0; i+len(from) <= len(s); i++ {
		if s[i:i+len(from)] == from {
			return s[:i] + to + s[i+len(from):]
		}
	}
	return s
}
