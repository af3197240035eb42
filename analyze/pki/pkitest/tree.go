package pkitest

import (
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"coldplane/bundle/decode/spki"
)

// Make turns placeholders of a tree into credentials and removes its spec.
func Make(files map[string][]byte) error {
	s, err := takeSpec(files)
	if err != nil {
		return err
	}
	m := &maker{spec: s, files: files, cas: map[string]*identity{}}
	for _, prefix := range prefixes(files) {
		if err := m.node(prefix); err != nil {
			return fmt.Errorf("node %q: %w", prefix, err)
		}
	}
	return m.insert()
}

var pemMark = regexp.MustCompile(`\{\{(pem|b64) ([^}]+)\}\}`)

// insert replaces {{pem CA}} and {{b64 CA}} in specs of databases by that
// CA's certificate, as a quoted string and in base64.
func (m *maker) insert() error {
	var failed error
	for p, b := range m.files {
		if !strings.HasSuffix(p, "!etcd") {
			continue
		}
		m.files[p] = pemMark.ReplaceAllFunc(b, func(mark []byte) []byte {
			f := pemMark.FindSubmatch(mark)
			id, err := m.ca(string(f[2]), string(f[2]))
			if err != nil {
				failed = err
				return nil
			}
			pem := string(certPEM(id))
			if string(f[1]) == "b64" {
				return []byte(base64.StdEncoding.EncodeToString([]byte(pem)))
			}
			return []byte(`"` + strings.ReplaceAll(pem, "\n", `\n`) + `"`)
		})
	}
	return failed
}

var inTree = regexp.MustCompile(`^(nodes/[^/]+/)?(etc/kubernetes|var/lib/kubelet)/`)

