package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// made is when kubeadm set the cluster up in the story.
var made = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

type pair struct {
	cert *x509.Certificate
	der  []byte
	key  *ecdsa.PrivateKey
}

func (p *pair) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.der})
}

type pkiSet struct {
	cas    map[string]*pair            // "ca", "etcd/ca", "front-proxy-ca"
	leaves map[string]map[string]*pair // node -> file below pki or kubeconfig -> pair
	sa     *ecdsa.PrivateKey
	serial int64
}

func newPKI() (*pkiSet, error) {
	s := &pkiSet{cas: map[string]*pair{}, leaves: map[string]map[string]*pair{}}
	for name, cn := range map[string]string{"ca": "kubernetes", "etcd/ca": "etcd-ca", "front-proxy-ca": "front-proxy-ca"} {
		p, err := s.issue(nil, &x509.Certificate{
			Subject: pkix.Name{CommonName: cn}, IsCA: true, BasicConstraintsValid: true, DNSNames: []string{cn},
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
			NotAfter: made.AddDate(10, 0, 0),
		})
		if err != nil {
			return nil, err
		}
		s.cas[name] = p
	}
	var err error
	if s.sa, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, m := range machines {
		ips := func(l ...string) []net.IP {
			var out []net.IP
			for _, a := range l {
				out = append(out, net.ParseIP(a))
			}
			return out
		}
		s.leaves[m.Name] = map[string]*pair{}
		for _, l := range []struct {
			file, ca, cn string
			orgs         []string
			eku          []x509.ExtKeyUsage
			dns          []string
			ips          []net.IP
		}{
			{"pki/apiserver", "ca", "kube-apiserver", nil, server, []string{m.Name, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "api.k8s.example"}, ips("10.96.0.1", m.IP)},
			{"pki/apiserver-kubelet-client", "ca", "kube-apiserver-kubelet-client", nil, client, nil, nil},
			{"pki/front-proxy-client", "front-proxy-ca", "front-proxy-client", nil, client, nil, nil},
			{"pki/apiserver-etcd-client", "etcd/ca", "kube-apiserver-etcd-client", nil, client, nil, nil},
			{"pki/etcd/server", "etcd/ca", m.Name, nil, both, []string{m.Name, "localhost"}, ips(m.IP, "127.0.0.1", "::1")},
			{"pki/etcd/peer", "etcd/ca", m.Name, nil, both, []string{m.Name, "localhost"}, ips(m.IP, "127.0.0.1", "::1")},
			{"pki/etcd/healthcheck-client", "etcd/ca", "kube-etcd-healthcheck-client", nil, client, nil, nil},
			{"admin.conf", "ca", "kubernetes-admin", []string{"kubeadm:cluster-admins"}, client, nil, nil},
			{"controller-manager.conf", "ca", "system:kube-controller-manager", nil, client, nil, nil},
			{"scheduler.conf", "ca", "system:kube-scheduler", nil, client, nil, nil},
			{"kubelet.pem", "ca", "system:node:" + m.Name, []string{"system:nodes"}, client, nil, nil},
		} {
			p, err := s.issue(s.cas[l.ca], &x509.Certificate{
				Subject: pkix.Name{CommonName: l.cn, Organization: l.orgs}, DNSNames: l.dns, IPAddresses: l.ips,
				KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: l.eku, BasicConstraintsValid: true,
				NotAfter: made.AddDate(1, 0, 0),
			})
			if err != nil {
				return nil, err
			}
			s.leaves[m.Name][l.file] = p
		}
	}
	return s, nil
}

func (s *pkiSet) issue(ca *pair, t *x509.Certificate) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	s.serial++
	t.SerialNumber = big.NewInt(1000 + s.serial)
	t.NotBefore = made.Add(-5 * time.Minute)
	parent, signer := t, key
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	return &pair{c, der, key}, err
}

// tlsFiles writes certificates and keys for a running server into dir; they
// are thrown away with it.
func (s *pkiSet) tlsFiles(dir, node string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, p := range map[string]*pair{"ca": s.cas["etcd/ca"], "server": s.leaves[node]["pki/etcd/server"], "peer": s.leaves[node]["pki/etcd/peer"], "client": s.leaves[node]["pki/apiserver-etcd-client"]} {
		k, err := x509.MarshalECPrivateKey(p.key)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.pem(), 0o600); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC " + "PRIVATE KEY", Bytes: k}), 0o600); err != nil {
			return err
		}
	}
	return nil
}

