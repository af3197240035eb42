//go:build linux

package collect

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"coldplane/bundle/hostfacts"
)

// The ladder of an API that answers TCP and TLS and nothing else well: each rung
// is tried, in the shape the analyzer reads.
func TestLadder(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/livez" {
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("[-]etcd failed: password=CaNaRy0123456789abcdefX\nreadyz check failed\n"))
	}))
	defer srv.Close()
	dead := freeURL(t, "https")
	n := newTree(t)
	n.put("etc/kubernetes/admin.conf", "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: "+srv.URL+"\n")
	n.put("etc/kubernetes/manifests/kube-apiserver.yaml", "spec:\n  containers:\n  - command:\n    - kube-apiserver\n    - --advertise-address=127.0.0.1\n    - --secure-port="+dead.Port()+"\n    - --etcd-servers="+srv.URL+"\n")
	root, err := openRoot(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.close()
	r := &run{o: options(n.dir, t).withDefaults(), root: root, scan: newScan(), paths: findWiring(root)}
	k := &sink{run: r, src: &source{name: "probe"}, spool: &spoolFile{dir: t.TempDir(), room: r.o.Room}, absent: map[string]bool{}, dirs: map[string]bool{}, capsHit: map[string]bool{}}
	if err := r.probe(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if len(k.staged) != 1 || "/"+k.staged[0].entry.Path != hostfacts.LadderPath {
		t.Fatalf("%+v", k.staged)
	}
	if strings.Contains(string(k.staged[0].mem), "CaNaRy") {
		t.Error("a secret in an answer is kept")
	}
	var ts []hostfacts.Target
	if err := json.Unmarshal(k.staged[0].mem, &ts); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, x := range ts {
		var s []string
		for _, g := range x.Rungs {
			if g.At.IsZero() || g.At.After(time.Now().Add(time.Minute)) {
				t.Errorf("%s %s: at %s", x.Name, g.Step, g.At)
			}
			word := g.Step
			if g.OK {
				word += " ok"
			}
			if g.Cert != nil {
				word += " shows a certificate"
			}
			s = append(s, word)
		}
		got[x.Name] = strings.Join(s, ", ")
	}
	if want := "tcp ok, tls ok shows a certificate, livez ok, readyz"; got["endpoint"] != want {
		t.Errorf("endpoint: %s, want %s", got["endpoint"], want)
	}
	if got["local"] != "tcp" {
		t.Errorf("a port nobody listens on: %s", got["local"])
	}
	if len(ts) != 2 { // the member has the endpoint's address here: tried once
		t.Errorf("%d targets", len(ts))
	}
}
