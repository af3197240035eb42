package redact

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Manifest masks a static-pod manifest, or whatever lies in its place, keeping
// lines and columns. It reports whether the text could be parsed.
func Manifest(b []byte) bool {
	return yamlInPlace(b, manifestScalar)
}

// Kubeconfig masks a kubeconfig: keys, tokens and passwords read REDACTED, and
// certificates, servers and names stay.
func Kubeconfig(b []byte) bool {
	return yamlInPlace(b, kubeconfigScalar)
}

// Config masks a configuration of kubeadm, the kubelet or kube-proxy.
func Config(b []byte) bool {
	return yamlInPlace(b, configScalar)
}

// EncryptionConfig masks an EncryptionConfiguration: providers, resources and key
// names stay, keys read REDACTED.
func EncryptionConfig(b []byte) bool {
	return yamlInPlace(b, encryptionScalar)
}

// OtherConfig masks an AdmissionConfiguration, a scheduler's configuration, an
// audit policy or another file that a flag names: only what it is stays.
func OtherConfig(b []byte) bool {
	return yamlInPlace(b, otherScalar)
}

func otherScalar(path []string, _ *yaml.Node) verdict {
	switch strings.Join(path, ".") {
	case "apiVersion", "kind", "metadata.name", "metadata.namespace":
		return keepChecked
	}
	return dropScalar
}

func encryptionScalar(path []string, n *yaml.Node) verdict {
	if otherScalar(path, n) == keepChecked || len(path) == 2 && path[0] == "resources" && path[1] == "resources" {
		return keepChecked
	}
	if len(path) >= 4 && path[0] == "resources" && path[1] == "providers" {
		switch path[len(path)-1] {
		case "name", "endpoint", "timeout", "cachesize", "apiVersion":
			return keepChecked
		case "secret":
			return redactedScalar
		}
	}
	return dropScalar
}

func kubeconfigScalar(path []string, n *yaml.Node) verdict {
	p := strings.Join(path, ".")
	switch p {
	case "apiVersion", "kind", "current-context", "clusters.name", "contexts.name", "users.name", "contexts.context.cluster", "contexts.context.user", "contexts.context.namespace",
		"clusters.cluster.server", "clusters.cluster.certificate-authority", "clusters.cluster.certificate-authority-data", "clusters.cluster.tls-server-name",
		"clusters.cluster.insecure-skip-tls-verify", "clusters.cluster.proxy-url",
		"users.user.client-certificate", "users.user.client-certificate-data", "users.user.client-key", "users.user.tokenFile", "users.user.exec.apiVersion", "users.user.exec.command",
		"users.user.auth-provider.name":
		return keepChecked
	case "users.user.client-key-data", "users.user.token", "users.user.password":
		return redactedScalar
	}
	return dropScalar
}

// podFields are parts of a pod's spec that say how the control plane is wired.
var podFields = map[string]bool{
	"hostNetwork": true, "hostPID": true, "hostIPC": true, "dnsPolicy": true, "priority": true, "priorityClassName": true, "restartPolicy": true, "nodeName": true,
	"terminationGracePeriodSeconds": true, "automountServiceAccountToken": true, "serviceAccountName": true, "enableServiceLinks": true, "tolerations": true,
	"securityContext": true, "nodeSelector": true, "hostAliases": true, "schedulerName": true, "runtimeClassName": true, "preemptionPolicy": true, "hostname": true, "subdomain": true,
}

var containerFields = map[string]bool{
	"name": true, "image": true, "imagePullPolicy": true, "workingDir": true, "ports": true, "resources": true, "securityContext": true, "volumeMounts": true,
	"terminationMessagePath": true, "terminationMessagePolicy": true, "stdin": true, "tty": true, "restartPolicy": true,
}