// prefixes lists where node roots begin: "" or "nodes/NAME/".
func prefixes(files map[string][]byte) []string {
	seen := map[string]bool{}
	for p := range files {
		if m := inTree.FindStringSubmatch(p); m != nil {
			seen[m[1]] = true
		}
	}
	var out []string
	for p := range seen {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

type maker struct {
	*spec
	files map[string][]byte
	cas   map[string]*identity

	prefix, name, ip, endpoint string // of the node at hand
	index                      []map[string]string
}

func find(b []byte, expr string) string {
	m := regexp.MustCompile(expr).FindSubmatch(b)
	if m == nil {
		return ""
	}
	return string(m[1])
}

// standard leaves: name, CA, server, client.
var standard = []struct {
	name, ca       string
	server, client bool
}{
	{"apiserver", "ca", true, false},
	{"apiserver-kubelet-client", "ca", false, true},
	{"apiserver-etcd-client", "etcd/ca", false, true},
	{"front-proxy-client", "front-proxy-ca", false, true},
	{"etcd/server", "etcd/ca", true, true},
	{"etcd/peer", "etcd/ca", true, true},
	{"etcd/healthcheck-client", "etcd/ca", false, true},
}

// node fills one node's tree.
func (m *maker) node(prefix string) error {
	m.prefix, m.index = prefix, nil
	at := func(p string) []byte { return m.files[prefix+p] }
	manifests := append(at("etc/kubernetes/manifests/kube-apiserver.yaml"), at("etc/kubernetes/manifests/etcd.yaml")...)
	m.name = find(at("etc/kubernetes/kubelet.conf"), `system:node:([a-z0-9.-]+)`)
	if m.name == "" {
		m.name = find(manifests, `--name=([a-z0-9.-]+)`)
	}
	if m.name == "" {
		m.name = "cp1"
	}
	m.ip = find(manifests, `--advertise-address=(\S+)`)
	if m.ip == "" {
		m.ip = find(manifests, `--advertise-client-urls=https://([0-9.]+)`)
	}
	cfg := append(at("kubeadm-config.yaml"), m.files["kubeadm-config.yaml"]...)
	m.endpoint = find(cfg, `controlPlaneEndpoint: ([a-z0-9.-]+)`)

	for _, ca := range []string{"ca", "etcd/ca", "front-proxy-ca"} {
		if err := m.caFile(ca); err != nil {
			return err
		}
	}
	for _, s := range standard {
		if m.placeholder("etc/kubernetes/pki/" + s.name + ".crt") {
			if err := m.leafFile(s.name, s.ca, s.server, s.client); err != nil {
				return err
			}
		}
	}
	if err := m.serviceAccount(); err != nil {
		return err
	}
	for _, n := range []string{"admin", "super-admin", "controller-manager", "scheduler", "kubelet"} {
		if p := "etc/kubernetes/" + n + ".conf"; strings.Contains(string(at(p)), "users: []") {
			if err := m.kubeconfig(n+".conf", p, n+".conf"); err != nil {
				return err
			}
		}
	}
	if len(m.of(m.name, "root/.kube/config")) > 0 {
		m.files[prefix+"root/.kube/config"] = at("etc/kubernetes/admin.conf")
		if err := m.kubeconfig("root/.kube/config", "root/.kube/config", "admin.conf"); err != nil {
			return err
		}
	}
	if len(m.of(m.name, "kubelet.crt")) > 0 {
		if err := m.kubeletServing(); err != nil {
			return err
		}
	}
	if m.keys == "index" {
		b, err := json.MarshalIndent(m.index, "", " ")
		if err != nil {
			return err
		}
		m.files[prefix+"coldplane/KEYS.json"] = append(b, '\n')
	}
	return nil
}

func (m *maker) placeholder(p string) bool {
	b, ok := m.files[m.prefix+p]
	return ok && strings.HasPrefix(string(b), "placeholder")
}

// ca returns a CA by name. "ca@NODE" is a CA of the same subject made on that
// node; any other new name is a CA that bears the subject of like.
func (m *maker) ca(name, like string) (*identity, error) {
	if id := m.cas[name]; id != nil {
		return id, nil
	}
	cn := map[string]string{"ca": "kubernetes", "etcd/ca": "etcd-ca", "front-proxy-ca": "front-proxy-ca"}
	subject := cn[name]
	if subject == "" {
		subject = cn[like]
	}
	if subject == "" {
		subject = name
	}
	f := m.of(m.name, name)
	r := request{seed: name, cn: subject, sans: nil, ca: true, from: m.at, to: m.at.Add(m.caLife), alg: f["alg"]}
	if err := r.dates(f); err != nil {
		return nil, err
	}
	if f["key"] != "" {
		r.keyName = f["key"]
	}
	id, err := issue(r, nil)
	if err == nil {
		m.cas[name] = id
	}
	return id, err
}

// caFile writes a CA's certificate and key. A change for one node only
// (key=, from=, to=) makes another CA of that name there.
func (m *maker) caFile(name string) error {
	p := "etc/kubernetes/pki/" + name + ".crt"
	if !m.placeholder(p) {
		return nil
	}
	f := m.of(m.name, name)
	id, err := m.caHere(name)
	if err != nil {
		return err
	}
	ids := []*identity{id}
	for _, k := range []string{"add", "first"} {
		if f[k] == "" {
			continue
		}
		o, err := m.ca(f[k], name)
		if err != nil {
			return err
		}
		if ids = append(ids, o); k == "first" {
			slices.Reverse(ids)
		}
	}
	return m.write(name, p, f, ids, id.key)
}

// caHere is the CA a node's own file holds: its leaves and kubeconfigs are
// made with the cluster's one all the same.
func (m *maker) caHere(name string) (*identity, error) {
	for _, c := range m.changes {
		if c.name == name && c.node == m.name && c.fields["ca"] != "" {
			return m.ca(c.fields["ca"], name)
		}
	}
	return m.ca(name, name)
}

func (r *request) dates(f map[string]string) error {
	for k, t := range map[string]*time.Time{"from": &r.from, "to": &r.to} {
		if f[k] == "" {
			continue
		}
		v, err := parse(f[k])
		if err != nil {
			return err
		}
		*t = v
	}
	return nil
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// apply turns fields into a request.
func (r *request) apply(f map[string]string) error {
	if f["cn"] != "" {
		r.cn = f["cn"]
	}
	if o, ok := f["o"]; ok {
		r.org = list(o)
	}
	if s, ok := f["san"]; ok {
		r.sans = list(s)
	}
	r.sans = append(r.sans, list(f["san+"])...)
	r.sans = slices.DeleteFunc(r.sans, func(s string) bool { return slices.Contains(list(f["san-"]), s) })
	if u, ok := f["usage"]; ok {
		r.usages = nil
		for _, w := range list(u) {
			switch w {
			case "server":
				r.usages = append(r.usages, x509.ExtKeyUsageServerAuth)
			case "client":
				r.usages = append(r.usages, x509.ExtKeyUsageClientAuth)
			case "code":
				r.usages = append(r.usages, x509.ExtKeyUsageCodeSigning)
			case "ca":
				r.ca = true
			}
		}
	}
	r.alg, r.sha1, r.negative, r.keyName = f["alg"], f["sig"] == "sha1", f["serial"] == "negative", f["key"]
	return r.dates(f)
}

// leaf makes a certificate and those that follow it in its file.
func (m *maker) leaf(r request, caName string, f map[string]string) ([]*identity, error) {
	if err := r.apply(f); err != nil {
		return nil, err
	}
	name := caName
	if f["ca"] != "" {
		name = f["ca"]
	}
	ca, err := m.ca(name, caName)
	if err != nil {
		return nil, err
	}
	ids := []*identity{nil}
	if f["via"] != "" {
		mid, err := issue(request{seed: f["via"], cn: f["via"], ca: true, from: r.from, to: r.to}, ca)
		if err != nil {
			return nil, err
		}
		ids, ca = append(ids, mid), mid
	}
	ids[0], err = issue(r, ca)
	return ids, err
}

func (m *maker) leafFile(name, ca string, server, client bool) error {
	f := m.of(m.name, name)
	r := request{seed: m.name + "/" + name, from: m.at, to: m.at.Add(m.life)}
	if server {
		r.usages = append(r.usages, x509.ExtKeyUsageServerAuth)
	}
	if client {
		r.usages = append(r.usages, x509.ExtKeyUsageClientAuth)
	}
	switch name {
	case "apiserver":
		r.cn = "kube-apiserver"
		r.sans = []string{m.name, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "10.96.0.1", m.ip}
		if m.endpoint != "" {
			r.sans = append(r.sans, m.endpoint)
		}
	case "apiserver-kubelet-client":
		r.cn, r.org = "kube-apiserver-kubelet-client", []string{"kubeadm:cluster-admins"}
	case "apiserver-etcd-client":
		r.cn = "kube-apiserver-etcd-client"
	case "front-proxy-client":
		r.cn = "front-proxy-client"
	case "etcd/healthcheck-client":
		r.cn = "kube-etcd-healthcheck-client"
	default:
		r.cn, r.sans = m.name, []string{m.name, "localhost", m.ip, "127.0.0.1", "::1"}
	}
	ids, err := m.leaf(r, ca, f)
	if err != nil {
		return err
	}
	return m.write(name, "etc/kubernetes/pki/"+name+".crt", f, ids, ids[0].key)
}

// write writes certificates and what is to be known of the key beside them.
func (m *maker) write(name, p string, f map[string]string, ids []*identity, k crypto.Signer) error {
	if f["beside"] != "" {
		var err error
		if k, err = key(f["beside"], ""); err != nil {
			return err
		}
	}
	data := certPEM(ids...)
	switch f["raw"] {
	case "garbage":
		data = []byte("-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n")
	case "empty":
		data = nil
	case "marker":
		data = []byte("REDACTED\n")
	case "cut":
		data = data[:len(data)/2]
	}
	m.files[m.prefix+p] = data
	keyPath := strings.TrimSuffix(p, path.Ext(p)) + ".key"
	if f["absent"] == "cert" || f["absent"] == "both" {
		delete(m.files, m.prefix+p)
	}
	if f["absent"] == "key" || f["absent"] == "both" {
		delete(m.files, m.prefix+keyPath)
		return nil
	}
	return m.writeKey(keyPath, "", k)
}

// writeKey leaves what evidence of a key there is to be.
func (m *maker) writeKey(p, user string, k crypto.Signer) error {
	switch m.keys {
	case "files":
		b, err := keyPEM(k)
		m.files[m.prefix+p] = b
		return err
	case "redacted":
		m.files[m.prefix+p] = []byte("private key removed\n")
		return nil
	}
	delete(m.files, m.prefix+p)
	return m.note(p, user, k)
}

func (m *maker) note(p, user string, k crypto.Signer) error {
	fp, err := spki.Of(k.Public())
	rec := map[string]string{"path": "/" + p, "algorithm": spki.Algorithm(k.Public()), "spkiSha256": fp.String(), "mode": "0600", "mtime": m.at.Format("2006-01-02T15:04:05Z")}
	if user != "" {
		rec["user"] = user
	}
	m.index = append(m.index, rec)
	return err
}

func (m *maker) serviceAccount() error {
	p := "etc/kubernetes/pki/sa.pub"
	if !m.placeholder(p) {
		return nil
	}
	f := m.of(m.name, "sa")
	name := "sa"
	if f["key"] != "" {
		name = f["key"]
	}
	k, err := key(name, f["alg"])
	if err != nil {
		return err
	}
	b, err := publicPEM(k)
	if err != nil {
		return err
	}
	if f["add"] != "" {
		o, err := key(f["add"], "")
		if err != nil {
			return err
		}
		more, err := publicPEM(o)
		if err != nil {
			return err
		}
		b = append(b, more...)
	}
	m.files[m.prefix+p] = b
	if f["beside"] != "" {
		if k, err = key(f["beside"], ""); err != nil {
			return err
		}
	}
	if f["absent"] == "key" {
		delete(m.files, m.prefix+"etc/kubernetes/pki/sa.key")
		return nil
	}
	return m.writeKey("etc/kubernetes/pki/sa.key", "", k)
}

var confUsers = map[string]struct {
	user, cn string
	org      []string
}{
	"admin.conf":              {"kubernetes-admin", "kubernetes-admin", []string{"kubeadm:cluster-admins"}},
	"super-admin.conf":        {"kubernetes-super-admin", "kubernetes-super-admin", []string{"system:masters"}},
	"controller-manager.conf": {"system:kube-controller-manager", "system:kube-controller-manager", nil},
	"scheduler.conf":          {"system:kube-scheduler", "system:kube-scheduler", nil},
	"kubelet.conf":            {"system:node:", "system:node:", []string{"system:nodes"}},
}

const rotated = "var/lib/kubelet/pki/kubelet-client-current.pem"

// kubeconfig writes one; like is the standard one whose identity it bears.
func (m *maker) kubeconfig(name, p, like string) error {
	f := m.of(m.name, name)
	if f["absent"] != "" {
		delete(m.files, m.prefix+p)
		return nil
	}
	u := confUsers[like]
	user, cn := u.user, u.cn
	if like == "kubelet.conf" {
		user, cn = user+m.name, cn+m.name
	}
	server := find(m.files[m.prefix+p], `server: (\S+)`)
	if f["server"] != "" {
		server = f["server"]
	}
	ca, err := m.ca("ca", "ca")
	if f["cadata"] != "" {
		ca, err = m.ca(f["cadata"], "ca")
	}
	if err != nil {
		return err
	}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	seed := m.name + "/" + name
	if f["same"] != "" {
		seed = m.name + "/" + f["same"]
	}
	ids, err := m.leaf(request{seed: seed, cn: cn, org: u.org, usages: client, from: m.at, to: m.at.Add(m.life)}, "ca", f)
	if err != nil {
		return err
	}
	k := ids[0].key
	if f["beside"] != "" {
		if k, err = key(f["beside"], ""); err != nil {
			return err
		}
	}
	data := certPEM(ids...)
	if f["raw"] == "garbage" {
		data = []byte("-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n")
	}
	auth := "    client-certificate-data: " + base64.StdEncoding.EncodeToString(data) + "\n    client-key-data: " + m.keyData(k) + "\n"
	if m.keys == "index" {
		if err := m.note(p, user, k); err != nil {
			return err
		}
	}
	if like == "kubelet.conf" {
		g := m.of(m.name, "kubelet-client-current.pem")
		rids, err := m.leaf(request{seed: seed + " rotated", cn: cn, org: u.org, usages: client, from: m.at, to: m.at.Add(m.life)}, "ca", g)
		if err != nil {
			return err
		}
		if g["absent"] == "" {
			m.files[m.prefix+rotated] = certPEM(rids...)
			if m.keys == "files" {
				b, err := keyPEM(rids[0].key)
				if err != nil {
					return err
				}
				m.files[m.prefix+rotated] = append(m.files[m.prefix+rotated], b...)
			}
			if g["raw"] == "garbage" {
				m.files[m.prefix+rotated] = data[:0:0]
			}
			if m.keys == "index" {
				rk := rids[0].key
				if g["beside"] != "" {
					if rk, err = key(g["beside"], ""); err != nil {
						return err
					}
				}
				if err := m.note(rotated, "", rk); err != nil {
					return err
				}
			}
		}
		if f["inline"] == "" {
			auth = "    client-certificate: /" + rotated + "\n    client-key: /" + rotated + "\n"
			if m.keys == "index" {
				m.index = slices.DeleteFunc(m.index, func(r map[string]string) bool { return r["path"] == "/"+p })
			}
		}
	}
	m.files[m.prefix+p] = []byte("apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: " + base64.StdEncoding.EncodeToString(certPEM(ca)) +
		"\n    server: " + server + "\n  name: kubernetes\ncontexts:\n- context:\n    cluster: kubernetes\n    user: " + user +
		"\n  name: " + user + "@kubernetes\ncurrent-context: " + user + "@kubernetes\nkind: Config\nusers:\n- name: " + user + "\n  user:\n" + auth)
	return nil
}

func (m *maker) keyData(k crypto.Signer) string {
	switch m.keys {
	case "files":
		b, err := keyPEM(k)
		if err == nil {
			return base64.StdEncoding.EncodeToString(b)
		}
	case "redacted":
		return base64.StdEncoding.EncodeToString([]byte("REMOVED"))
	}
	return "REDACTED"
}

// kubeletServing writes the kubelet's self-signed serving certificate.
func (m *maker) kubeletServing() error {
	f := m.of(m.name, "kubelet.crt")
	r := request{seed: m.name + "/kubelet.crt", cn: m.name + "@1775001600", sans: []string{m.name}, usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, from: m.at, to: m.at.Add(m.life)}
	if err := r.apply(f); err != nil {
		return err
	}
	ca, err := issue(request{seed: r.seed + "-ca", cn: m.name + "-ca@1775001600", ca: true, from: m.at, to: m.at.Add(m.caLife)}, nil)
	if err != nil {
		return err
	}
	id, err := issue(r, ca)
	if err != nil {
		return err
	}
	return m.write("kubelet.crt", "var/lib/kubelet/pki/kubelet.crt", f, []*identity{id, ca}, id.key)
}
