//go:build linux

package collect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"coldplane/bundle/hostfacts"
	"coldplane/bundle/redact"
)

const probeTimeout = 3 * time.Second

// probe tries the endpoint, each API server and each etcd member.
func (r *run) probe(ctx context.Context, s *sink) error {
	ts := r.targets()
	if len(ts) == 0 {
		return errNothing
	}
	apiCert := r.kubeconfigTLS("/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf", "/etc/kubernetes/kubelet.conf")
	etcdTLS, _ := r.etcdTLS()
	l := ladder{now: r.o.Now}
	var wg sync.WaitGroup
	for i := range ts {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() {
				if p := recover(); p != nil {
					s.fail(ts[i].URL, fmt.Errorf("a defect: %v", p))
				}
			}()
			if ts[i].Name == "etcd" {
				l.etcd(ctx, &ts[i], etcdTLS)
			} else {
				l.api(ctx, &ts[i], apiCert)
			}
		}()
	}
	wg.Wait()
	s.json(hostfacts.LadderPath, ts)
	return ctx.Err()
}

// targets are the addresses to try, the endpoint first.
func (r *run) targets() (ts []hostfacts.Target) {
	seen := map[string]bool{}
	try := func(name, addr string) {
		if addr = withPort(addr); !seen[addr] && len(ts) < 32 {
			seen[addr] = true
			ts = append(ts, hostfacts.Target{Name: name, URL: "https://" + addr, Rungs: []hostfacts.Rung{}})
		}
	}
	if r.paths.endpoint != "" {
		try("endpoint", r.paths.endpoint)
	}
	for _, a := range r.paths.local {
		try("local", a)
	}
	for _, a := range r.paths.api {
		try("apiserver", a)
	}
	for _, e := range r.etcdPeers() {
		try("etcd", e)
	}
	return ts
}

// withPort completes host:port of a server's URL.
func withPort(addr string) string {
	addr, _, _ = strings.Cut(addr, "/")
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return net.JoinHostPort(strings.Trim(addr, "[]"), "443")
	}
	return addr
}

// A ladder tries the rungs.
type ladder struct{ now func() time.Time }

// etcdPeers are host:port of the client URLs of all members that the manifests
// name.
func (r *run) etcdPeers() (out []string) {
	for _, e := range r.paths.endpoints {
		if u, err := url.Parse(e); err == nil && u.Host != "" {
			out = add(out, u.Host)
		}
	}
	for _, v := range r.paths.flags["initial-cluster"] {
		for _, m := range strings.Split(v, ",") {
			if _, peer, ok := strings.Cut(m, "="); ok {
				if u, err := url.Parse(peer); err == nil && u.Hostname() != "" {
					out = add(out, hostPort(u.Hostname(), "2379"))
				}
			}
		}
	}
	return out
}

func (l ladder) rung(name string, f func(*hostfacts.Rung) error) hostfacts.Rung {
	x := hostfacts.Rung{Step: name, At: l.now().UTC()}
	began := time.Now() //nolint:forbidigo // monotonic
	err := f(&x)
	x.LatencyMS = time.Since(began).Milliseconds()
	x.OK = err == nil
	if err != nil {
		x.Error = clean(reason(unwrapURL(err)))
	}
	return x
}

