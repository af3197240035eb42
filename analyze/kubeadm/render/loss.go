package render

import "strings"

// Loss says what is lost when kubeadm undoes a change, and whether it is about
// data, identity or who may do what rather than tuning.
func Loss(component string, c Change) (what string, grave bool) {
	switch c.Kind {
	case FlagChange:
		name := strings.TrimPrefix(c.Item, "--")
		if l, ok := flagLosses()[component+" "+name]; ok {
			return l.what, l.grave
		}
		for _, p := range prefixLosses() {
			if strings.HasPrefix(name, p.prefix) {
				return p.what, p.grave
			}
		}
		if name == "feature-gates" {
			return "the features switched on or off by hand return to their defaults", false
		}
	case MountChange:
		p := strings.TrimPrefix(c.Item, "mount ")
		switch {
		case component == etcd && !strings.Contains(p, "pki"):
			return "etcd starts on another directory of the host", true
		case c.Have == "":
			return "the directory is mounted again", false
		case c.Want == "":
			return "files that flags name under this path are no longer there; the component does not start if one of the flags stays", false
		}
		return "the component sees other files under this path", true
	case EnvChange:
		if strings.HasPrefix(c.Item, "env ETCD_QUOTA") || strings.HasPrefix(c.Item, "env ETCD_DATA") {
			return "etcd runs with another quota or directory", true
		}
		return "the setting made through the environment is gone", false
	case ImageChange:
		return "the image is pulled from another registry, which an offline node may not reach", false
	case ProbeChange:
		return "the kubelet restarts the container by kubeadm's limits again", false
	case OtherChange:
		switch {
		case strings.HasPrefix(c.Item, "container "):
			return "the extra container is gone", false
		case c.Item == "resources":
			return "requests and limits return to kubeadm's", false
		case c.Item == "hostAliases" || c.Item == "dnsPolicy" || c.Item == "dnsConfig":
			return "names the component resolved this way no longer resolve", false
		}
	}
	return "", false
}

type loss struct {
	what  string
	grave bool
}

