package staticpod

import (
	"path"
	"strings"
)

// A FileUse is a file that a component is told to read.
type FileUse struct {
	Flag  Flag
	Path  string // inside the container
	Start bool   // without it the process does not start
	Key   bool   // a private key
	Mount Mount
}

// Flags that name files, as the components of Kubernetes 1.22 to 1.37 and etcd
// 3.4 to 3.7 register them. Files of the first group are opened while the
// process starts, and a missing one ends it.
var (
	startFiles = map[string][]string{
		APIServer: {
			"tls-cert-file", "tls-private-key-file", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "client-ca-file",
			"requestheader-client-ca-file", "proxy-client-cert-file", "proxy-client-key-file", "kubelet-client-certificate", "kubelet-client-key",
			"kubelet-certificate-authority", "service-account-key-file", "service-account-signing-key-file", "encryption-provider-config",
			"authentication-config", "authorization-config", "admission-control-config-file", "audit-policy-file", "audit-webhook-config-file",
			"authentication-token-webhook-config-file", "authorization-webhook-config-file", "authorization-policy-file", "token-auth-file",
			"oidc-ca-file", "egress-selector-config-file", "tracing-config-file", "peer-ca-file", "cloud-config",
		},
		ControllerManager: {
			"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "client-ca-file", "requestheader-client-ca-file", "root-ca-file",
			"service-account-private-key-file", "cluster-signing-cert-file", "cluster-signing-key-file", "cluster-signing-kube-apiserver-client-cert-file",
			"cluster-signing-kube-apiserver-client-key-file", "cluster-signing-kubelet-client-cert-file", "cluster-signing-kubelet-client-key-file",
			"cluster-signing-kubelet-serving-cert-file", "cluster-signing-kubelet-serving-key-file", "cluster-signing-legacy-unknown-cert-file",
			"cluster-signing-legacy-unknown-key-file", "tls-cert-file", "tls-private-key-file", "cloud-config",
		},
		Scheduler: {
			"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "client-ca-file", "requestheader-client-ca-file", "config",
			"tls-cert-file", "tls-private-key-file", "policy-config-file",
		},
		Etcd: {
			"cert-file", "key-file", "client-cert-file", "client-key-file", "trusted-ca-file", "client-crl-file", "peer-cert-file", "peer-key-file",
			"peer-client-cert-file", "peer-client-key-file", "peer-trusted-ca-file", "peer-crl-file", "config-file",
		},
	}
	// written are paths that the process makes itself, or that are no files.
	written = map[string]bool{
		"audit-log-path": true, "cert-dir": true, "log-file": true, "log-dir": true, "data-dir": true, "wal-dir": true, "flex-volume-plugin-dir": true,
		"volume-plugin-dir": true, "etcd-prefix": true, "contention-profiling": true, "discovery-srv": true, "log-outputs": true,
		"audit-webhook-truncate-enabled": true,
	}
)

// Files returns the files a component's flags name, in the order of its
// command line. Values that are no absolute path, or hold variables, are left
// out; so are the paths the process makes itself.
func (p *Pod) Files() []FileUse {
	component := p.Component()
	start := map[string]bool{}
	for _, name := range startFiles[component] {
		start[name] = true
	}
	if len(start) == 0 {
		return nil
	}
	var out []FileUse
	add := func(f Flag, file string, isStart bool) {
		if !strings.HasPrefix(file, "/") || f.Dynamic {
			return
		}
		out = append(out, FileUse{Flag: f, Path: path.Clean(file), Start: isStart, Key: keyFlag(f.Name, file), Mount: p.Resolve(f.Container, file)})
	}
	seen := map[string]bool{}
	for _, f := range p.Flags {
		if f.Container != p.Main() {
			continue
		}
		seen[f.Name] = true
		switch {
		case f.Name == "tls-sni-cert-key": // cert,key or cert,key:names
			pair, _, _ := strings.Cut(f.Value, ":")
			for part := range strings.SplitSeq(pair, ",") {
				add(f, part, true)
			}
		case f.Name == "auth-token": // jwt,pub-key=file,priv-key=file,sign-method=...
			for _, opt := range f.List() {
				if name, file, ok := strings.Cut(opt, "="); ok && strings.HasSuffix(name, "-key") {
					add(f, file, true)
				}
			}
		case written[f.Name]:
		case start[f.Name]:
			if last, _ := p.Flag(f.Name); f.Name == "service-account-key-file" || last.Ref == f.Ref {
				for _, file := range f.List() {
					add(f, file, true)
				}
			}
		case fileLike(f.Name):
			add(f, f.Value, false)
		}
	}
	if component == Etcd {
		for _, name := range startFiles[Etcd] {
			if f, ok := p.Setting(name); ok && !seen[name] {
				add(f, f.Value, true)
			}
		}
	}
	return out
}

// fileLike reports whether a flag that is in no table seems to name a file.
func fileLike(name string) bool {
	for _, s := range []string{"-file", "-config", "kubeconfig", "-cafile", "-certfile", "-keyfile", "-certificate"} {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

func keyFlag(name, file string) bool {
	switch name {
	case "service-account-key-file": // public keys, though a private one is accepted
		return strings.HasSuffix(file, ".key")
	case "tls-sni-cert-key", "auth-token":
		return strings.HasSuffix(file, ".key") || strings.HasSuffix(file, "-key.pem")
	}
	return strings.HasSuffix(name, "key-file") || strings.HasSuffix(name, "keyfile") || strings.HasSuffix(name, "-key")
}
