package kubeconfig_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"coldplane/analyze/analyzetest"
	"coldplane/analyze/kubeconfig"
	"coldplane/analyze/pki/pkitest"
	"coldplane/analyze/yamlfile"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
)

func nowhere(p string) (*bundle.File, error) {
	return nil, &bundle.MissingError{Evidence: p, Reason: bundle.NotCollected}
}

func read(t testing.TB, text, origin string) (*kubeconfig.Config, error) {
	t.Helper()
	docs, err := yamlfile.FromBytes(bundle.Ref{Path: "x"}, []byte(text))
	if err != nil || len(docs) == 0 || docs[0].Root == nil {
		t.Skip("not YAML")
	}
	return kubeconfig.ParseDoc(docs[0], origin, nowhere)
}

func sample(t testing.TB, spec, name string) string {
	t.Helper()
	files, err := analyzetest.Base("single")
	if err != nil {
		t.Fatal(err)
	}
	files["x!pki"] = []byte(spec)
	if err := pkitest.Make(files); err != nil {
		t.Fatal(err)
	}
	return string(files[name])
}

func TestKubeadmFile(t *testing.T) {
	for _, keys := range []string{"index", "files", "redacted"} {
		c, err := read(t, sample(t, "keys "+keys, "etc/kubernetes/admin.conf"), "/etc/kubernetes/admin.conf")
		if err != nil {
			t.Fatal(err)
		}
		if c.Role != kubeconfig.Admin || c.Name != "admin.conf" || c.Host() != "api.k8s.example" || c.ServerRef.Line != 5 || c.Auth != kubeconfig.AuthCert || c.User != "kubernetes-admin" {
			t.Errorf("%+v", c)
		}
		if len(c.CA.PEM.Blocks) != 1 || len(c.Cert.PEM.Blocks) != 1 || !c.Cert.Inline || c.Cert.Ref.Line != 17 || c.Cert.Ref.Pointer != "/users/0/user/client-certificate-data" {
			t.Errorf("CA %v, certificate %+v", c.CA.PEM.Blocks, c.Cert)
		}
		if keys == "files" {
			if k := c.Key.PEM.Blocks; len(k) != 1 || k[0].Kind != spki.PrivateKey || k[0].SPKI != c.Cert.PEM.Blocks[0].SPKI {
				t.Errorf("key %+v", k)
			}
		} else if !c.Key.Redacted() {
			t.Errorf("%s: the marker is not seen", keys)
		}
	}
}

func TestShapes(t *testing.T) {
	b64 := base64.StdEncoding.EncodeToString([]byte("hello"))
	for name, c := range map[string]struct {
		text  string
		check func(*kubeconfig.Config) bool
	}{
		"current context": {"current-context: b\ncontexts: [{name: a, context: {cluster: x, user: u}}, {name: b, context: {cluster: east, user: v}}]\nclusters: [{name: x, cluster: {server: https://x}}, {name: east, cluster: {server: 'https://[::1]:6443', tls-server-name: api}}]\nusers: [{name: u, user: {}}, {name: v, user: {token: t}}]\n", func(c *kubeconfig.Config) bool {
			return c.Host() == "::1" && c.VerifiedName() == "api" && c.Auth == kubeconfig.AuthToken && c.User == "v"
		}},
		"no context":       {"clusters: [{name: x, cluster: {server: https://x}}]\nusers: [{name: u, user: {exec: {command: c}}}]\n", func(c *kubeconfig.Config) bool { return c.Host() == "x" && c.Auth == kubeconfig.AuthExec }},
		"dangling context": {"current-context: b\ncontexts: [{name: b, context: {cluster: east, user: v}}]\nclusters: [{name: x, cluster: {server: https://x}}]\n", func(c *kubeconfig.Config) bool { return c.Server == nil && c.Auth == "" }},
		"no URL":           {"clusters: [{name: x, cluster: {server: '10.0.0.1:6443'}}]\n", func(c *kubeconfig.Config) bool { return c.Host() == "" && c.ServerText != "" }},
		"relative file": {"users: [{name: u, user: {client-certificate: pki/a.crt, client-key: /k}}]\n", func(c *kubeconfig.Config) bool {
			return c.Cert.Path == "/etc/kubernetes/pki/a.crt" && bundle.ReasonOf(c.Cert.Err) == bundle.NotCollected && c.Auth == kubeconfig.AuthCert
		}},
		"data wins": {"users: [{name: u, user: {client-certificate: /a.crt, client-certificate-data: " + b64 + "}}]\n", func(c *kubeconfig.Config) bool {
			return c.Cert.Inline && len(c.Cert.PEM.Blocks) == 0 && c.Cert.Err == nil
		}},
		"not base64": {"users: [{name: u, user: {client-certificate-data: '%%%'}}]\n", func(c *kubeconfig.Config) bool { return c.Cert.Err != nil }},
		"password":   {"users: [{name: u, user: {username: a, password: b}}]\n", func(c *kubeconfig.Config) bool { return c.Auth == kubeconfig.AuthBasic }},
		"skip":       {"clusters: [{name: x, cluster: {server: https://x, insecure-skip-tls-verify: true}}]\n", func(c *kubeconfig.Config) bool { return c.SkipVerify }},
	} {
		cfg, err := read(t, c.text, "/etc/kubernetes/other.conf")
		if err != nil || !c.check(cfg) {
			t.Errorf("%s: %v %+v", name, err, cfg)
		}
	}
	if _, err := read(t, "kind: Pod\n", "/etc/kubernetes/x.conf"); err == nil {
		t.Error("a Pod is read as a kubeconfig")
	}
}

// FuzzParse: no panic on any input; what is read keeps its line; no field of
// the result holds a token or a password.
func FuzzParse(f *testing.F) {
	f.Add(sample(f, "", "etc/kubernetes/admin.conf"))
	f.Add(sample(f, "keys files", "etc/kubernetes/scheduler.conf"))
	f.Add("clusters: [{name: x, cluster: {server: https://x}}]\nusers: [{name: u, user: {token: secrettoken, password: secretword}}]\n")
	f.Add("users: [{name: u, user: {client-key-data: REDACTED}}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := read(t, text, "/etc/kubernetes/admin.conf")
		if err != nil {
			return
		}
		for _, m := range []kubeconfig.Material{c.CA, c.Cert, c.Key} {
			if m.Set && (m.Line.Line < 1 || m.Line.Line > strings.Count(text, "\n")+1) {
				t.Fatalf("line %d", m.Line.Line)
			}
			if len(m.PEM.Blocks) > spki.MaxBlocks {
				t.Fatal("too many blocks")
			}
		}
	})
}
