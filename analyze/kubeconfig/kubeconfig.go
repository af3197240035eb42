package kubeconfig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"coldplane/analyze/yamlfile"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
)

// A Role says what a kubeconfig is for.
type Role string

// Roles. kubeadm writes the first six into /etc/kubernetes.
const (
	Admin             Role = "admin"
	SuperAdmin        Role = "super-admin"
	ControllerManager Role = "controller-manager"
	Scheduler         Role = "scheduler"
	Kubelet           Role = "kubelet"
	Bootstrap         Role = "bootstrap-kubelet"
	Copy              Role = "copy" // under a home directory
	Other             Role = "other"
)

// A Config is one kubeconfig as far as its current context goes.
type Config struct {
	File *bundle.File
	Doc  *yamlfile.Doc
	Role Role
	Name string // short name for messages: "admin.conf", "/root/.kube/config"

	Server        *url.URL // nil when missing or not a URL
	ServerText    string
	ServerRef     bundle.Ref
	TLSServerName string
	SkipVerify    bool // insecure-skip-tls-verify

	User    string
	Auth    Auth
	TokenID string // public half of a bootstrap token; "" for other credentials
	CA      Material
	Cert    Material
	Key     Material

	origin string
	stat   func(string) (*bundle.File, error)
}

// Auth is the kind of credential a kubeconfig holds.
type Auth string

// Kinds of credentials.
const (
	AuthCert  Auth = "client certificate"
	AuthToken Auth = "token"
	AuthExec  Auth = "exec or auth provider"
	AuthBasic Auth = "password"
	AuthNone  Auth = "none"
)

// Material is PEM that stands in a kubeconfig or in a file it names.
type Material struct {
	Set    bool       // the kubeconfig has the field
	Inline bool       // the PEM is in the kubeconfig itself
	Path   string     // absolute path of the file named; "" when inline
	Ref    bundle.Ref // the kubeconfig's line, or the file
	Line   bundle.Ref // always the kubeconfig's line
	PEM    spki.File
	Err    error // unreadable: *bundle.MissingError or what is wrong with the inline data
}

// Redacted reports whether the material was taken out before the evidence was
// handed over.
func (m *Material) Redacted() bool { return m.PEM.Marker != "" }

// Ref points at a value of the kubeconfig.
func (c *Config) Ref(pointer string) bundle.Ref { return c.Doc.Ref(pointer) }

// Host is the host the kubeconfig dials, without port and brackets.
func (c *Config) Host() string {
	if c.Server == nil {
		return ""
	}
	return c.Server.Hostname()
}

// VerifiedName is the name the client looks for in the server's certificate.
func (c *Config) VerifiedName() string {
	if c.TLSServerName != "" {
		return c.TLSServerName
	}
	return c.Host()
}

// file is the shape of a kubeconfig; fields with secrets are kept no longer
// than read takes.
type file struct {
	Kind           string `json:"kind"`
	CurrentContext string `json:"current-context"`
	Clusters       []struct {
		Name    string `json:"name"`
		Cluster struct {
			Server     string `json:"server"`
			ServerName string `json:"tls-server-name"`
			SkipVerify bool   `json:"insecure-skip-tls-verify"`
			CAFile     string `json:"certificate-authority"`
			CAData     string `json:"certificate-authority-data"`
		} `json:"cluster"`
	} `json:"clusters"`
	Contexts []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Users []struct {
		Name string `json:"name"`
		User struct {
			CertFile     string `json:"client-certificate"`
			CertData     string `json:"client-certificate-data"`
			KeyFile      string `json:"client-key"`
			KeyData      string `json:"client-key-data"`
			Token        string `json:"token"`
			TokenFile    string `json:"tokenFile"`
			Password     string `json:"password"`
			Exec         any    `json:"exec"`
			AuthProvider any    `json:"auth-provider"`
		} `json:"user"`
	} `json:"users"`
}

// Read reads one kubeconfig. The error is a *bundle.MissingError.
func Read(f *bundle.File) (*Config, error) {
	y, err := yamlfile.Read(f)
	if err != nil {
		return nil, err
	}
	if len(y.Docs) == 0 || y.Docs[0].Root == nil {
		return nil, yamlfile.Fault(f, errors.New("an empty file"))
	}
	c, err := parse(y.Docs[0], f.Origin, f.Node.Stat)
	if err != nil {
		return nil, yamlfile.Fault(f, err)
	}
	c.File = f
	return c, nil
}

// parse reads a document; stat finds the files it names on its node.
func parse(d *yamlfile.Doc, origin string, stat func(string) (*bundle.File, error)) (*Config, error) {
	var k file
	if err := d.Decode(&k); err != nil {
		return nil, err
	}
	if len(k.Clusters) == 0 && len(k.Users) == 0 {
		return nil, errors.New("not a kubeconfig: no clusters and no users")
	}
	c := &Config{Doc: d, origin: origin, stat: stat}
	c.Role, c.Name = role(origin)
	cluster, user := k.current()
	if cluster >= 0 {
		c.cluster(&k, cluster)
	}
	if user >= 0 {
		c.user(&k, user)
	}
	return c, nil
}

