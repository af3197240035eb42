//go:build linux

package collect

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"coldplane/bundle/archive"
)

// ca is a certificate authority made for a test.
type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func (c *ca) issue(t *testing.T, dir, name string, server bool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.n++
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(c.n), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	parent, signer := c.cert, c.key
	if c.cert == nil {
		tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.KeyUsage = true, true, x509.KeyUsageCertSign
		parent, signer = tmpl, k
	}
	if server {
		tmpl.IPAddresses, tmpl.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, k.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	if c.cert == nil {
		if c.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		c.key = k
	}
	kd, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for ext, b := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "EC PRIVATE KEY", Bytes: kd}} {
		if err := os.WriteFile(filepath.Join(dir, name+ext), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func freeURL(t *testing.T, scheme string) url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return url.URL{Scheme: scheme, Host: l.Addr().String()}
}

func startEtcd(t *testing.T, dir, pki string, client url.URL) *embed.Etcd {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.Name = dir, "cp1"
	peer := freeURL(t, "http")
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ClientTLSInfo.CertFile, cfg.ClientTLSInfo.KeyFile, cfg.ClientTLSInfo.TrustedCAFile = filepath.Join(pki, "server.crt"), filepath.Join(pki, "server.key"), filepath.Join(pki, "ca.crt")
	cfg.ClientTLSInfo.ClientCertAuth = true
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(60 * time.Second):
		t.Fatal("etcd does not start")
	}
	return e
}

// A real etcd with TLS: collected through its own snapshot call while it runs,
// then from its files when it is gone; and it restarts at once while its files
// are being read.
func TestRealEtcd(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real etcd")
	}
	root := t.TempDir()
	pki := filepath.Join(root, "etc/kubernetes/pki/etcd")
	data := filepath.Join(root, "var/lib/etcd")
	for _, d := range []string{pki, data, filepath.Join(root, "etc/kubernetes/manifests")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := &ca{}
	c.issue(t, pki, "ca", false)
	c.issue(t, pki, "server", true)
	c.issue(t, pki, "healthcheck-client", false)
	u := freeURL(t, "https")
	manifest := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata:\n  name: etcd\nspec:\n  containers:\n  - name: etcd\n    command:\n    - etcd\n    - --name=cp1\n    - --data-dir=/var/lib/etcd\n    - --listen-client-urls=%s\n  volumes:\n  - hostPath:\n      path: /var/lib/etcd\n", u.String())
	if err := os.WriteFile(filepath.Join(root, "etc/kubernetes/manifests/etcd.yaml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	e := startEtcd(t, data, pki, u)
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "healthcheck-client.crt"), filepath.Join(pki, "healthcheck-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	cl, err := clientv3.New(clientv3.Config{Endpoints: []string{u.String()}, TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	const canary = "ETCD-CANARY-7f3a9b"
	for i := range 300 {
		if _, err := cl.Put(t.Context(), fmt.Sprintf("/registry/secrets/ns/s%d", i%50), canary+strings.Repeat("v", 300)); err != nil {
			t.Fatal(err)
		}
	}
	cl.Close()

	// Live: the sources as Run would call them on "/", over this root.
	nr, err := openRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer nr.close()
	o := options(root, t).withDefaults()
	live := func() (map[string]string, []archive.Result) {
		r := &run{o: o, root: nr, scan: newScan(), paths: findWiring(nr)}
		r.o.Root = "/" // the system is running; its files are below root
		var out bytes.Buffer
		w, err := archive.NewWriter(&out, r.header(), archive.Options{Scanner: r.scan})
		if err != nil {
			t.Fatal(err)
		}
		var rs []archive.Result
		for _, s := range []*source{{name: "probe", live: true, run: r.probe}, {name: "etcd-status", live: true, run: r.etcdStatus}, {name: "etcd", run: r.etcd, deadline: time.Minute}} {
			res, err := r.one(t.Context(), t.Context(), s, w)
			if err != nil {
				t.Fatal(err)
			}
			rs = append(rs, res)
		}
		if _, err := w.Close(archive.Complete, archive.Clock{}); err != nil {
			t.Fatal(err)
		}
		if v := verified(t, out.Bytes()); v.State != archive.Intact {
			t.Fatal(v.State, v.Problems)
		}
		return members(t, out.Bytes()), rs
	}
	ms, rs := live()
	for _, res := range rs {
		if res.Outcome != archive.OK {
			t.Errorf("%s: %s %s %v", res.Source, res.Outcome, res.Error, res.Notes)
		}
	}
	db := ms["etcd/snapshot.db"]
	if len(db) == 0 || strings.Contains(db, canary) || !strings.Contains(db, "/registry/secrets/ns/s1") || !strings.Contains(db, "coldplane: scrubbed; sha256 good") {
		t.Errorf("snapshot: %d bytes, secret %v", len(db), strings.Contains(db, canary))
	}
	if !strings.Contains(ms["etcd/members.json"], `"cp1"`) || !strings.Contains(ms["etcd/status.json"], u.String()) || !strings.Contains(ms["probe/ladder.json"], `"step": "health"`) {
		t.Errorf("status files: %s %s", ms["etcd/members.json"], ms["etcd/status.json"])
	}
	if !strings.Contains(ms["etcd/wal-index.jsonl"], `"Entries"`) {
		t.Error("no index of the log")
	}
	for name, content := range ms {
		if strings.Contains(content, canary) {
			t.Errorf("%s holds the canary", name)
		}
	}

	// No lock: etcd stops and starts again while a slow copy of its files runs.
	ctx, cancel := context.WithCancel(t.Context())
	slow := options(root, t)
	slow.Rate = 1 << 20
	slow.Only = []string{"etcd", "datadir"}
	collected := make(chan error, 1)
	e.Close()
	go func() {
		var out bytes.Buffer
		_, err := Run(ctx, &out, slow)
		collected <- err
	}()
	time.Sleep(300 * time.Millisecond)
	began := time.Now()
	e = startEtcd(t, data, pki, u)
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("etcd took %s to start beside a collection", d)
	}
	cancel()
	if err := <-collected; err != nil {
		t.Error(err)
	}
	e.Close()

	// Dead: from the files alone.
	var out bytes.Buffer
	rep, err := Run(t.Context(), &out, options(root, t))
	if err != nil || rep.Status != archive.Complete {
		t.Fatalf("%v %+v", err, rep)
	}
	ms = members(t, out.Bytes())
	db = ms["var/lib/etcd/member/snap/db"]
	if len(db) == 0 || strings.Contains(db, canary) || !strings.Contains(db, "/registry/secrets/ns/s1") {
		t.Errorf("database: %d bytes", len(db))
	}
	for name, content := range ms {
		if strings.Contains(content, canary) {
			t.Errorf("%s holds the canary", name)
		}
	}
}
