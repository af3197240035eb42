package bundle

// A Kind is a kind of evidence, as rules and gaps name it.
type Kind string

// Evidence kinds.
const (
	KindManifests     Kind = "manifests"      // static-pod directory
	KindPKI           Kind = "pki"            // certificates; private keys only as SPKI fingerprints
	KindKubeconfig    Kind = "kubeconfig"     // admin, controller-manager, scheduler, kubelet kubeconfigs
	KindKubeadmConfig Kind = "kubeadm-config" // ClusterConfiguration
	KindKubelet       Kind = "kubelet"        // config.yaml, kubeadm-flags.env, unit, version
	KindCRI           Kind = "cri"            // crictl ps, inspect, images
	KindLogs          Kind = "logs"           // container logs
	KindJournal       Kind = "journal"        // kubelet, runtime and kernel journal
	KindStore         Kind = "etcd-db"        // etcd backend: a data directory's db or a snapshot
	KindWAL           Kind = "etcd-wal"       // write-ahead log and .snap files
	KindDataDir       Kind = "datadir"        // listing of an etcd data directory
	KindEtcdctl       Kind = "etcdctl"        // saved etcdctl output
	KindHost          Kind = "host"           // facts of the machine
	KindProbe         Kind = "probe"          // connectivity probes
	KindFiles         Kind = "files"          // any other file of the node a flag names
)

// A KindInfo says, for a human, what a kind is and how to get it when it is missing.
type KindInfo struct {
	What    string // short noun phrase
	Command string // what to run on the node to collect it
}

// Info describes k. An unknown kind gets a description made of its name.
func (k Kind) Info() KindInfo {
	const collect = "coldplane collect -o -"
	switch k {
	case KindManifests:
		return KindInfo{"the static-pod directory (/etc/kubernetes/manifests)", "tar -C / -cf manifests.tar etc/kubernetes/manifests"}
	case KindPKI:
		return KindInfo{"certificates under /etc/kubernetes/pki (never the keys)", "tar -C / -cf pki.tar --exclude='*.key' etc/kubernetes/pki"}
	case KindKubeconfig:
		return KindInfo{"the kubeconfigs under /etc/kubernetes", collect}
	case KindKubeadmConfig:
		return KindInfo{"the kubeadm-config ConfigMap", "kubectl -n kube-system get configmap kubeadm-config -o yaml > kubeadm-config.yaml"}
	case KindKubelet:
		return KindInfo{"the kubelet's configuration (/var/lib/kubelet/config.yaml, kubeadm-flags.env)", "tar -C / -cf kubelet.tar var/lib/kubelet/config.yaml var/lib/kubelet/kubeadm-flags.env"}
	case KindCRI:
		return KindInfo{"the container runtime's view (crictl ps -a, inspect)", "crictl ps -a -o json > crictl/ps.json"}
	case KindLogs:
		return KindInfo{"the control-plane containers' logs (/var/log/pods)", "tar -C / -czf logs.tgz --wildcards 'var/log/pods/kube-system_*'"}
	case KindJournal:
		return KindInfo{"the kubelet's and the runtime's journal", "journalctl -u kubelet -u containerd -o export --since -24h > journal/units.export"}
	case KindStore:
		return KindInfo{"the etcd database (a snapshot, or member/snap/db when etcd is down)", "etcdctl snapshot save snapshot.db"}
	case KindWAL:
		return KindInfo{"etcd's write-ahead log and .snap files (member/wal, member/snap)", collect}
	case KindDataDir:
		return KindInfo{"a listing of the etcd data directory", "ls -lR --time-style=full-iso /var/lib/etcd > listing/etcd.txt"}
	case KindEtcdctl:
		return KindInfo{"etcdctl member list and endpoint status", "etcdctl member list -w json > etcdctl/member-list.json; etcdctl endpoint status --cluster -w json > etcdctl/endpoint-status.json"}
	case KindHost:
		return KindInfo{"facts of the machine (processes, ports, file systems, clock)", collect}
	case KindProbe:
		return KindInfo{"connectivity probes of the endpoint, API servers and members", collect}
	case KindFiles:
		return KindInfo{"the files that flags name", collect}
	}
	return KindInfo{string(k), collect}
}
