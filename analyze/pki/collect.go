package pki

import (
	"path"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/kubeconfig"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
)

// PKIDir is kubeadm's certificate directory.
const PKIDir = "/etc/kubernetes/pki"

// Files are the credentials of a node.
var Files = &analyze.Fact[*Node]{
	Name:  "pki.files",
	Kinds: []bundle.Kind{bundle.KindPKI, bundle.KindKubeconfig, bundle.KindKubelet},
	Needs: []analyze.Need{KeyIndex, staticpod.Manifests, kubeconfig.Files, kubelet.File, kubelet.CommandLine},
	Compute: func(c *analyze.Ctx) (*Node, error) {
		b := &builder{
			out:    &Node{Node: c.Node(), HasPKI: c.Node().HasDir(PKIDir)},
			reader: &reader{node: c.Node(), files: map[string]*Source{}},
			used:   map[string]bool{},
		}
		if k, err := KeyIndex.Get(c); err == nil {
			b.keys, b.out.Keys = k, k
		} else if r := bundle.ReasonOf(err); r != bundle.Absent && r != bundle.NotCollected {
			return nil, err
		}
		if d, err := staticpod.Manifests.Get(c); err == nil {
			b.manifests(d)
		}
		b.defaults()
		if k, err := kubeconfig.Files.Get(c); err == nil {
			b.kubeconfigs(k)
		}
		cfg, err := kubelet.File.Get(c)
		if err != nil {
			cfg = nil
		}
		flags, err := kubelet.CommandLine.Get(c)
		if err != nil {
			flags = nil
		}
		b.kubelet(cfg, flags)
		b.caPairs()
		b.unused()
		if len(b.out.Credentials)+len(b.out.CAs)+len(b.out.Unused)+len(b.out.SA) == 0 {
			return nil, analyze.Missing(bundle.KindPKI, c.Node().Name, bundle.NotCollected, "")
		}
		return b.out, nil
	},
}

// A builder gathers the credentials of one node.
type builder struct {
	*reader
	out  *Node
	used map[string]bool // paths somebody was seen to use, also after links
	pod  map[string]*staticpod.Pod
}

func (b *builder) use(p string) *Source {
	s := b.source(p)
	b.used[s.Path] = true
	if s.Resolved != "" {
		b.used[s.Resolved] = true
	}
	return s
}

// onHost maps a flag's path to the host, through the pod's mounts.
func onHost(p *staticpod.Pod, f staticpod.Flag) string {
	if m := p.Resolve(f.Container, f.Value); m.Kind == staticpod.Host {
		return m.HostPath
	}
	return path.Clean("/" + f.Value)
}

func useOf(p *staticpod.Pod, f staticpod.Flag) Use { return Use{p.Component(), f.Text(), f.Ref} }

// pair is a certificate and a key a component is given by two flags.
type pair struct {
	component, cert, key string
	role                 Role
	server, client       bool
}

var pairs = []pair{
	{staticpod.APIServer, "tls-cert-file", "tls-private-key-file", APIServer, true, false},
	{staticpod.APIServer, "etcd-certfile", "etcd-keyfile", APIServerEtcd, false, true},
	{staticpod.APIServer, "kubelet-client-certificate", "kubelet-client-key", APIServerKubelet, false, true},
	{staticpod.APIServer, "proxy-client-cert-file", "proxy-client-key-file", FrontProxy, false, true},
	{staticpod.Etcd, "cert-file", "key-file", EtcdServer, true, true},
	{staticpod.Etcd, "peer-cert-file", "peer-key-file", EtcdPeer, true, true},
	{staticpod.ControllerManager, "cluster-signing-cert-file", "cluster-signing-key-file", SigningCA, false, false},
	{staticpod.ControllerManager, "tls-cert-file", "tls-private-key-file", ControllerServing, true, false},
	{staticpod.Scheduler, "tls-cert-file", "tls-private-key-file", SchedulerServing, true, false},
}

