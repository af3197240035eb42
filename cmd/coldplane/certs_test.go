package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coldplane/analyze/analyzetest"
	"coldplane/analyze/etcdstore/storetest"
	"coldplane/analyze/pki/pkitest"
	"coldplane/report"
)

// certTree writes a generated cluster and returns its directory.
func certTree(t *testing.T, spec string) string {
	t.Helper()
	files, err := analyzetest.Base("ha")
	if err != nil {
		t.Fatal(err)
	}
	files["x!pki"] = []byte(spec)
	if err := pkitest.Make(files); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for p, b := range files {
		p = filepath.Join(dir, p)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func certsRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := &env{in: strings.NewReader(""), out: &out, err: &errs, now: time.Now, getenv: func(string) string { return "" }}
	code = run(t.Context(), e, append([]string{"certs"}, args...))
	return code, out.String(), errs.String()
}

func TestCerts(t *testing.T) {
	dir := certTree(t, "cp2:apiserver to=2026-05-01\ncp3:etcd/peer beside=stranger\nroot/.kube/config to=2026-06-20\n")
	code, out, errs := certsRun(t, dir, "--as-of", "2026-06-01", "-o", "json")
	if code != exitFindings || errs != "" {
		t.Fatalf("exit %d, %s", code, errs)
	}
	var tab struct {
		Kind         string
		Certificates []report.Certificate
		Findings     []report.Finding
	}
	if err := json.Unmarshal([]byte(out), &tab); err != nil {
		t.Fatal(err)
	}
	row := func(node, origin string) report.Certificate {
		t.Helper()
		for _, c := range tab.Certificates {
			if c.Node == node && c.Origin == origin && !strings.Contains(c.Pointer, "authority") {
				return c
			}
		}
		t.Fatalf("%s %s is not in the table", node, origin)
		return report.Certificate{}
	}
	if c := row("cp2", "/etc/kubernetes/pki/apiserver.crt"); *c.DaysLeft != -31 || c.Chain != report.Good || len(c.Findings) != 1 || len(c.UsedBy) != 1 || !strings.Contains(c.UsedBy[0], "--tls-cert-file") {
		t.Errorf("%+v", c)
	}
	if c := row("cp3", "/etc/kubernetes/pki/etcd/peer.crt"); c.KeyMatch != report.Bad {
		t.Errorf("%+v", c)
	}
	if c := row("cp1", "/root/.kube/config"); c.Role != "copy of admin.conf" || *c.DaysLeft != 19 {
		t.Errorf("%+v", c)
	}
	row("cp1", "/var/lib/kubelet/pki/kubelet-client-current.pem")
	// Everything kubeadm certs check-expiration lists, on every node.
	for _, n := range []string{"cp1", "cp2", "cp3"} {
		for _, f := range []string{"admin.conf", "controller-manager.conf", "scheduler.conf", "pki/apiserver.crt", "pki/apiserver-etcd-client.crt", "pki/apiserver-kubelet-client.crt",
			"pki/etcd/healthcheck-client.crt", "pki/etcd/peer.crt", "pki/etcd/server.crt", "pki/front-proxy-client.crt", "pki/ca.crt", "pki/etcd/ca.crt", "pki/front-proxy-ca.crt"} {
			row(n, "/etc/kubernetes/"+f)
		}
	}
	if len(tab.Findings) != 5 || tab.Kind != "CertificateTable" {
		t.Errorf("kind %s, findings %d", tab.Kind, len(tab.Findings))
		for _, f := range tab.Findings {
			t.Log(f.Rule, f.Node, f.Message)
		}
	}
}

// A store alone has certificates too: those of TLS Secrets, and the CAs others
// are told to trust.
func TestCertsOfAStore(t *testing.T) {
	files := map[string][]byte{
		"etc/kubernetes/pki/ca.crt": []byte("{{pem ca}}"), // makes the CA
		"snap.db!etcd": []byte("object\napiVersion: v1\nkind: Secret\nmetadata: {name: hook, namespace: policy}\ntype: kubernetes.io/tls\n" +
			"data: {tls.crt: {{b64 ca}}, tls.key: \"\"}\nend\n"),
	}
	if err := pkitest.Make(files); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(t.TempDir(), "snap.db")
	if err := storetest.Write(db, string(files["snap.db!etcd"])); err != nil {
		t.Fatal(err)
	}
	_, out, errs := certsRun(t, db, "--as-of", "2026-06-01", "-o", "json")
	var tab struct{ Certificates []report.Certificate }
	if err := json.Unmarshal([]byte(out), &tab); err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	if len(tab.Certificates) != 1 || tab.Certificates[0].Role != "Secret policy/hook" || tab.Certificates[0].NotAfter.IsZero() {
		t.Errorf("%+v", tab.Certificates)
	}
}

func TestCertsCommandLine(t *testing.T) {
	dir := certTree(t, "")
	html := filepath.Join(t.TempDir(), "c.html")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{dir, "--as-of", "2026-06-01"}, exitOK, ""},
		{[]string{dir, "--as-of", "2027-05-01"}, exitFindings, ""},
		{[]string{dir, "--as-of", "2027-05-01", "--fail-on", "none"}, exitOK, ""},
		{[]string{dir, "--as-of", "2026-06-01", "-o", "html", "--out", html}, exitOK, ""},
		{[]string{dir, "-o", "pdf"}, exitUsage, "unknown output format"},
		{[]string{dir, "--sort", "colour"}, exitUsage, "unknown order"},
		{[]string{dir, "--out", dir}, exitUsage, "would be overwritten"},
		{[]string{filepath.Join(dir, "nothing")}, exitUsage, "no such file"},
		{nil, exitUsage, "usage"},
	} {
		code, _, errs := certsRun(t, c.args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, %q", c.args, code, errs)
		}
	}
	if b, err := os.ReadFile(html); err != nil || !bytes.Contains(b, []byte("<svg")) {
		t.Errorf("html: %v", err)
	}
}