func flagLosses() map[string]loss {
	return map[string]loss{
		"etcd data-dir":                                              {"etcd starts on the directory kubeadm remembers", true},
		"etcd quota-backend-bytes":                                   {"the database falls back to another quota; above it every write is refused", true},
		"etcd auto-compaction-retention":                             {"history is kept as kube-apiserver compacts it", false},
		"etcd auto-compaction-mode":                                  {"history is kept as kube-apiserver compacts it", false},
		"etcd listen-client-urls":                                    {"clients on the added addresses lose etcd", true},
		"etcd advertise-client-urls":                                 {"etcd tells clients another address", true},
		"etcd listen-peer-urls":                                      {"peers reach etcd at other addresses", true},
		"etcd initial-advertise-peer-urls":                           {"etcd tells its peers another address", true},
		"etcd listen-metrics-urls":                                   {"monitoring loses etcd's metrics", false},
		"etcd heartbeat-interval":                                    {"elections are timed as on a fast network again", false},
		"etcd election-timeout":                                      {"elections are timed as on a fast network again", false},
		"kube-apiserver etcd-servers":                                {"the API server talks to another etcd", true},
		"kube-apiserver encryption-provider-config":                  {"Secrets are written in plain text and encrypted ones cannot be read", true},
		"kube-apiserver encryption-provider-config-automatic-reload": {"a changed encryption configuration needs a restart", false},
		"kube-apiserver service-account-issuer":                      {"tokens of the other issuer are refused, new ones carry another issuer", true},
		"kube-apiserver service-account-key-file":                    {"tokens signed with the other key are refused", true},
		"kube-apiserver service-account-signing-key-file":            {"tokens are signed with another key", true},
		"kube-apiserver service-cluster-ip-range":                    {"Services outside the range become invalid", true},
		"kube-apiserver service-node-port-range":                     {"NodePorts outside the default range are refused", true},
		"kube-apiserver api-audiences":                               {"tokens for the other audiences are refused", true},
		"kube-apiserver authorization-mode":                          {"requests are authorized by other rules", true},
		"kube-apiserver authorization-config":                        {"requests are authorized by other rules", true},
		"kube-apiserver authentication-config":                       {"users of the external identity provider cannot log in", true},
		"kube-apiserver authentication-token-webhook-config-file":    {"users of the token webhook cannot log in", true},
		"kube-apiserver anonymous-auth":                              {"anonymous requests are treated by the default again", true},
		"kube-apiserver client-ca-file":                              {"clients of the other CA are refused", true},
		"kube-apiserver enable-admission-plugins":                    {"the added admission plugins no longer check or change requests", true},
		"kube-apiserver disable-admission-plugins":                   {"the disabled admission plugins work again", true},
		"kube-apiserver admission-control-config-file":               {"admission plugins lose their configuration", true},
		"kube-apiserver runtime-config":                              {"API versions switched on by hand are no longer served", true},
		"kube-apiserver advertise-address":                           {"the API server announces another address", true},
		"kube-apiserver secure-port":                                 {"the API server listens on another port", true},
		"kube-apiserver tls-cert-file":                               {"the API server presents another certificate", true},
		"kube-apiserver tls-private-key-file":                        {"the API server presents another certificate", true},
		"kube-apiserver tls-sni-cert-key":                            {"the additional serving certificate is gone", true},
		"kube-apiserver event-ttl":                                   {"events live one hour again", false},
		"kube-apiserver max-requests-inflight":                       {"the API server refuses requests at the default load again", false},
		"kube-apiserver max-mutating-requests-inflight":              {"the API server refuses requests at the default load again", false},
		"kube-apiserver profiling":                                   {"profiling is on again", false},
		"kube-apiserver cloud-provider":                              {"the cloud integration is configured otherwise", true},
		"kube-controller-manager cluster-cidr":                       {"new nodes get pod ranges of another network", true},
		"kube-controller-manager allocate-node-cidrs":                {"node pod ranges are given out otherwise", true},
		"kube-controller-manager node-cidr-mask-size":                {"new nodes get pod ranges of another size", true},
		"kube-controller-manager service-cluster-ip-range":           {"Services and pods may get overlapping ranges", true},
		"kube-controller-manager cluster-signing-cert-file":          {"certificates are signed by another CA", true},
		"kube-controller-manager cluster-signing-key-file":           {"certificates are signed by another CA", true},
		"kube-controller-manager service-account-private-key-file":   {"tokens are signed with another key", true},
		"kube-controller-manager root-ca-file":                       {"pods are told another CA", true},
		"kube-controller-manager cloud-provider":                     {"the cloud integration is configured otherwise", true},
		"kube-controller-manager bind-address":                       {"metrics are served on loopback only", false},
		"kube-controller-manager controllers":                        {"another set of controllers runs", true},
		"kube-controller-manager terminated-pod-gc-threshold":        {"finished pods are kept as by default", false},
		"kube-scheduler bind-address":                                {"metrics are served on loopback only", false},
		"kube-scheduler config":                                      {"the scheduler's own configuration is no longer read", true},
	}
}

type prefixLoss struct {
	prefix string
	loss
}

func prefixLosses() []prefixLoss {
	return []prefixLoss{
		{"audit-", loss{"the audit log stops or is written otherwise", true}},
		{"oidc-", loss{"users of the OpenID provider cannot log in", true}},
		{"requestheader-", loss{"aggregated APIs and proxies are trusted otherwise", true}},
		{"tls-", loss{"TLS is negotiated otherwise", false}},
		{"cipher-suites", loss{"TLS is negotiated otherwise", false}},
		{"etcd-", loss{"the API server reaches etcd otherwise", true}},
		{"kubelet-", loss{"the API server reaches kubelets otherwise", false}},
		{"leader-elect", loss{"leader election runs with other times", false}},
		{"experimental-", loss{"the etcd feature returns to its default", false}},
		{"feature-gates", loss{"the features switched on or off by hand return to their defaults", false}},
	}
}
