package pki

import (
	"crypto/x509"

	"coldplane/analyze/kubeconfig"
	"coldplane/bundle"
	"coldplane/bundle/decode/spki"
)

// A Role says what a certificate is for.
type Role string

// Roles of certificates with a private key beside them.
const (
	APIServer         Role = "apiserver"                // the API server's serving certificate
	APIServerSNI      Role = "apiserver-sni"            // further serving certificates by name
	APIServerEtcd     Role = "apiserver-etcd-client"    // API server to etcd
	APIServerKubelet  Role = "apiserver-kubelet-client" // API server to kubelets
	FrontProxy        Role = "front-proxy-client"       // API server to extension API servers
	EtcdServer        Role = "etcd-server"
	EtcdPeer          Role = "etcd-peer"
	EtcdHealthcheck   Role = "etcd-healthcheck-client" // for scripts: kubeadm's probes no longer use it
	ControllerServing Role = "controller-manager-serving"
	SchedulerServing  Role = "scheduler-serving"
	KubeletServing    Role = "kubelet-serving"
	KubeletClient     Role = "kubelet-client"
	KubeconfigClient  Role = "kubeconfig"
	SigningCA         Role = "cluster-signing-ca" // the CA with which certificates are issued in the cluster
)

// A Use says which process uses a file, by which flag.
type Use struct {
	Process string
	Flag    string     // as written: "--tls-cert-file=/etc/kubernetes/pki/apiserver.crt"
	Ref     bundle.Ref // its line
}

// A Credential is a certificate that proves somebody's identity, with its
// key, its users and its verifiers.
type Credential struct {
	Role   Role
	Node   *bundle.Node
	Source *Source
	Leaf   *spki.Block   // nil when the source cannot be read or holds no certificate
	Rest   []*spki.Block // further certificates of the same source
	Key    Key
	KeyUse Use // the flag that names the key, when it is another one
	Users  []Use

	Server bool // presented to clients
	Client bool // presented to servers

	// Config is the kubeconfig the credential stands in or is named by.
	Config *kubeconfig.Config
}

// Name is the subject of findings about the credential: the short file name.
func (c *Credential) Name() string { return c.Source.Name }

// Cert is the parsed leaf, or nil.
func (c *Credential) Cert() *x509.Certificate {
	if c.Leaf == nil {
		return nil
	}
	return c.Leaf.Cert
}

// Ref points at the leaf.
func (c *Credential) Ref() bundle.Ref { return c.Source.Line(c.Leaf) }

// UsedBy names the first user and its flag, for messages; "" when nobody is known.
func (c *Credential) UsedBy() string {
	if len(c.Users) == 0 {
		return ""
	}
	return c.Users[0].Process
}

// A CARole says what a CA file is trusted for.
type CARole string

// Roles of CA files.
const (
	ClusterCA    CARole = "cluster CA"      // clients of the API server: --client-ca-file
	EtcdCA       CARole = "etcd CA"         // clients of etcd: --trusted-ca-file
	EtcdPeerCA   CARole = "etcd peer CA"    // etcd peers: --peer-trusted-ca-file
	EtcdServerCA CARole = "etcd server CA"  // the API server's view: --etcd-cafile
	FrontProxyCA CARole = "front-proxy CA"  // --requestheader-client-ca-file
	KubeletCA    CARole = "kubelet CA"      // --kubelet-certificate-authority
	KubeletsCA   CARole = "kubelet clients" // the kubelet's clientCAFile
	RootCA       CARole = "root CA of pods" // --root-ca-file
	ConfigCA     CARole = "kubeconfig CA"   // certificate-authority(-data)
)

// A CA is a file of trust anchors as one verifier was told to use it.
type CA struct {
	Role   CARole
	Node   *bundle.Node
	Source *Source
	Use    Use // who trusts it; the zero Use when no flag was seen
	Config *kubeconfig.Config
}

// Certs returns the readable certificates of the file.
func (a *CA) Certs() []*x509.Certificate { return Certs(a.Source.Certificates()) }

// Name is the short file name.
func (a *CA) Name() string { return a.Source.Name }

// Shares reports whether two CA files have a certificate's key in common.
func (a *CA) Shares(b *CA) bool {
	for _, x := range a.Source.Certificates() {
		for _, y := range b.Source.Certificates() {
			if !x.SPKI.IsZero() && x.SPKI == y.SPKI {
				return true
			}
		}
	}
	return false
}

// A SAKey is one service-account key as a process was told to use it.
type SAKey struct {
	Source  *Source // file with public keys; nil for a signing key
	Key     Key     // the signing key; zero for verification keys
	Use     Use
	Signing bool
}

// Fingerprints returns the keys a verification file accepts. A private key
// counts by its public half, as in Kubernetes.
func (k *SAKey) Fingerprints() []spki.Fingerprint {
	if k.Signing {
		if k.Key.State == KeyKnown {
			return []spki.Fingerprint{k.Key.SPKI}
		}
		return nil
	}
	var out []spki.Fingerprint
	for _, b := range k.Source.PEM.Blocks {
		if !b.SPKI.IsZero() {
			out = append(out, b.SPKI)
		}
	}
	return out
}

// Node is the credentials of one node.
type Node struct {
	Node        *bundle.Node
	Credentials []*Credential // in a fixed order: control plane, etcd, kubeconfigs, kubelet
	CAs         []*CA
	SA          []*SAKey
	Unused      []*Source // PEM files below the PKI directory nobody was seen to use
	Keys        *Keys     // nil when there is no list
	HasPKI      bool      // the PKI directory was collected

	caPairs []*Credential
}

// ByRole returns the credentials of a role.
func (n *Node) ByRole(r Role) []*Credential {
	var out []*Credential
	for _, c := range n.Credentials {
		if c.Role == r {
			out = append(out, c)
		}
	}
	return out
}

// CA returns the node's CA file of a role, or nil.
func (n *Node) CA(r CARole) *CA {
	for _, a := range n.CAs {
		if a.Role == r {
			return a
		}
	}
	return nil
}
