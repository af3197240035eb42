package redact

import (
	"bytes"
	"strings"
)

// keptFlags are flags of the control plane's programs whose values are paths,
// addresses, numbers, switches or names. A name that ends in * stands for all that
// begin with it. Flags that are not here lose their values: they may be anything,
// an OIDC client's secret or a proxy with a password. Names from the programs'
// own help: kube-apiserver, kube-controller-manager, kube-scheduler, kubelet,
// kube-proxy, etcd.
const keptFlags = `
advertise-address admission-control-config-file allow-metric-labels allow-privileged anonymous-auth api-audiences apiserver-count audit-log-*
audit-policy-file audit-webhook-* authentication-config authentication-kubeconfig authentication-skip-lookup authentication-token-webhook-*
authentication-tolerate-lookup-failure authorization-* basic-auth-file bind-address cert-dir client-ca-file cloud-config cloud-provider
contention-profiling cors-allowed-origins coordinated-leadership-* debug-* default-*-toleration-seconds default-not-ready-toleration-seconds default-unreachable-toleration-seconds
default-watch-cache-size delete-collection-workers disable-admission-plugins disabled-metrics egress-selector-config-file emulated-version
emulation-forward-compatible enable-* encryption-provider-config encryption-provider-config-automatic-reload endpoint-reconciler-type etcd-cafile
etcd-certfile etcd-compaction-interval etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix
etcd-readycheck-timeout etcd-servers etcd-servers-overrides event-ttl external-hostname feature-gates goaway-chance http2-max-streams-per-connection
insecure-bind-address insecure-port kubelet-* lease-reuse-duration-seconds livez-grace-period max-* min-compatibility-version min-request-timeout
oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix oidc-issuer-url oidc-required-claim oidc-signing-algs oidc-username-claim
oidc-username-prefix peer-advertise-ip peer-advertise-port peer-ca-file permit-address-sharing permit-port-sharing profiling proxy-client-cert-file
proxy-client-key-file request-timeout requestheader-* runtime-config runtime-config-emulation-forward-compatible secure-port service-account-api-audiences
service-account-extend-token-expiration service-account-issuer service-account-jwks-uri service-account-key-file service-account-lookup
service-account-max-token-expiration service-account-private-key-file service-account-signing-endpoint service-account-signing-key-file
service-cluster-ip-range service-node-port-range show-hidden-metrics-for-version shutdown-delay-duration shutdown-send-retry-after
shutdown-watch-termination-grace-period storage-backend storage-initialization-timeout storage-media-type strict-transport-security-directives
target-ram-mb tls-* token-auth-file tracing-config-file watch-cache watch-cache-sizes v vmodule logging-format log-* logtostderr stderrthreshold alsologtostderr
allocate-node-cidrs attach-detach-reconcile-sync-period cidr-allocator-type cluster-cidr cluster-name cluster-signing-* concurrent-* configure-cloud-routes
controller-start-interval controllers disable-attach-detach-reconcile-sync disable-force-detach-on-timeout endpoint-updates-batch-period
endpointslice-updates-batch-period external-cloud-volume-plugin flex-volume-plugin-dir horizontal-pod-autoscaler-* kube-api-burst kube-api-content-type
kube-api-qps kubeconfig large-cluster-size-threshold leader-elect leader-elect-* leader-migration-config legacy-service-account-token-clean-up-period master
min-resync-period mirroring-* namespace-sync-period node-cidr-mask-size node-cidr-mask-size-ipv4 node-cidr-mask-size-ipv6 node-eviction-rate
node-monitor-grace-period node-monitor-period node-startup-grace-period node-sync-period pod-eviction-timeout pv-recycler-* pvclaimbinder-sync-period
resource-quota-sync-period root-ca-file route-reconciliation-period secondary-node-eviction-rate terminated-pod-gc-threshold
unhealthy-zone-threshold use-service-account-credentials config pod-max-in-unschedulable-pods-duration policy-config-file algorithm-provider write-config-to
advertise-client-urls auto-compaction-mode auto-compaction-retention auto-tls backend-* bcrypt-cost cert-file cipher-suites client-cert-allowed-hostname client-cert-auth
client-cert-file client-crl-file client-key-file compact-* compaction-* corrupt-check-time data-dir discovery-srv distributed-tracing-* downgrade-check-time election-timeout
enable-grpc-gateway enable-pprof experimental-* force-new-cluster grpc-keepalive-* heartbeat-interval host-whitelist initial-advertise-peer-urls initial-cluster
initial-cluster-state initial-cluster-token initial-corrupt-check initial-election-tick-advance key-file lease-* listen-client-http-urls listen-client-urls
listen-metrics-urls listen-peer-urls logger memory-mlock metrics name peer-auto-tls peer-cert-allowed-cn peer-cert-allowed-hostname peer-cert-file
peer-client-cert-auth peer-client-cert-file peer-client-key-file peer-crl-file peer-key-file peer-skip-client-san-verification peer-trusted-ca-file pre-vote
quota-backend-bytes raft-read-timeout raft-write-timeout self-signed-cert-validity snapshot-catchup-entries snapshot-count socket-reuse-address socket-reuse-port
stop-grpc-service-on-defrag strict-reconfig-check tls-max-version tls-min-version trusted-ca-file unsafe-no-fsync v2-deprecation wal-dir warning-*
watch-progress-notify-interval max-concurrent-streams
address bootstrap-kubeconfig cgroup-driver cgroup-root cgroups-per-qos cluster-dns cluster-domain cni-bin-dir cni-cache-dir cni-conf-dir config-dir container-log-max-files
container-log-max-size container-runtime container-runtime-endpoint cpu-* docker-endpoint event-burst event-qps eviction-* exit-on-lock-contention fail-cgroupv1 fail-swap-on
file-check-frequency hairpin-mode healthz-bind-address healthz-port hostname-override http-check-frequency image-credential-provider-bin-dir
image-credential-provider-config image-gc-high-threshold image-gc-low-threshold image-pull-progress-deadline image-service-endpoint iptables-* keep-terminated-pod-volumes
kernel-memcg-notification kube-reserved kube-reserved-cgroup local-storage-capacity-isolation lock-file make-iptables-util-chains manifest-url-header-names
memory-manager-policy minimum-* network-plugin network-plugin-mtu node-ip node-labels node-status-max-images node-status-update-frequency non-masquerade-cidr oom-score-adj pod-cidr
pod-infra-container-image pod-manifest-path pod-max-pids pods-per-core port protect-kernel-defaults provider-id qos-reserved read-only-port register-node
register-schedulable register-with-taints registry-burst registry-qps reserved-cpus reserved-memory resolv-conf root-dir rotate-certificates
rotate-server-certificates runonce runtime-cgroups runtime-request-timeout seccomp-default serialize-image-pulls streaming-connection-idle-timeout sync-frequency
system-cgroups system-reserved system-reserved-cgroup topology-manager-policy topology-manager-scope volume-plugin-dir volume-stats-agg-period windows-*
proxy-mode cluster-cidr detect-local-mode ipvs-* conntrack-* nodeport-addresses metrics-bind-address metrics-port masquerade-all bind-address-hard-fail cleanup`