// current finds the cluster and the user of the current context; without one,
// the first of each.
func (k *file) current() (cluster, user int) {
	cluster, user = -1, -1
	wantCluster, wantUser, ctx := "", "", false
	for _, c := range k.Contexts {
		if c.Name == k.CurrentContext || len(k.Contexts) == 1 {
			wantCluster, wantUser, ctx = c.Context.Cluster, c.Context.User, true
			if c.Name == k.CurrentContext {
				break
			}
		}
	}
	for i, c := range k.Clusters {
		if cluster < 0 && (!ctx || c.Name == wantCluster) {
			cluster = i
		}
	}
	for i, u := range k.Users {
		if user < 0 && (!ctx || u.Name == wantUser) {
			user = i
		}
	}
	return cluster, user
}

func (c *Config) cluster(k *file, i int) {
	cl := k.Clusters[i].Cluster
	p := fmt.Sprintf("/clusters/%d/cluster", i)
	c.ServerText, c.ServerRef = cl.Server, c.Ref(p+"/server")
	if u, err := url.Parse(cl.Server); err == nil && u.Host != "" {
		c.Server = u
	}
	c.TLSServerName, c.SkipVerify = cl.ServerName, cl.SkipVerify
	c.CA = c.material(p+"/certificate-authority", cl.CAData, cl.CAFile)
}

func (c *Config) user(k *file, i int) {
	u := k.Users[i].User
	p := fmt.Sprintf("/users/%d/user", i)
	c.User = k.Users[i].Name
	c.TokenID = tokenID(u.Token)
	c.Cert = c.material(p+"/client-certificate", u.CertData, u.CertFile)
	c.Key = c.material(p+"/client-key", u.KeyData, u.KeyFile)
	switch {
	case c.Cert.Set:
		c.Auth = AuthCert
	case u.Exec != nil || u.AuthProvider != nil:
		c.Auth = AuthExec
	case u.Token != "" || u.TokenFile != "":
		c.Auth = AuthToken
	case u.Password != "":
		c.Auth = AuthBasic
	default:
		c.Auth = AuthNone
	}
}

// tokenID is the public half of a bootstrap token, ID.SECRET
// (k8s.io/cluster-bootstrap token api: six and sixteen of [a-z0-9]).
func tokenID(token string) string {
	id, secret, ok := strings.Cut(token, ".")
	if !ok || len(id) != 6 || len(secret) != 16 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return ""
	}
	return id
}

// material reads inline data, which wins over a file as in client-go, or the
// file named, relative to the kubeconfig's directory.
func (c *Config) material(pointer, data, name string) Material {
	switch {
	case data != "":
		m := Material{Set: true, Inline: true, Ref: c.Ref(pointer + "-data")}
		m.Line = m.Ref
		m.PEM, m.Err = inline(data)
		return m
	case name != "":
		m := Material{Set: true, Path: name, Ref: c.Ref(pointer)}
		m.Line = m.Ref
		if !path.IsAbs(name) {
			m.Path = path.Join(path.Dir(c.origin), name)
		}
		f, err := c.stat(m.Path)
		if err != nil {
			m.Err = err
			return m
		}
		m.Ref = f.Ref()
		b, err := f.Bytes(spki.MaxBytes)
		if err != nil {
			m.Err = err
			return m
		}
		m.PEM = spki.Parse(b)
		clear(b)
		return m
	}
	return Material{}
}

// inline decodes base64 data. A redaction marker may stand plain or encoded.
func inline(data string) (spki.File, error) {
	if marker, ok := spki.Marker([]byte(data)); ok {
		return spki.File{Marker: marker}, nil
	}
	if len(data) > spki.MaxBytes {
		return spki.File{Truncated: true}, fmt.Errorf("%d bytes of inline data, more than the limit of %d", len(data), spki.MaxBytes)
	}
	b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(data), ""))
	if err != nil {
		return spki.File{}, errors.New("inline data is not base64")
	}
	defer clear(b)
	return spki.Parse(b), nil
}

// role guesses a kubeconfig's purpose by its place.
func role(origin string) (Role, string) {
	base := path.Base(origin)
	if strings.Contains(origin, "/.kube/") {
		return Copy, origin
	}
	roles := map[string]Role{
		"admin.conf": Admin, "super-admin.conf": SuperAdmin, "controller-manager.conf": ControllerManager,
		"scheduler.conf": Scheduler, "kubelet.conf": Kubelet, "bootstrap-kubelet.conf": Bootstrap,
	}
	if r, ok := roles[base]; ok && path.Dir(origin) == "/etc/kubernetes" {
		return r, base
	}
	if path.Dir(origin) == "/etc/kubernetes" {
		return Other, base
	}
	return Other, origin
}