// envKept are variables of the programs that run as static pods whose values say
// how they are wired. kube-vip is configured by variables alone.
var envKept = regexp.MustCompile(`^(ETCD_[A-Z0-9_]+|GO(MAXPROCS|MEMLIMIT|GC|DEBUG)|vip_[a-z_]+|cp_[a-z_]+|svc_[a-z_]+|lb_[a-z_]+|bgp_(enable|routerinterface|as|routerid)|port|address|k8s_config_file|prometheus_server|KUBERNETES_[A-Z_]+|NODE_NAME|POD_IP)$`)

var envNever = regexp.MustCompile(`(?i)pass|secret|token|key|cred`)

func keptEnv(name string) bool {
	return envKept.MatchString(name) && (!envNever.MatchString(name) || strings.HasSuffix(name, "_FILE") || name == "ETCD_INITIAL_CLUSTER_TOKEN")
}

func manifestScalar(path []string, n *yaml.Node) verdict {
	if len(path) == 0 {
		return dropScalar
	}
	switch path[0] {
	case "apiVersion", "kind":
		return keepChecked
	case "metadata":
		return metaScalar(path[1:])
	case "spec":
		return podScalar(path[1:])
	}
	return dropScalar
}

func metaScalar(path []string) verdict {
	if len(path) == 0 {
		return dropScalar
	}
	switch path[0] {
	case "name", "namespace", "labels", "creationTimestamp", "uid":
		return keepChecked
	case "annotations":
		if len(path) == 2 && keepAnnotations[path[1]] {
			return keepChecked
		}
	}
	return dropScalar
}

func podScalar(path []string) verdict {
	switch {
	case len(path) == 0:
	case podFields[path[0]]:
		return keepChecked
	case path[0] == "volumes" && len(path) > 1:
		switch path[1] {
		case "name", "hostPath", "emptyDir", "configMap":
			return keepChecked
		}
	case (path[0] == "containers" || path[0] == "initContainers") && len(path) > 1:
		return containerScalar(path[1:])
	}
	return dropScalar
}

func containerScalar(path []string) verdict {
	switch f := path[0]; {
	case containerFields[f]:
		return keepChecked
	case f == "command" || f == "args":
		return argScalar
	case f == "env" && len(path) == 2 && path[1] == "name":
		return keepChecked
	case f == "env" && len(path) == 3 && path[1] == "value" && keptEnv(path[2]):
		return keepChecked
	case f == "env" && len(path) > 3 && path[1] == "valueFrom":
		return keepChecked
	case strings.HasSuffix(f, "Probe"):
		if slices.Contains(path, "httpHeaders") {
			return dropScalar
		}
		if slices.Contains(path, "command") {
			return argScalar
		}
		return keepChecked
	}
	return dropScalar
}

