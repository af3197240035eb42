package collect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
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

	"coldplane/bundle/redact"
)

// A Rung is one step of reaching something. Each is tried by itself, whatever the
// one before gave.
type Rung struct {
	Name    string  `json:"name"` // tcp, tls, livez, readyz, authenticated, health
	OK      bool    `json:"ok"`
	Status  int     `json:"status,omitempty"` // HTTP
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
	Body    string  `json:"body,omitempty"`   // first lines of a health answer
	Date    string  `json:"date,omitempty"`   // the server's Date header
	Issuer  string  `json:"issuer,omitempty"` // of the certificate it showed
	Subject string  `json:"subject,omitempty"`
	Expires string  `json:"notAfter,omitempty"`
	Serial  string  `json:"serial,omitempty"`
}

// A Ladder is what reaching one address gave.
type Ladder struct {
	Kind    string `json:"kind"` // apiserver, etcd
	Address string `json:"address"`
	Rungs   []Rung `json:"rungs"`
}

const probeTimeout = 3 * time.Second

// probe tries the endpoint, each API server and each etcd member.
func (r *run) probe(ctx context.Context, s *sink) error {
	type target struct{ kind, addr string }
	var ts []target
	for _, a := range r.paths.api {
		ts = append(ts, target{"apiserver", a})
	}
	for _, e := range r.etcdPeers() {
		ts = append(ts, target{"etcd", e})
	}
	if len(ts) == 0 {
		return errNothing
	}
	ts = ts[:min(len(ts), 32)]
	apiCert := r.kubeconfigTLS("/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf", "/etc/kubernetes/kubelet.conf")
	etcdTLS, _ := r.etcdTLS()
	out := make([]Ladder, len(ts))
	var wg sync.WaitGroup
	for i, t := range ts {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if t.kind == "apiserver" {
				out[i] = apiLadder(ctx, t.addr, apiCert)
			} else {
				out[i] = etcdLadder(ctx, t.addr, etcdTLS)
			}
		}()
	}
	wg.Wait()
	s.json("/probe/ladder.json", out)
	return ctx.Err()
}

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

func rung(name string, f func(*Rung) error) Rung {
	x := Rung{Name: name}
	began := time.Now() //nolint:forbidigo // monotonic
	err := f(&x)
	x.Seconds = time.Since(began).Seconds()
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

func tcpRung(ctx context.Context, addr string) Rung {
	return rung("tcp", func(*Rung) error {
		d := net.Dialer{Timeout: probeTimeout}
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func tlsRung(ctx context.Context, addr string, cfg *tls.Config) Rung {
	return rung("tls", func(x *Rung) error {
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
		x.Subject, x.Issuer, x.Expires, x.Serial = certs[0].Subject.String(), certs[0].Issuer.String(), certs[0].NotAfter.UTC().Format(time.RFC3339), certs[0].SerialNumber.String()
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

func get(ctx context.Context, name, u string, cfg *tls.Config, lines int) Rung {
	return rung(name, func(x *Rung) error {
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
		x.Status, x.Date = res.StatusCode, res.Header.Get("Date")
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

func apiLadder(ctx context.Context, addr string, auth *tls.Config) Ladder {
	addr = strings.TrimSuffix(addr, "/")
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(addr, "443")
	}
	anon := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // health pages only
	l := Ladder{Kind: "apiserver", Address: addr}
	l.Rungs = append(l.Rungs, tcpRung(ctx, addr))
	if !l.Rungs[0].OK {
		return l
	}
	base := "https://" + addr
	l.Rungs = append(l.Rungs, tlsRung(ctx, addr, auth), get(ctx, "livez", base+"/livez?verbose", anon, 80), get(ctx, "readyz", base+"/readyz?verbose", anon, 80))
	if auth != nil {
		l.Rungs = append(l.Rungs, get(ctx, "authenticated", base+"/api/v1/namespaces/kube-system", auth, 0))
	}
	return l
}

func etcdLadder(ctx context.Context, addr string, cfg *tls.Config) Ladder {
	l := Ladder{Kind: "etcd", Address: addr}
	l.Rungs = append(l.Rungs, tcpRung(ctx, addr))
	if !l.Rungs[0].OK {
		return l
	}
	l.Rungs = append(l.Rungs, tlsRung(ctx, addr, cfg))
	if cfg != nil {
		l.Rungs = append(l.Rungs, get(ctx, "health", "https://"+addr+"/health", cfg, 5))
	}
	return l
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
