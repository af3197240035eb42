package pkitest_test

import (
	"bytes"
	"testing"

	"coldplane/analyze/analyzetest"
	"coldplane/analyze/pki/pkitest"
)

func make2(t *testing.T, base, spec string) map[string][]byte {
	t.Helper()
	files, err := analyzetest.Base(base)
	if err != nil {
		t.Fatal(err)
	}
	files["x!pki"] = []byte(spec)
	if err := pkitest.Make(files); err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSameEveryTime(t *testing.T) {
	const spec = "apiserver san+=10.0.0.99\ncp2:etcd/ca ca=other\nroot/.kube/config to=2026-05-01\nkubelet.crt from=2025-01-01\n"
	a, b := make2(t, "ha", spec), make2(t, "ha", spec)
	if len(a) != len(b) || len(a) < 60 {
		t.Fatalf("%d and %d files", len(a), len(b))
	}
	for p := range a {
		if !bytes.Equal(a[p], b[p]) {
			t.Errorf("%s differs", p)
		}
		if bytes.Contains(a[p], []byte("placeholder")) {
			t.Errorf("%s is still a placeholder", p)
		}
	}
	if !bytes.Equal(a["nodes/cp1/etc/kubernetes/pki/ca.crt"], a["nodes/cp2/etc/kubernetes/pki/ca.crt"]) {
		t.Error("the cluster CA differs")
	}
	if bytes.Equal(a["nodes/cp1/etc/kubernetes/pki/etcd/ca.crt"], a["nodes/cp2/etc/kubernetes/pki/etcd/ca.crt"]) {
		t.Error("cp2's etcd CA is not another one")
	}
}

func TestSpecErrors(t *testing.T) {
	for _, spec := range []string{"at noon", "life long", "apiserver expired", "apiserver alg=enigma", "apiserver to=someday"} {
		files, _ := analyzetest.Base("single")
		files["x!pki"] = []byte(spec)
		if err := pkitest.Make(files); err == nil {
			t.Errorf("%q accepted", spec)
		}
	}
}