var trusts = []struct {
	component, flag string
	role            CARole
}{
	{staticpod.APIServer, "client-ca-file", ClusterCA},
	{staticpod.APIServer, "etcd-cafile", EtcdServerCA},
	{staticpod.APIServer, "requestheader-client-ca-file", FrontProxyCA},
	{staticpod.APIServer, "kubelet-certificate-authority", KubeletCA},
	{staticpod.Etcd, "trusted-ca-file", EtcdCA},
	{staticpod.Etcd, "peer-trusted-ca-file", EtcdPeerCA},
	{staticpod.ControllerManager, "root-ca-file", RootCA},
}

func (b *builder) manifests(d *staticpod.Dir) {
	b.pod = map[string]*staticpod.Pod{}
	for _, name := range staticpod.Components() {
		if p := d.Component(name); p != nil {
			b.pod[name] = p
		}
	}
	for _, pr := range pairs {
		p := b.pod[pr.component]
		if p == nil {
			continue
		}
		if f, ok := p.Setting(pr.cert); ok && f.Value != "" {
			b.pair(p, pr, f)
		}
	}
	for _, t := range trusts {
		p := b.pod[t.component]
		if p == nil {
			continue
		}
		if f, ok := p.Setting(t.flag); ok && f.Value != "" {
			b.out.CAs = append(b.out.CAs, &CA{Role: t.role, Node: b.node, Source: b.use(onHost(p, f)), Use: useOf(p, f)})
		}
	}
	if p := b.pod[staticpod.APIServer]; p != nil {
		b.sni(p)
		for _, f := range p.FlagAll("service-account-key-file") {
			for _, v := range f.List() {
				g := f
				g.Value = v
				b.out.SA = append(b.out.SA, &SAKey{Source: b.use(onHost(p, g)), Use: useOf(p, f)})
			}
		}
		b.signer(p, "service-account-signing-key-file")
	}
	if p := b.pod[staticpod.ControllerManager]; p != nil {
		b.signer(p, "service-account-private-key-file")
	}
}

func (b *builder) signer(p *staticpod.Pod, flag string) {
	if f, ok := p.Flag(flag); ok && f.Value != "" {
		b.out.SA = append(b.out.SA, &SAKey{Signing: true, Key: b.key(onHost(p, f)), Use: useOf(p, f)})
	}
}

func (b *builder) pair(p *staticpod.Pod, pr pair, f staticpod.Flag) *Credential {
	c := b.credential(pr.role, b.use(onHost(p, f)))
	c.Server, c.Client = pr.server, pr.client
	c.Users = append(c.Users, useOf(p, f))
	if k, ok := p.Setting(pr.key); ok && k.Value != "" {
		c.Key, c.KeyUse = b.key(onHost(p, k)), useOf(p, k)
	} else {
		c.Key = Key{State: KeyUnknown, Detail: "no --" + pr.key}
	}
	return c
}

// sni reads --tls-sni-cert-key=CERT,KEY[:NAMES].
func (b *builder) sni(p *staticpod.Pod) {
	for _, f := range p.FlagAll("tls-sni-cert-key") {
		v, _, _ := strings.Cut(f.Value, ":")
		cert, key, ok := strings.Cut(v, ",")
		if !ok {
			continue
		}
		g := f
		g.Value = cert
		c := b.credential(APIServerSNI, b.use(onHost(p, g)))
		c.Server = true
		c.Users = append(c.Users, useOf(p, f))
		g.Value = key
		c.Key, c.KeyUse = b.key(onHost(p, g)), useOf(p, f)
	}
}

// credential makes a credential of a source's certificates and lists it.
func (b *builder) credential(r Role, s *Source) *Credential {
	c := &Credential{Role: r, Node: b.node, Source: s}
	if cs := s.Certificates(); len(cs) > 0 {
		c.Leaf, c.Rest = cs[0], cs[1:]
	}
	b.out.Credentials = append(b.out.Credentials, c)
	return c
}