// configFields are the top-level fields of ClusterConfiguration,
// InitConfiguration, JoinConfiguration, KubeletConfiguration and
// KubeProxyConfiguration that are kept with what is below them.
const configFields = `
apiVersion kind kubernetesVersion clusterName controlPlaneEndpoint certificatesDir imageRepository networking dns etcd apiServer controllerManager scheduler
featureGates encryptionAlgorithm certificateValidityPeriod caCertificateValidityPeriod proxy localAPIEndpoint nodeRegistration controlPlane caCertPath timeouts patches skipPhases
useHyperKubeImage enableServer staticPodPath podLogsDir syncFrequency fileCheckFrequency httpCheckFrequency address port readOnlyPort tlsCertFile tlsPrivateKeyFile
tlsCipherSuites tlsMinVersion tlsCurvePreferences rotateCertificates serverTLSBootstrap authentication authorization registryPullQPS registryBurst eventRecordQPS eventBurst
enableDebuggingHandlers enableContentionProfiling healthzPort healthzBindAddress oomScoreAdj clusterDomain clusterDNS streamingConnectionIdleTimeout
nodeStatusUpdateFrequency nodeStatusReportFrequency nodeLeaseDurationSeconds imageMinimumGCAge imageMaximumGCAge imageGCHighThresholdPercent
imageGCLowThresholdPercent volumeStatsAggPeriod kubeletCgroups systemCgroups cgroupRoot cgroupsPerQOS cgroupDriver cpuManagerPolicy cpuManagerPolicyOptions
singleProcessOOMKill cpuManagerReconcilePeriod memoryManagerPolicy topologyManagerPolicy topologyManagerScope topologyManagerPolicyOptions qosReserved
runtimeRequestTimeout hairpinMode maxPods podCIDR podPidsLimit resolvConf runOnce cpuCFSQuota cpuCFSQuotaPeriod nodeStatusMaxImages maxOpenFiles contentType
kubeAPIQPS kubeAPIBurst serializeImagePulls maxParallelImagePulls evictionHard evictionSoft evictionSoftGracePeriod evictionPressureTransitionPeriod
evictionMaxPodGracePeriod evictionMinimumReclaim mergeDefaultEvictionSettings podsPerCore enableControllerAttachDetach protectKernelDefaults makeIPTablesUtilChains
iptablesMasqueradeBit iptablesDropBit failSwapOn failCgroupV1 memorySwap containerLogMaxSize containerLogMaxFiles containerLogMaxWorkers
containerLogMonitorInterval configMapAndSecretChangeDetectionStrategy systemReserved kubeReserved reservedSystemCPUs showHiddenMetricsForVersion
systemReservedCgroup kubeReservedCgroup enforceNodeAllocatable allowedUnsafeSysctls volumePluginDir providerID kernelMemcgNotification logging
enableSystemLogHandler enableSystemLogQuery shutdownGracePeriod shutdownGracePeriodCriticalPods shutdownGracePeriodByPodPriority crashLoopBackOff reservedMemory
enableProfilingHandler enableDebugFlagsHandler seccompDefault memoryThrottlingFactor registerWithTaints registerNode localStorageCapacityIsolation
containerRuntimeEndpoint imageServiceEndpoint userNamespaces imagePullCredentialsVerificationPolicy
bindAddress bindAddressHardFail clientConnection configSyncPeriod conntrack detectLocal detectLocalMode enableProfiling hostnameOverride iptables ipvs nftables metricsBindAddress
mode nodePortAddresses portRange udpIdleTimeout windowsRunAsUser`

func containsField(list, name string) bool {
	return slices.Contains(strings.Fields(list), name)
}

func configScalar(path []string, n *yaml.Node) verdict {
	if len(path) == 0 {
		return dropScalar
	}
	last := path[len(path)-1]
	switch {
	case path[0] == "data" && len(path) == 2: // a ConfigMap around a configuration
		switch {
		case strings.HasSuffix(last, "Configuration"), last == "kubelet", last == "config.conf", last == "kubeconfig.conf", last == "ClusterStatus":
			return configText
		case strings.HasSuffix(last, "ca-file"), strings.HasPrefix(last, "requestheader-"):
			return keepChecked
		}
		return dropScalar
	case path[0] == "metadata":
		return metaScalar(path[1:])
	case path[0] == "clusters" || path[0] == "users" || path[0] == "contexts" || path[0] == "current-context":
		return kubeconfigScalar(path, n)
	case path[0] == "apiEndpoints":
		return keepChecked
	}
	for i, p := range path {
		switch p {
		case "extraArgs", "kubeletExtraArgs":
			return extraArg(path[i+1:])
		case "extraEnvs", "bootstrapTokens", "certificateKey", "token", "tlsBootstrapToken", "staticPodURLHeader", "bootstrapToken", "password":
			return dropScalar
		}
	}
	if containsField(configFields, path[0]) {
		return keepChecked
	}
	return dropScalar
}

// extraArg judges an entry of extraArgs, in both of kubeadm's forms: a map, and a
// list of {name, value}.
func extraArg(path []string) verdict {
	switch {
	case len(path) == 1 && path[0] == "name":
		return keepChecked
	case len(path) == 2 && path[0] == "value":
		return byFlag(path[1])
	case len(path) == 1:
		return byFlag(path[0])
	}
	return dropScalar
}