// A flagSet answers whether a flag's value may be kept.
type flagSet struct {
	exact    map[string]bool
	prefixes []string
}

func newFlagSet() *flagSet {
	f := &flagSet{exact: map[string]bool{}}
	for n := range strings.FieldsSeq(keptFlags) {
		if p, ok := strings.CutSuffix(n, "*"); ok {
			f.prefixes = append(f.prefixes, p)
			continue
		}
		f.exact[n] = true
	}
	return f
}

func (f *flagSet) kept(name string) bool {
	if f.exact[name] {
		return true
	}
	for _, p := range f.prefixes {
		if strings.HasPrefix(name, p) && len(name) > len(p) {
			return true
		}
	}
	return false
}

// programs are words that stand for themselves in a command.
var programs = map[string]bool{
	"kube-apiserver": true, "kube-controller-manager": true, "kube-scheduler": true, "kube-proxy": true, "kubelet": true, "etcd": true, "coredns": true,
	"containerd": true, "crio": true, "dockerd": true, "keepalived": true, "haproxy": true, "kube-vip": true, "sh": true, "-c": true, "-conf": true, "manager": true,
	"cri-dockerd": true, "containerd-shim-runc-v2": true, "systemd": true, "chronyd": true, "ntpd": true,
}

// argument masks what is not known to be harmless in one argument of a command,
// in place. It reports whether it overwrote anything.
func (f *flagSet) argument(b []byte) bool {
	if len(b) == 0 || programs[string(b)] {
		return false
	}
	if b[0] == '/' && !bytes.ContainsAny(b, " =\n;|&") { // a path
		return Check(b)
	}
	if b[0] != '-' {
		mask(b)
		return true
	}
	name, value, ok := bytes.Cut(bytes.TrimLeft(b, "-"), []byte("="))
	if !plainFlag(name) {
		mask(b)
		return true
	}
	if !ok {
		return false
	}
	if !f.kept(string(name)) {
		if boolWord(value) {
			return false
		}
		mask(value)
		return true
	}
	return Check(value)
}

func plainFlag(name []byte) bool {
	if len(name) == 0 || len(name) > 80 {
		return false
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func boolWord(b []byte) bool { return string(b) == "true" || string(b) == "false" }

// Args returns a command's arguments with what is not known to be harmless
// masked. A value that follows its flag as an argument of its own is masked unless
// it is a path or the flag is one whose values are kept.
func Args(args []string) []string {
	f := newFlagSet()
	out := make([]string, len(args))
	keepNext := false
	for i, a := range args {
		b := []byte(a)
		if keepNext && !strings.HasPrefix(a, "-") {
			Check(b)
			out[i], keepNext = string(b), false
			continue
		}
		f.argument(b)
		out[i] = string(b)
		name := strings.TrimLeft(a, "-")
		keepNext = strings.HasPrefix(a, "-") && !strings.Contains(a, "=") && f.kept(name)
	}
	return out
}
