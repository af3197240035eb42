package signature

// golang holds the texts of the Go standard library and of pflag.
func golang() []Signature {
	return []Signature{
		{ID: "S01", Texts: []string{"x509: certificate has expired or is not yet valid"}, By: Etcd | APIServer | ControllerManager | Scheduler | Kubelet | Kubeadm | Containerd | VIP, In: Text,
			Means:    "Certificate outside its validity",
			Pattern:  `certificate has expired or is not yet valid:? ?(?P<when>current time \S+ is (?:after|before) [0-9TZ:+-]+)?`,
			Versions: "go1.26", Source: "golang/go src/crypto/x509/verify.go",
			Rules: []string{"PKI101", "NOD103"}},
		{ID: "S02", Texts: []string{"x509: certificate is valid for", "x509: certificate is not valid for any names"}, By: Etcd | APIServer | ControllerManager | Scheduler | Kubelet | Kubeadm | Containerd | VIP, In: Text,
			Means:    "Name missing from the certificate",
			Versions: "go1.26", Source: "golang/go src/crypto/x509/verify.go",
			Rules: []string{"PKI205"}},
		{ID: "S03", Texts: []string{"x509: certificate signed by unknown authority"}, By: Etcd | APIServer | ControllerManager | Scheduler | Kubelet | Kubeadm | Containerd | VIP, In: Text,
			Means:    "Certificate issuer not trusted",
			Versions: "go1.26", Source: "golang/go src/crypto/x509/verify.go",
			Rules: []string{"PKI202", "PKI203"}},
		{ID: "S04", Texts: []string{"unknown certificate authority"}, By: Etcd | APIServer | ControllerManager | Scheduler | Kubelet | Kubeadm | Containerd | VIP, In: Text,
			Means:    "Peer does not know our CA",
			Versions: "go1.26", Source: "golang/go src/crypto/tls/alert.go",
			Rules: []string{"PKI202"}},
		{ID: "S05", Texts: []string{"TLS handshake error from"}, By: APIServer | ControllerManager | Scheduler | Kubelet | Etcd, In: Text,
			Means:    "TLS handshake with a client failed",
			Pattern:  `TLS handshake error from (?P<remote>\S+?): (?P<error>.+)`,
			Versions: "go1.26", Source: "golang/go src/net/http/server.go",
			Rules: []string{"QRM108", "PKI101"}},
		{ID: "S06", Texts: []string{"unknown flag: "}, By: Etcd | APIServer | ControllerManager | Scheduler | Kubelet | Kubeadm | Containerd | VIP, In: Text,
			Means:    "Flag is unknown",
			Pattern:  `unknown flag: (?P<flag>--[A-Za-z0-9-]+)`,
			Versions: "go1.26", Source: "spf13/pflag errors.go",
			Rules: []string{"STA203", "UPG301"}},
	}
}