func byFlag(name string) verdict {
	if newFlagSet().kept(name) {
		return keepChecked
	}
	return dropScalar
}

// Arguments masks the flags in the values of lines NAME=VALUE: environment files
// of services and units of systemd.
func Arguments(b []byte) {
	f := newFlagSet()
	lines(b, func(line []byte) {
		name, value, ok := bytes.Cut(line, []byte("="))
		trimmed := bytes.TrimSpace(name)
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case line[0] == '#' || line[0] == ';':
			mask(line[1:])
		case !ok || len(trimmed) == 0 || trimmed[0] == '[':
			if sectionLine.Match(bytes.TrimSpace(line)) {
				return
			}
			argWords(f, line)
		case unitKept[string(trimmed)]:
			Check(value)
		default:
			argWords(f, value)
		}
	})
}

var sectionLine = regexp.MustCompile(`^\[[A-Za-z]{1,40}\]$`)

var unitKept = map[string]bool{
	"Description": true, "Documentation": true, "After": true, "Before": true, "Wants": true, "Requires": true, "Restart": true, "RestartSec": true, "StartLimitInterval": true,
	"StartLimitIntervalSec": true, "StartLimitBurst": true, "LimitNOFILE": true, "LimitNPROC": true, "LimitCORE": true, "TasksMax": true, "Type": true, "WantedBy": true, "EnvironmentFile": true,
	"Slice": true, "CPUAccounting": true, "MemoryAccounting": true, "MemoryMax": true, "CPUQuota": true, "KillMode": true, "Delegate": true, "OOMScoreAdjust": true, "BindsTo": true, "Conflicts": true,
	"PartOf": true, "TimeoutStartSec": true, "TimeoutStopSec": true, "WatchdogSec": true,
}

// argWords masks the words of a command line, quotes and separators kept. A word
// NAME=--flag=value and words with $VARIABLES are taken apart too.
func argWords(f *flagSet, b []byte) {
	keepNext := false
	for i := 0; i < len(b); {
		if sep(b[i]) {
			i++
			continue
		}
		start := i
		for i < len(b) && !sep(b[i]) {
			i++
		}
		w := b[start:i]
		switch {
		case w[0] == '$' && plainFlag(bytes.Trim(w, "${}")):
		case keepNext && w[0] != '-':
			Check(w)
			keepNext = false
			continue
		default:
			if name, rest, ok := bytes.Cut(w, []byte("=")); ok && w[0] != '-' && plainFlag(name) && len(rest) > 0 && (rest[0] == '-' || rest[0] == '/') {
				f.argument(rest)
			} else if ok && w[0] != '-' && plainFlag(name) && len(rest) == 0 {
				// NAME= before a quoted value
			} else {
				f.argument(w)
			}
		}
		keepNext = w[0] == '-' && !bytes.Contains(w, []byte("=")) && f.kept(strings.TrimLeft(string(w), "-"))
	}
}

func sep(c byte) bool {
	return c == ' ' || c == '\t' || c == '"' || c == '\'' || c == '\r' || c == '\\'
}

func lines(b []byte, f func(line []byte)) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		line := b
		if i >= 0 {
			line, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if len(line) > 0 {
			f(line)
		}
	}
}

