package pki_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coldplane/analyze/analyzetest"
	"coldplane/analyze/pki"
	"coldplane/analyze/pki/pkitest"
	"coldplane/bundle/decode/spki"
)

// tree makes a generated single-node tree.
func tree(t testing.TB, spec string) map[string][]byte {
	t.Helper()
	files, err := analyzetest.Base("single")
	if err != nil {
		t.Fatal(err)
	}
	files["x!pki"] = []byte(spec)
	if err := pkitest.Make(files); err != nil {
		t.Fatal(err)
	}
	return files
}

func blocks(data []byte) []*spki.Block {
	f := spki.Parse(data)
	var out []*spki.Block
	for i := range f.Blocks {
		out = append(out, &f.Blocks[i])
	}
	return out
}

const dir = "etc/kubernetes/pki/"

// TestVerifyAgainstOpenSSL compares our answer with the one of openssl verify
// for chains right, wrong, of the same name, through intermediates, and with a
// bundle of CAs.
func TestVerifyAgainstOpenSSL(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("no openssl on this machine")
	}
	for name, c := range map[string]struct {
		spec, leaf, ca string
		want           bool
	}{
		"right":          {"", "apiserver", "ca", true},
		"wrong CA":       {"", "apiserver", "etcd/ca", false},
		"same name":      {"apiserver ca=other", "apiserver", "ca", false},
		"intermediate":   {"apiserver via=mid", "apiserver", "ca", true},
		"lost middle":    {"apiserver via=mid", "lost", "ca", false},
		"bundle, last":   {"ca first=old", "apiserver", "ca", true},
		"bundle, none":   {"ca first=old\nmark ca=x\napiserver ca=other", "apiserver", "ca", false},
		"rsa":            {"ca alg=rsa2048\napiserver alg=rsa2048", "apiserver", "ca", true},
		"ed25519":        {"apiserver alg=ed25519", "apiserver", "ca", true},
		"client of etcd": {"", "apiserver-etcd-client", "etcd/ca", true},
	} {
		files := tree(t, c.spec)
		leafFile := c.leaf
		if leafFile == "lost" {
			leafFile = "apiserver"
		}
		chain := blocks(files[dir+leafFile+".crt"])
		if c.leaf == "lost" {
			chain = chain[:1]
		}
		got := pki.Verify(chain[0].Cert, pki.Certs(chain[1:]), pki.Certs(blocks(files[dir+c.ca+".crt"])))
		tmp := t.TempDir()
		write := func(n string, b []byte) string {
			p := filepath.Join(tmp, n)
			if err := os.WriteFile(p, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return p
		}
		args := []string{"verify", "-no_check_time", "-CAfile", write("ca.pem", files[dir+c.ca+".crt"])}
		data := files[dir+leafFile+".crt"]
		if c.leaf != "lost" {
			args = append(args, "-untrusted", write("chain.pem", data))
		}
		args = append(args, write("leaf.pem", data))
		out, err := exec.CommandContext(t.Context(), openssl, args...).CombinedOutput()
		if got.OK != c.want || (err == nil) != c.want {
			t.Errorf("%s: we say %v (%s), openssl says %v: %s", name, got.OK, got.Why, err == nil, out)
		}
		if got.OK != (got.Why == "") {
			t.Errorf("%s: ok %v with reason %q", name, got.OK, got.Why)
		}
	}
}

// TestNamesAgainstOpenSSL compares the alternative names and dates we show
// with those openssl prints.
func TestNamesAgainstOpenSSL(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("no openssl on this machine")
	}
	files := tree(t, "etcd/server san+=2001:db8::7,*.etcd.example")
	for _, leaf := range []string{"apiserver", "etcd/server", "etcd/peer"} {
		data := files[dir+leaf+".crt"]
		cmd := exec.CommandContext(t.Context(), openssl, "x509", "-noout", "-ext", "subjectAltName", "-enddate", "-serial")
		cmd.Stdin = bytes.NewReader(data)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v %s", leaf, err, out)
		}
		c := blocks(data)[0].Cert
		n := strings.Count(string(out), "DNS:") + strings.Count(string(out), "IP Address:")
		if names := pki.Names(c); len(names) != n {
			t.Errorf("%s: %d names, openssl has %d:\n%s", leaf, len(names), n, out)
		} else {
			for _, name := range names {
				want := strings.ToUpper(name)
				if strings.Contains(name, ":") {
					continue // openssl writes IPv6 its own way
				}
				if !strings.Contains(strings.ToUpper(string(out)), want) {
					t.Errorf("%s: openssl does not print %s", leaf, name)
				}
			}
		}
		if end := c.NotAfter.UTC().Format("Jan _2 15:04:05 2006 GMT"); !strings.Contains(string(out), "notAfter="+end) {
			t.Errorf("%s: openssl does not end at %s:\n%s", leaf, end, out)
		}
	}
}

func TestVerifyReasons(t *testing.T) {
	files := tree(t, "apiserver ca=other\nfront-proxy-ca add=old\nold key=weak")
	leaf := blocks(files[dir+"apiserver.crt"])[0].Cert
	ca := pki.Certs(blocks(files[dir+"ca.crt"]))
	if c := pki.Verify(leaf, nil, ca); c.OK || c.Named == nil || !strings.Contains(c.Why, "another key") {
		t.Errorf("%+v", c)
	}
	if c := pki.Verify(leaf, nil, nil); c.OK || !c.NoCA {
		t.Errorf("%+v", c)
	}
	etcd := blocks(files[dir+"etcd/server.crt"])[0].Cert
	if c := pki.Verify(etcd, nil, ca); c.OK || c.Named != nil || !strings.Contains(c.Why, "not among the CAs") {
		t.Errorf("%+v", c)
	}
	// A leaf is no CA, whatever it is put beside.
	if c := pki.Verify(leaf, nil, pki.Certs(blocks(files[dir+"etcd/peer.crt"]))); c.OK {
		t.Error("a leaf passes as a CA")
	}
	// The certificate itself in the file is trusted, as Go does.
	if c := pki.Verify(leaf, nil, pki.Certs(blocks(files[dir+"apiserver.crt"]))); !c.OK {
		t.Errorf("%+v", c)
	}
}

func TestCoversAndFirstAddress(t *testing.T) {
	c := blocks(tree(t, "apiserver san=a.example,*.b.example,10.0.0.1,2001:db8::1 cn=cn.example")[dir+"apiserver.crt"])[0].Cert
	for host, want := range map[string]bool{"a.example": true, "A.EXAMPLE.": true, "x.b.example": true, "x.y.b.example": false, "cn.example": false,
		"10.0.0.1": true, "10.0.0.2": false, "2001:db8::1": true, "": true} {
		if got := pki.Covers(c, host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
	for in, want := range map[string]string{"10.96.0.0/12": "10.96.0.1", "fd00::/108,10.0.0.0/8": "fd00::1", "10.0.0.255/32": "", "x": "", "10.1.255.0/24": "10.1.255.1"} {
		if got := pki.FirstAddress(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