type keyRecord struct {
	Path      string `json:"path"`
	User      string `json:"user,omitempty"`
	Algorithm string `json:"algorithm"`
	SPKI      string `json:"spkiSha256"`
	Mode      string `json:"mode"`
	MTime     string `json:"mtime"`
}

func record(path, user string, pub any) (keyRecord, error) {
	der, err := x509.MarshalPKIXPublicKey(pub)
	sum := sha256.Sum256(der)
	return keyRecord{path, user, "ECDSA-P256", hex.EncodeToString(sum[:]), "0600", made.Format(time.RFC3339)}, err
}

// write puts certificates, kubeconfigs without keys and KEYS.json under a root.
func (s *pkiSet) write(root string, m machine) error {
	etc := filepath.Join(root, "etc/kubernetes")
	put := func(rel string, b []byte) error {
		p := filepath.Join(etc, rel)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		return os.WriteFile(p, b, 0o644)
	}
	var keys []keyRecord
	add := func(path, user string, pub any) error {
		r, err := record(path, user, pub)
		keys = append(keys, r)
		return err
	}
	for _, name := range []string{"ca", "etcd/ca", "front-proxy-ca"} {
		if err := put("pki/"+name+".crt", s.cas[name].pem()); err != nil {
			return err
		}
		if err := add("/etc/kubernetes/pki/"+name+".key", "", &s.cas[name].key.PublicKey); err != nil {
			return err
		}
	}
	der, err := x509.MarshalPKIXPublicKey(&s.sa.PublicKey)
	if err != nil {
		return err
	}
	if err := put("pki/sa.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})); err != nil {
		return err
	}
	if err := add("/etc/kubernetes/pki/sa.key", "", &s.sa.PublicKey); err != nil {
		return err
	}
	for _, name := range []string{"pki/apiserver", "pki/apiserver-etcd-client", "pki/apiserver-kubelet-client", "pki/etcd/healthcheck-client", "pki/etcd/peer", "pki/etcd/server", "pki/front-proxy-client"} {
		p := s.leaves[m.Name][name]
		if err := put(name+".crt", p.pem()); err != nil {
			return err
		}
		if err := add("/etc/kubernetes/"+name+".key", "", &p.key.PublicKey); err != nil {
			return err
		}
	}
	ca := base64.StdEncoding.EncodeToString(s.cas["ca"].pem())
	redacted := base64.StdEncoding.EncodeToString([]byte("REDACTED"))
	for _, k := range []struct{ file, user, server string }{
		{"admin.conf", "kubernetes-admin", "api.k8s.example"},
		{"controller-manager.conf", "system:kube-controller-manager", m.IP},
		{"scheduler.conf", "system:kube-scheduler", m.IP},
	} {
		p := s.leaves[m.Name][k.file]
		if err := put(k.file, fmt.Appendf(nil, kubeconfig, ca, k.server, k.user, k.user, k.user, k.user,
			"    client-certificate-data: "+base64.StdEncoding.EncodeToString(p.pem())+"\n    client-key-data: "+redacted)); err != nil {
			return err
		}
		if err := add("/etc/kubernetes/"+k.file, k.user, &p.key.PublicKey); err != nil {
			return err
		}
	}
	user := "system:node:" + m.Name
	if err := put("kubelet.conf", fmt.Appendf(nil, kubeconfig, ca, m.IP, user, user, user, user,
		"    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem\n    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem")); err != nil {
		return err
	}
	kp := filepath.Join(root, "var/lib/kubelet/pki")
	if err := os.MkdirAll(kp, 0o755); err != nil {
		return err
	}
	p := s.leaves[m.Name]["kubelet.pem"]
	dated := "kubelet-client-2026-03-02-10-00-00.pem"
	if err := os.WriteFile(filepath.Join(kp, dated), p.pem(), 0o644); err != nil {
		return err
	}
	if err := os.Symlink(dated, filepath.Join(kp, "kubelet-client-current.pem")); err != nil {
		return err
	}
	if err := add("/var/lib/kubelet/pki/"+dated, "", &p.key.PublicKey); err != nil {
		return err
	}
	b, err := json.MarshalIndent(keys, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, "coldplane"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "coldplane/KEYS.json"), append(b, '\n'), 0o644)
}

const kubeconfig = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: https://%s:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: %s
  name: %s@kubernetes
current-context: %s@kubernetes
kind: Config
users:
- name: %s
  user:
%s
`
