package pki

import (
	"path"

	"coldplane/analyze/kubeconfig"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/staticpod"
)

// Places of the kubelet's own certificates: --cert-dir of the kubelet, and
// the names client-go's certificate manager gives (util/certificate).
const (
	kubeletPKI     = "/var/lib/kubelet/pki"
	CurrentClient  = kubeletPKI + "/kubelet-client-current.pem"
	CurrentServing = kubeletPKI + "/kubelet-server-current.pem"
	SelfSigned     = kubeletPKI + "/kubelet.crt"
)

// consumers are who reads kubeadm's kubeconfigs when no flag says so.
var consumers = map[kubeconfig.Role]string{
	kubeconfig.ControllerManager: staticpod.ControllerManager, kubeconfig.Scheduler: staticpod.Scheduler, kubeconfig.Kubelet: "kubelet",
	kubeconfig.Admin: "administrators", kubeconfig.SuperAdmin: "administrators", kubeconfig.Copy: "administrators",
}

func (b *builder) kubeconfigs(n *kubeconfig.Node) {
	for _, c := range n.Configs {
		if c.CA.Set {
			s := b.fromMaterial(c, &c.CA)
			b.out.CAs = append(b.out.CAs, &CA{Role: ConfigCA, Node: b.node, Source: s, Config: c, Use: Use{c.Name, "certificate-authority", c.CA.Line}})
		}
		if c.Auth != kubeconfig.AuthCert {
			continue
		}
		role := KubeconfigClient
		if c.Role == kubeconfig.Kubelet && !c.Cert.Inline {
			role = KubeletClient
		}
		cr := b.credential(role, b.fromMaterial(c, &c.Cert))
		cr.Client, cr.Config = true, c
		for _, u := range n.UsesOf(c.File.Origin) {
			cr.Users = append(cr.Users, Use{u.Process, u.Text, u.Ref})
		}
		if who := consumers[c.Role]; len(cr.Users) == 0 && who != "" {
			cr.Users = append(cr.Users, Use{Process: who, Flag: c.File.Origin, Ref: c.File.Ref()})
		}
		cr.Key = b.configKey(c)
	}
}

// fromMaterial makes a source of a kubeconfig's field. A file it names keeps
// its own name; inline data bears the kubeconfig's.
func (b *builder) fromMaterial(c *kubeconfig.Config, m *kubeconfig.Material) *Source {
	if !m.Inline {
		return b.use(m.Path)
	}
	return &Source{Node: b.node, Path: c.File.Origin, Name: c.Name, Ref: m.Ref, ModTime: c.File.ModTime, PEM: m.PEM, Err: m.Err, inline: true}
}

func (b *builder) configKey(c *kubeconfig.Config) Key {
	switch {
	case !c.Key.Set:
		if rec := b.keys.find(c.File.Origin, c.User); rec != nil {
			return Key{State: KeyKnown, SPKI: rec.fp, Algorithm: rec.Algorithm, Path: rec.Path, Ref: rec.ref}.check()
		}
		return Key{State: KeyUnknown, Path: c.File.Origin, Ref: c.File.Ref(), Detail: "no client-key"}
	case !c.Key.Inline:
		return b.key(c.Key.Path)
	}
	k := Key{State: KeyUnknown, Path: c.File.Origin, Ref: c.Key.Ref}
	if rec := b.keys.find(c.File.Origin, c.User); rec != nil {
		return Key{State: KeyKnown, SPKI: rec.fp, Algorithm: rec.Algorithm, Path: rec.Path, Ref: rec.ref, ModTime: rec.ModTime}.check()
	}
	if c.Key.Err != nil {
		k.State, k.Detail = KeyDamaged, c.Key.Err.Error()
		return k
	}
	return k.from(c.Key.PEM)
}

// kubelet adds the kubelet's rotated client certificate when no kubeconfig
// names it, its serving certificate, and the CA its own clients must have.
func (b *builder) kubelet(cfg *kubelet.Config, flags kubelet.Flags) {
	if !b.used[CurrentClient] {
		if s := b.source(CurrentClient); s.Err == nil {
			c := b.credential(KubeletClient, b.use(CurrentClient))
			c.Client = true
			c.Users = []Use{{Process: "kubelet", Flag: CurrentClient, Ref: s.Ref}}
			c.Key = b.key(CurrentClient)
		}
	}
	cert, key, u := SelfSigned, kubeletPKI+"/kubelet.key", Use{Process: "kubelet"}
	switch f, ok := flags.Get("tls-cert-file"); {
	case ok:
		cert, u.Flag, u.Ref = path.Clean(f.Value), "--tls-cert-file="+f.Value, f.Ref
		if k, ok := flags.Get("tls-private-key-file"); ok {
			key = path.Clean(k.Value)
		}
	case cfg != nil && cfg.TLSCertFile != "":
		cert, key, u.Flag, u.Ref = cfg.TLSCertFile, cfg.TLSPrivateKeyFile, "tlsCertFile: "+cfg.TLSCertFile, cfg.Doc.Ref("/tlsCertFile")
	case cfg != nil && cfg.ServerTLSBootstrap || b.source(CurrentServing).Err == nil:
		cert, key = CurrentServing, CurrentServing
	}
	if s := b.source(cert); s.Err == nil {
		if u.Flag == "" {
			u.Flag, u.Ref = cert, s.Ref
		}
		c := b.credential(KubeletServing, b.use(cert))
		c.Server = true
		c.Users = []Use{u}
		c.Key = b.key(key)
	}
	switch f, ok := flags.Get("client-ca-file"); {
	case ok:
		b.out.CAs = append(b.out.CAs, &CA{Role: KubeletsCA, Node: b.node, Source: b.use(f.Value), Use: Use{"kubelet", "--client-ca-file=" + f.Value, f.Ref}})
	case cfg != nil && cfg.Authentication.X509.ClientCAFile != "":
		p := cfg.Authentication.X509.ClientCAFile
		b.out.CAs = append(b.out.CAs, &CA{Role: KubeletsCA, Node: b.node, Source: b.use(p),
			Use: Use{"kubelet", "clientCAFile: " + p, cfg.Doc.Ref("/authentication/x509/clientCAFile")}})
	}
}
