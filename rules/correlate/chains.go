package correlate

import (
	"coldplane/report"
)

// A chain is a named explanation: which roots begin it, what it looks like,
// and what must not be done.
type chain struct {
	id, name string
	roots    string // selectors of the root
	path     string // selectors of what it typically explains
	decides  string // the observation that tells it from its look-alikes
	doNot    string // what would make it worse
}

// common are chains about one cause on several subjects: the root's rule must
// have fired more than once.
var common = map[string]bool{"C-02": true}

// chains are the explanations coldplane knows, in the order in which they are
// preferred when two fit equally.
var chains = []chain{
	{"C-01", "an etcd credential expired", "PKI101:etcd", "QRM108 QRM101 HAV103 HAV201 HAV301",
		"whether another member still accepts the same certificate (then it is the clock)", "Do not restart the remaining etcd members before the certificate is renewed: established connections outlive the expiry."},
	{"C-02", "all certificates of one year expired together", "PKI101", "PKI302 HAV202 HAV301 QRM108",
		"whether the certificates of every control-plane node ended within hours of each other", ""},
	{"C-03", "the database filled up and etcd refuses writes", "CAP101 CAP102 CAP103 CAP105 CAP106 CAP107 CAP109 CAP111 CAP113", "CAP102 CAP101 CAP104 HAV201 HAV301 ADM202",
		"the alarm list, and whether the disk itself is full", "Do not disarm the alarm first: it comes back with the next write. Compact, defragment member by member, then disarm."},
	{"C-04", "one wrong line in a manifest", "STA201 STA202 STA203 STA207 STA208 EXT101 STA102 ADM401", "STA302 HAV104 HAV103 HAV301",
		"whether the same line on another node is right", "Do not edit in place with an editor that leaves a backup in the manifest directory."},
	{"C-05", "the disk under etcd is too slow", "NOD111 NOD102 QRM106", "QRM106 QRM105 STA302 HAV302",
		"whether slow fdatasync lines precede the lost leaders, or a gap in all logs (a suspended machine)", "Do not raise the election timeout before the disk is cured."},
	{"C-06", "a full disk stopped etcd", "NOD101", "STA302 QRM101 DIR105", "whether the text is the kernel's ENOSPC or etcd's quota", "Do not delete anything under member/."},
	{"C-07", "etcd runs on the wrong directory", "DIR101 DIR103 DIR102 DIR104", "RST102 QRM112 DIR103",
		"which directory holds the newest revision", "Do not restart etcd and do not run kubeadm upgrade until the right directory is known."},
	{"C-08", "a restore was not finished", "RST101 RST103 RST104 RST107 QRM112", "RST102 CAP101 QRM112 QRM102 HAV402 DIR102",
		"the cluster id in every member's write-ahead log", "Do not let API servers write to both halves, and do not delete either data directory."},
	{"C-09", "a machine is gone and its etcd member was left", "QRM103 QRM102", "QRM101 UPG501 QRM107", "when that member was last heard of", "Do not add a member before the stale one is removed."},
	{"C-10", "an admission webhook blocks the cluster", "ADM101 ADM102 ADM103 ADM104", "HAV401 NOD107 HAV301 HAV202", "which webhook the API server's log names", ""},
	{"C-11", "the node's address or name changed", "NOD113 NOD112", "STA302 PKI205 HAV103 QRM107", "the addresses of the interfaces now", "Do not re-issue certificates before deciding whether the old address can come back."},
	{"C-12", "the upgrade broke it", "UPG301 UPG201 UPG401 UPG402 UPG403 UPG404", "STA203 STA302 QRM101 QRM102", "whether the failure began with the change of image", "Do not continue the upgrade on the other nodes."},
	{"C-13", "a wrong clock makes valid certificates look invalid", "NOD103", "PKI101 QRM108 HAV202", "the certificate's dates by another node's clock", "Do not renew certificates before the clock is right."},
	{"C-14", "machines that carry etcd members are gone", "QRM101", "HAV103 HAV201 HAV301 HAV104 QRM107 QRM105", "whether the machines answer at all: power, hypervisor, network first",
		"Do not remove members and do not use --force-new-cluster while a lost machine may come back."},
	{"C-15", "one node has another CA or service-account key", "PKI203 PKI204 STA205", "ADM201 HAV301 STA205", "whether only that node's API server rejects tokens", "Do not regenerate the key on the healthy nodes."},
	{"C-16", "only the administrator's copy is old", "PKI301", "", "whether another credential works", ""},
	{"C-17", "an encryption key is missing", "ADM301 ADM302", "ADM202 STA302", "the provider configuration of every API server", "Do not rewrite or delete Secrets before the key is back."},
	{"C-18", "memory ran out", "NOD108 ADM403", "STA302 HAV104", "the kernel's out-of-memory lines", ""},
	{"C-19", "the kubelet or the runtime is down, the control plane is not", "NOD106 NOD107 NOD105 NOD104 PKI302", "HAV202 STA301", "whether the etcd and API processes are older than the stop", "Do not remove the node's etcd member: it is alive, or comes back with the runtime."},
	{"C-20", "a stray manifest replaces the real one", "STA101 STA301", "STA301 STA302", "which file the running container came from", "Do not rename the copy inside the directory: move it out."},
	{"C-21", "the virtual IP does not follow the API's health", "HAV102 PKI304", "HAV103", "whether the backends answer directly", ""},
	{"C-22", "the members cannot reach each other", "QRM107 NOD110", "QRM105 QRM101 QRM111", "the error class on both sides of the pair", ""},
	{"C-23", "an etcd data directory is damaged", "DIR105 QRM116", "STA302 QRM101", "whether the other members are whole", "Do not copy files of one member into another, and do not edit the write-ahead log."},
	{"C-24", "members hold different data", "QRM109 QRM110", "QRM111 STA302", "the hash of every member at one revision", "Do not restart or defragment members before every one has been backed up separately."},
	{"C-25", "the kubelet is stopped and what it should restart is gone", "NOD106 NOD107", "STA302 QRM101 HAV103 HAV104", "whether the containers come back when the kubelet runs",
		"Do not remove etcd members: their data is there and starts with the kubelet."},
	{"C-26", "a certificate has expired", "PKI101", "PKI302 HAV103 HAV202 HAV301 QRM108 STA302 PKI301 PKI304 PKI401", "whether the clock of the node is right", ""},
}

// chainOf names the chain that fits a root and what it explains best; nil when
// none does. A root that explains something must explain what the chain is
// about; times is how often the root's rule fired.
func chainOf(root *report.Finding, explained []*report.Finding, times int) *chain {
	var best *chain
	score := -1
	for i := range chains {
		c := &chains[i]
		roots := parse(c.roots)
		if !matches(roots, root) || common[c.id] && times < 2 {
			continue
		}
		s := 0
		path := parse(c.path)
		for _, f := range explained {
			if matches(path, f) {
				s++
			}
		}
		if s == 0 && len(explained) > 0 {
			continue
		}
		if roots[0].rule == root.Rule {
			s++
		}
		if s > score {
			best, score = c, s
		}
	}
	return best
}