// tomlKept are the keys of containerd's and CRI-O's configuration whose values
// say how the runtime is wired. Registry credentials and headers are not here.
var tomlKept = func() map[string]bool {
	m := map[string]bool{}
	for k := range strings.FieldsSeq(`version root state temp imports disabled_plugins required_plugins oom_score address tcp_address uid gid max_recv_message_size
max_send_message_size level format cgroup path sandbox_image sandbox pinned_images systemd_cgroup SystemdCgroup snapshotter default_runtime_name runtime_type runtime_engine runtime_root
runtime_path monitor_path privileged_without_host_devices BinaryName Root CriuPath ShimCgroup NoPivotRoot NoNewKeyring config_path bin_dir bin_dirs conf_dir conf_template max_conf_num ip_pref
stream_server_address stream_server_port stream_idle_timeout enable_selinux selinux_category_range stats_collect_period max_container_log_line_size disable_cgroup disable_apparmor
restrict_oom_score_adj max_concurrent_downloads disable_proc_mount unset_seccomp_profile tolerate_missing_hugetlb_controller ignore_image_defined_volumes netns_mounts_under_state_dir
enable_unprivileged_ports enable_unprivileged_icmp enable_cdi cdi_spec_dirs image_pull_progress_timeout drain_exec_sync_io_timeout ignore_deprecation_warnings use_local_image_pull
device_ownership_from_security_context disable_hugetlb_controller disable_tcp_service enable_tls_streaming endpoint insecure_skip_verify ca_file cert_file key_file
cgroup_manager conmon conmon_cgroup default_runtime pause_image pause_command pids_limit log_level log_dir storage_driver storage_option runroot listen network_dir plugin_dirs
default_ulimits default_sysctls hooks_dir seccomp_profile apparmor_profile container_exits_dir container_attach_socket_dir signature_policy insecure_registries short_name_mode
runtime_config_path allowed_annotations drop_infra_ctr infra_ctr_cpuset internal_wipe grpc_max_send_msg_size grpc_max_recv_msg_size version_file version_file_persist clean_shutdown_file
pause_threshold startup_delay schedule_delay deletion_threshold mutation_threshold debug metrics enable_metrics metrics_port crio timeout`) {
		m[k] = true
	}
	return m
}

// RuntimeConfig masks the TOML configuration of containerd or CRI-O: section
// names and keys stay, values of keys on the list stay.
func RuntimeConfig(b []byte) {
	kept := tomlKept()
	keepRest := false // inside an array over several lines of a key that is kept
	section := ""
	lines(b, func(line []byte) {
		t := bytes.TrimSpace(line)
		switch {
		case len(t) == 0:
		case t[0] == '#':
			mask(line)
		case t[0] == '[' && t[len(t)-1] == ']' && !keepRest && bytes.IndexByte(t, '=') < 0 && bytes.IndexByte(t, ',') < 0:
			section = strings.ToLower(string(t))
			Check(line)
		default:
			key, value, ok := bytes.Cut(line, []byte("="))
			k := strings.Trim(string(bytes.TrimSpace(key)), `"'`)
			switch {
			case ok && plainFlag([]byte(k)):
				secret := strings.Contains(section, "auth") || strings.Contains(section, "header")
				keepRest = kept[k] && !secret
				if !keepRest && !boolWord(bytes.TrimSpace(value)) {
					mask(value)
				} else {
					Check(value)
				}
				if v := bytes.TrimSpace(value); len(v) == 0 || v[0] != '[' || bytes.Contains(v, []byte("]")) {
					keepRest = false
				}
			case keepRest:
				Check(line)
				if bytes.Contains(line, []byte("]")) {
					keepRest = false
				}
			default:
				mask(line)
			}
		}
	})
}

// A KubeconfigKey is a private key inside a kubeconfig, on its way to becoming a
// fingerprint. The caller wipes PEM.
type KubeconfigKey struct {
	User string
	PEM  []byte
}

// KubeconfigKeys returns the keys that a kubeconfig carries.
func KubeconfigKeys(b []byte) (out []KubeconfigKey) {
	docs, ok := yamlNodes(b)
	if !ok {
		return nil
	}
	for _, d := range docs {
		if len(d.Content) == 0 {
			continue
		}
		users := child(d.Content[0], "users")
		if users == nil {
			continue
		}
		for _, u := range users.Content {
			name, user := child(u, "name"), child(u, "user")
			data := child(user, "client-key-data")
			if name == nil || data == nil {
				continue
			}
			if pem, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(data.Value), "")); err == nil {
				out = append(out, KubeconfigKey{name.Value, pem})
			}
		}
	}
	return out
}

func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