// standard is what kubeadm keeps in its certificate directory:
// cmd/kubeadm/app/phases/certs/certlist.go.
var standard = []struct {
	name, component string
	role            Role
	server, client  bool
}{
	{"apiserver", staticpod.APIServer, APIServer, true, false},
	{"apiserver-etcd-client", staticpod.APIServer, APIServerEtcd, false, true},
	{"apiserver-kubelet-client", staticpod.APIServer, APIServerKubelet, false, true},
	{"front-proxy-client", staticpod.APIServer, FrontProxy, false, true},
	{"etcd/server", staticpod.Etcd, EtcdServer, true, true},
	{"etcd/peer", staticpod.Etcd, EtcdPeer, true, true},
	{"etcd/healthcheck-client", "", EtcdHealthcheck, false, true},
}

var standardCAs = []struct {
	name, component string
	role            CARole
}{
	{"ca", staticpod.APIServer, ClusterCA},
	{"etcd/ca", staticpod.Etcd, EtcdCA},
	{"etcd/ca", staticpod.Etcd, EtcdPeerCA},
	{"front-proxy-ca", staticpod.APIServer, FrontProxyCA},
}

// defaults adds kubeadm's files by their names where no manifest says what
// its component uses. A file whose component uses another one is not judged.
func (b *builder) defaults() {
	for _, s := range standard {
		p := PKIDir + "/" + s.name + ".crt"
		if b.pod[s.component] != nil || b.used[p] {
			continue
		}
		if src := b.source(p); src.Err == nil {
			c := b.credential(s.role, b.use(p))
			c.Server, c.Client = s.server, s.client
			c.Key = b.key(PKIDir + "/" + s.name + ".key")
		}
	}
	for _, s := range standardCAs {
		p := PKIDir + "/" + s.name + ".crt"
		if b.pod[s.component] != nil {
			continue
		}
		if src := b.source(p); src.Err == nil {
			b.out.CAs = append(b.out.CAs, &CA{Role: s.role, Node: b.node, Source: b.use(p)})
		}
	}
	if p := PKIDir + "/sa.pub"; b.pod[staticpod.APIServer] == nil && b.source(p).Err == nil {
		b.out.SA = append(b.out.SA, &SAKey{Source: b.use(p)})
	}
	if p := PKIDir + "/sa.key"; b.pod[staticpod.APIServer] == nil && b.pod[staticpod.ControllerManager] == nil {
		if k := b.key(p); k.State == KeyKnown || k.State == KeyRedacted {
			b.out.SA = append(b.out.SA, &SAKey{Signing: true, Key: k})
		}
	}
}

// unused lists what lies below the PKI directory and nobody was seen to use.
func (b *builder) unused() {
	for _, p := range b.walk(PKIDir, 0) {
		if s := b.source(p); !b.used[s.Path] && !b.used[s.Resolved] {
			b.out.Unused = append(b.out.Unused, s)
		}
	}
}

// CAKey is what is known of a CA's private key at a path.
func (n *Node) CAKey(p string) Key {
	for _, c := range n.caPairs {
		if c.Key.Path == p {
			return c.Key
		}
	}
	return Key{State: KeyUnknown, Path: p}
}

// CAPairs returns the CAs of kubeadm's directory, and the one the
// controller-manager signs with, beside their keys.
func (n *Node) CAPairs() []*Credential { return n.caPairs }

// caPairs gathers the CAs whose keys may be on the node.
func (b *builder) caPairs() {
	done := map[string]bool{}
	for _, c := range b.out.ByRole(SigningCA) {
		b.out.caPairs = append(b.out.caPairs, c)
		done[c.Source.Path] = true
	}
	for _, s := range standardCAs {
		p := PKIDir + "/" + s.name + ".crt"
		if done[p] || b.source(p).Err != nil {
			continue
		}
		done[p] = true
		c := &Credential{Role: SigningCA, Node: b.node, Source: b.use(p), Key: b.key(PKIDir + "/" + s.name + ".key")}
		if cs := c.Source.Certificates(); len(cs) > 0 {
			c.Leaf, c.Rest = cs[0], cs[1:]
		}
		b.out.caPairs = append(b.out.caPairs, c)
	}
}