func unwrapURL(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

func (l ladder) tcp(ctx context.Context, addr string) hostfacts.Rung {
	return l.rung("tcp", func(*hostfacts.Rung) error {
		d := net.Dialer{Timeout: probeTimeout}
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func (l ladder) tls(ctx context.Context, addr string, cfg *tls.Config) hostfacts.Rung {
	return l.rung("tls", func(x *hostfacts.Rung) error {
		// The certificate is evidence whether or not it would be trusted.
		c := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // nothing is sent
		if cfg != nil {
			c.Certificates = cfg.Certificates
		}
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: probeTimeout}, Config: c}
		cctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		conn, err := d.DialContext(cctx, "tcp", addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		certs := conn.(*tls.Conn).ConnectionState().PeerCertificates
		if len(certs) == 0 {
			return errors.New("no certificate shown")
		}
		x.Cert = &hostfacts.Shown{Subject: clean(certs[0].Subject.String()), Issuer: clean(certs[0].Issuer.String()), Serial: certs[0].SerialNumber.String(), NotAfter: certs[0].NotAfter.UTC()}
		if cfg == nil || cfg.RootCAs == nil {
			return nil
		}
		host, _, _ := net.SplitHostPort(addr)
		inter := x509.NewCertPool()
		for _, i := range certs[1:] {
			inter.AddCert(i)
		}
		_, err = certs[0].Verify(x509.VerifyOptions{Roots: cfg.RootCAs, Intermediates: inter, DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err
	})
}

func (l ladder) get(ctx context.Context, name, u string, cfg *tls.Config, lines int) hostfacts.Rung {
	return l.rung(name, func(x *hostfacts.Rung) error {
		t := &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true, Proxy: nil}
		c := &http.Client{Transport: t, Timeout: probeTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
		if err != nil {
			return err
		}
		res, err := c.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		x.Status, x.Date = res.StatusCode, clean(res.Header.Get("Date"))
		b, err := io.ReadAll(io.LimitReader(res.Body, 16<<10))
		if lines > 0 {
			ls := strings.Split(string(b), "\n")
			x.Body = redact.String(strings.Join(ls[:min(len(ls), lines)], "\n"))
		}
		if err == nil && res.StatusCode >= 400 {
			err = errors.New(res.Status)
		}
		return err
	})
}

func (l ladder) api(ctx context.Context, t *hostfacts.Target, auth *tls.Config) {
	addr := strings.TrimPrefix(t.URL, "https://")
	t.Rungs = append(t.Rungs, l.tcp(ctx, addr))
	if !t.Rungs[0].OK {
		return
	}
	anon := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // health pages only
	t.Rungs = append(t.Rungs, l.tls(ctx, addr, auth), l.get(ctx, "livez", t.URL+"/livez?verbose", anon, 80), l.get(ctx, "readyz", t.URL+"/readyz?verbose", anon, 80))
	if auth != nil {
		t.Rungs = append(t.Rungs, l.get(ctx, "get", t.URL+"/api/v1/namespaces/kube-system", auth, 0))
	}
}

func (l ladder) etcd(ctx context.Context, t *hostfacts.Target, cfg *tls.Config) {
	addr := strings.TrimPrefix(t.URL, "https://")
	t.Rungs = append(t.Rungs, l.tcp(ctx, addr))
	if !t.Rungs[0].OK {
		return
	}
	t.Rungs = append(t.Rungs, l.tls(ctx, addr, cfg))
	if cfg != nil {
		t.Rungs = append(t.Rungs, l.get(ctx, "health", t.URL+"/health", cfg, 5))
	}
}

// kubeconfigTLS takes CA and client certificate of the first kubeconfig that has
// them.
func (r *run) kubeconfigTLS(files ...string) *tls.Config {
	for _, f := range files {
		var k struct {
			Clusters []struct {
				Cluster struct {
					CA     string `yaml:"certificate-authority-data"`
					CAFile string `yaml:"certificate-authority"`
				} `yaml:"cluster"`
			} `yaml:"clusters"`
			Users []struct {
				User struct {
					Cert     string `yaml:"client-certificate-data"`
					Key      string `yaml:"client-key-data"`
					CertFile string `yaml:"client-certificate"`
					KeyFile  string `yaml:"client-key"`
				} `yaml:"user"`
			} `yaml:"users"`
		}
		b := r.root.small(f)
		if len(b) == 0 || slices.Contains(b, '&') || yaml.Unmarshal(b, &k) != nil || len(k.Clusters) == 0 || len(k.Users) == 0 {
			continue
		}
		u, c := k.Users[0].User, k.Clusters[0].Cluster
		read := func(data, file string) []byte {
			if d, err := base64.StdEncoding.DecodeString(data); err == nil && len(d) > 0 {
				return d
			}
			if file != "" && path.IsAbs(file) {
				return r.root.small(file)
			}
			return nil
		}
		pair, err := tls.X509KeyPair(read(u.Cert, u.CertFile), read(u.Key, u.KeyFile))
		if err != nil {
			continue
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(read(c.CA, c.CAFile))
		return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}
	}
	return nil
}
