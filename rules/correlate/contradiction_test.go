package correlate

import (
	"slices"
	"strings"
	"testing"
)

// For every chain an input that looks like it and is another: the chain must
// not be named, and the one that fits is.
func TestContradictions(t *testing.T) {
	cases := []struct {
		not, chain string // ids; chain "" when none fits
		findings   []string
	}{
		{"C-01", "C-26", []string{"PKI101 high cp1 apiserver-kubelet-client | the client certificate for kubelets expired", "HAV301 high - kube-scheduler | not leading"}},
		{"C-02", "C-26", []string{"PKI101 critical cp1 apiserver | the serving certificate expired", "HAV103 critical - endpoint | GET fails | x509"}},
		{"C-03", "C-14", []string{"QRM101 critical - quorum | 1 of 3 alive", "CAP102 medium cp1 db | at 82% of the quota", "HAV201 critical - store | frozen"}},
		{"C-04", "C-20", []string{"STA101 critical cp1 kube-apiserver | two files", "STA301 high cp1 kube-apiserver | the container runs other arguments", "STA302 critical cp1 kube-apiserver | dead | address already in use"}},
		{"C-05", "C-22", []string{"QRM107 high cp1 peer a2 | unreachable (no route to host) | | 0", "QRM105 high - etcd leader | changed 5 times; before 5 of them a peer was lost | lost TCP streaming | 1"}},
		{"C-06", "C-03", []string{"CAP101 critical cp1 alarm | NOSPACE is raised", "HAV201 critical - store | frozen | database space exceeded"}},
		{"C-07", "C-08", []string{"RST101 high cp1 member | default identity 8e9e05c52164694d", "DIR102 high cp1 etcd data directory | /var/lib/etcd-restored | restored"}},
		{"C-08", "C-07", []string{"DIR102 critical cp1 etcd data directory | not the one kubeadm remembers", "RST102 medium - revision | went backwards | data-dir"}},
		{"C-09", "C-14", []string{"QRM101 critical - quorum | 1 of 3 alive", "QRM107 high cp3 peer a1 | unreachable; it is silent to all that could be asked"}},
		{"C-10", "C-19", []string{"NOD107 high cp1 runtime | CNI plugin is not initialized", "HAV401 medium - coredns | not running"}},
		{"C-11", "", []string{"NOD110 high cp1 port 2379 | taken by another process", "STA302 critical cp1 etcd | dead | bind: address already in use"}},
		{"C-12", "C-04", []string{"STA203 critical cp1 kube-scheduler --bind-adress | unknown flag", "STA302 high cp1 kube-scheduler | dead | unknown flag"}},
		{"C-13", "C-01", []string{"PKI101 critical cp1 etcd/peer | expired", "QRM108 critical - cp1 | TLS rejected | certificate has expired"}},
		{"C-14", "C-23", []string{"DIR105 critical cp1 member/wal | crc mismatch", "STA302 critical cp1 etcd | dead | crc mismatch", "QRM101 critical - quorum | lost"}},
		{"C-15", "C-16", []string{"PKI301 medium cp1 root/.kube/config | an old copy"}},
		{"C-16", "C-26", []string{"PKI101 high cp1 apiserver | expired", "PKI301 medium cp1 root/.kube/config | an old copy"}},
		{"C-17", "", []string{"ADM201 high - v1beta1.metrics | unavailable", "ADM202 medium - namespace x | stuck | unable to retrieve the complete list"}},
		{"C-18", "C-25", []string{"NOD106 critical cp1 kubelet | inactive", "STA302 critical cp1 kube-apiserver | ended with code 137: killed by a signal"}},
		{"C-19", "C-25", []string{"NOD106 critical cp1 kubelet | inactive", "STA302 critical cp1 etcd | killed by a signal", "QRM101 critical - quorum | lost"}},
		{"C-20", "C-04", []string{"STA201 critical cp1 kube-apiserver --etcd-servers | peer port", "STA302 critical cp1 kube-apiserver | dead | frame header"}},
		{"C-21", "C-14", []string{"QRM101 critical - quorum | 1 of 3 alive", "HAV103 critical - endpoint | TCP open, GET fails"}},
		{"C-22", "C-14", []string{"QRM107 critical cp3 peer a1 | unreachable (timeout); it is silent to all that could be asked", "QRM101 critical - quorum | 1 of 3 alive"}},
		{"C-23", "C-24", []string{"QRM109 critical - data of cp2 | differs", "STA302 critical cp2 etcd | dead | corrupt"}},
		{"C-24", "C-22", []string{"QRM107 high cp2 peer a1 | unreachable (no route to host)", "QRM111 medium - cp2 | lags"}},
		{"C-25", "C-19", []string{"NOD106 high cp2 kubelet | stopped", "HAV202 medium cp2 node status | not Ready, but etcd runs on it"}},
		{"C-26", "C-13", []string{"NOD103 critical cp1 clock | 400 days ahead", "PKI101 critical cp1 apiserver | expired | current time 2027 is after"}},
	}
	for _, c := range cases {
		t.Run(c.not, func(t *testing.T) {
			r := judge(t, c.findings...)
			id, _, _ := strings.Cut(r.Verdict.ChainName, " ")
			if id == c.not || id != c.chain {
				t.Errorf("chain %q, want %q\n%s", r.Verdict.ChainName, c.chain, r.Verdict.Summary)
			}
		})
	}
	for _, c := range chains {
		if !slices.ContainsFunc(cases, func(x struct {
			not, chain string
			findings   []string
		}) bool {
			return x.not == c.id
		}) {
			t.Errorf("%s has no look-alike", c.id)
		}
	}
}
