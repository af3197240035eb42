package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"coldplane/bundle"
	"coldplane/report"
)

const (
	// Lines of etcd 3.7 and Kubernetes 1.37; TS and KLOG stand for their time.
	peerLost   = `{"level":"warn","ts":"TS","caller":"rafthttp/peer_status.go:66","msg":"peer became inactive (message send to peer failed)","peer-id":"%x","error":"failed to dial %[1]x on stream MsgApp v2 (dial tcp 10.0.0.11:2380: i/o timeout)"}`
	probeFails = `{"level":"warn","ts":"TS","caller":"rafthttp/probing_status.go:68","msg":"prober detected unhealthy status","round-tripper-name":"ROUND_TRIPPER_RAFT_MESSAGE","remote-peer-id":"%x","rtt":"1.1ms","error":"dial tcp 10.0.0.11:2380: i/o timeout"}`
	lostLeader = `{"level":"info","ts":"TS","logger":"raft","caller":"v3@v3.7.0/node.go:376","msg":"raft.node: %x lost leader %x at term 4"}`
	noLeader   = `{"level":"warn","ts":"TS","caller":"etcdhttp/health.go:233","msg":"serving /health false; no leader"}`
	elected    = `{"level":"info","ts":"TS","logger":"raft","caller":"v3@v3.7.0/node.go:370","msg":"raft.node: %x elected leader %x at term 5"}`
	serving    = `{"level":"info","ts":"TS","caller":"embed/serve.go:103","msg":"ready to serve client requests"}`
	overQuota  = `{"level":"warn","ts":"TS","caller":"etcdserver/server.go:1900","msg":"message exceeded backend quota; raising alarm","quota-size-bytes":2147483648,"quota-size":"2.1 GB","error":"etcdserver: no space"}`
	noSpace    = `{"level":"warn","ts":"TS","logger":"etcd-client","caller":"v3@v3.7.0/retry_interceptor.go:68","msg":"retrying of unary invoker failed","target":"etcd-endpoints://0x29640c13ca00/127.0.0.1:2379","method":"/etcdserverpb.KV/Txn","attempt":0,"error":"rpc error: code = ResourceExhausted desc = etcdserver: mvcc: database space exceeded"}`
	peerPort   = `WKLOG       1 logging.go:55] [core] [Channel #2 SubChannel #4] grpc: addrConn.createTransport failed to connect to {Addr: "127.0.0.1:2380", ServerName: "127.0.0.1:2380", }. Err: connection error: desc = "error reading server preface: http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header"`
	storeDown  = `EKLOG       1 run.go:72] "command failed" err="error creating storage factory: etcd grpc connection not ready: context deadline exceeded"`
)

// Nothing is wrong: no headline, and every row says so for itself.
func TestIncidentNone(t *testing.T) {
	for _, base := range []string{"single", "ha"} {
		t.Run(base, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, base)
			s.base(s.now.Add(-2 * time.Second))
			s.readyNodes()
			r := s.judge(expect{state: report.StateUndetermined, control: report.PlaneUp, user: report.PlaneUnknown,
				rows: []string{"cp1|etcd|alive", "cp1|kube-apiserver|alive", "cp1|kubelet|alive", "cp1|etcd member|alive", "cp1|VIP TCP|alive", "cp1|VIP authenticated GET|alive", "cp1|API /readyz|alive",
					"cluster|kube-scheduler lease|alive", "cluster|etcd quorum|alive", "cluster|control plane|alive", "cluster|user traffic|unknown"}})
			if in, ok := report.Fact[report.Incident](r, report.FactIncident); ok {
				t.Errorf("an incident: %v", in)
			}
			vs, _ := report.Fact[[]report.Version](r, report.FactVersions)
			if len(vs) < 6 {
				t.Errorf("versions %v", vs)
			}
			if q, _ := report.Fact[report.Quorum](r, report.FactQuorum); base == "ha" && (len(q.Nodes) != 3 || len(q.Domains) != 3 || q.Nodes[0].Quorum != "held" || q.Nodes[0].API != "2 of 3 that run" || len(q.Recovery) != 0) {
				t.Errorf("loss table %+v", q)
			}
		})
	}
}

// The API server dials etcd's peer port.
func TestIncidentPeerPort(t *testing.T) {
	s := newScene(t, "single")
	n := s.nodes["cp1"]
	s.edit(n, "etc/kubernetes/manifests/kube-apiserver.yaml", "--etcd-servers=https://127.0.0.1:2379", "--etcd-servers=https://127.0.0.1:2380")
	edited := s.now.Add(-6 * time.Minute)
	n.containers["kube-apiserver"] = ctr{attempt: 5, exit: 1, since: s.now.Add(-70 * time.Second), finished: s.now.Add(-50 * time.Second)}
	n.ladder = s.down(n, false)
	s.log(n, "kube-apiserver", 5, "70s "+peerPort, "65s "+peerPort, "55s "+peerPort, "50s "+storeDown)
	s.base(edited)
	s.readyNodes()
	s.later = s.later[:2] // nothing is renewed after the edit
	s.judge(expect{state: report.StateCause, headline: "STA201 cp1", chain: "C-04", control: report.PlaneDown, user: report.PlaneUnknown,
		rows:  []string{"cp1|kube-apiserver|dead", "cp1|etcd|alive", "cp1|VIP TCP|dead", "cp1|API /readyz|unknown", "cluster|user traffic|unknown"},
		quiet: []string{"STA206"}, finds: []string{"STA201 critical cp1 2380", "STA302 critical cp1 kube-apiserver", "HAV201 medium -"}})
}

// Scheduler dead: pods wait in silence. Nothing fits: the scheduler says so.
func TestIncidentSilentPending(t *testing.T) {
	t.Run("scheduler dead", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, "single")
		died := s.now.Add(-8 * time.Minute)
		s.nodes["cp1"].containers["kube-scheduler"] = ctr{attempt: 6, exit: 1, since: died.Add(-time.Second), finished: died}
		s.base(s.now.Add(-2 * time.Second))
		s.later[0] = s.lease("kube-system", "kube-scheduler", "cp1", died)
		s.readyNodes()
		s.pod("shop", "waits", "", nil, "")
		s.judge(expect{state: report.StateUndetermined, headline: "STA302 cp1", control: report.PlaneDegraded,
			rows:  []string{"cp1|kube-scheduler|dead", "cp1|kube-apiserver|alive", "cluster|kube-scheduler lease|dead", "cluster|kube-controller-manager lease|alive"},
			finds: []string{"STA302 high cp1 kube-scheduler", "HAV301 high - 1 pods wait .* nobody has judged"}})
	})
	t.Run("nothing fits", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, "single")
		s.base(s.now.Add(-2 * time.Second))
		s.readyNodes()
		s.pod("shop", "waits", "", nil, "  conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable, message: \"0/3 nodes are available: 3 Insufficient cpu.\"}]")
		s.object("apiVersion: v1\nkind: Event\nmetadata: {namespace: shop, name: waits.1}\ninvolvedObject: {kind: Pod, namespace: shop, name: waits}\nreason: FailedScheduling\ntype: Warning\nmessage: 0/3 nodes are available\nlastTimestamp: \"" + s.now.Add(-time.Minute).UTC().Format(time.RFC3339) + "\"")
		s.judge(expect{state: report.StateUndetermined, control: report.PlaneUp, rows: []string{"cp1|kube-scheduler|alive", "cluster|kube-scheduler lease|alive"}})
	})
}

// NOSPACE: reads go on, nothing is written, and so every node stays Ready.
func TestIncidentNoSpace(t *testing.T) {
	s := newScene(t, "single")
	n := s.nodes["cp1"]
	s.meta = "alarm NOSPACE a1\n"
	full := s.now.Add(-20 * time.Minute)
	s.base(full)
	s.readyNodes()
	s.later = []string{s.lease("kube-system", "kube-scheduler", "cp1", full), s.lease("kube-system", "kube-controller-manager", "cp1", full), s.lease("kube-node-lease", "cp1", "cp1", full)}
	s.log(n, "etcd", 0, "20m1s "+overQuota)
	s.log(n, "kube-apiserver", 0, "20m "+noSpace, "10m "+noSpace, "5s "+noSpace)
	r := s.judge(expect{state: report.StateCause, headline: "CAP101 cp1", chain: "C-03", control: report.PlaneDegraded, user: report.PlaneUnknown,
		rows:  []string{"cp1|Node object|last-seen|Ready=True", "cluster|writes|dead", "cp1|kube-apiserver|alive", "cp1|etcd member|alive", "cluster|etcd quorum|alive"},
		finds: []string{"CAP101 critical cp1", "HAV201 critical - nothing has been written since"}})
	in, ok := report.Fact[report.Incident](r, report.FactIncident)
	if !ok || in.From.Sub(s.now.Add(-20*time.Minute-time.Second)).Abs() > time.Second || !in.To.Equal(s.now) {
		t.Errorf("incident %+v", in)
	}
}

// Only kubelets and runtimes stop: the control plane goes on, on one node or on all.
func TestIncidentKubeletsStopped(t *testing.T) {
	for lost := 1; lost <= 3; lost++ {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, "ha")
			s.base(s.now.Add(-2 * time.Second))
			stopped := s.now.Add(-10 * time.Minute)
			want := expect{state: report.StateCause, headline: "NOD107", chain: "C-19", control: report.PlaneUp, finds: []string{"NOD106 high cp1", "NOD107 critical cp1", "HAV202 medium cp1 not Ready .* run on it"}}
			for i, name := range s.names() {
				n := s.nodes[name]
				if i < lost {
					n.kubelet, n.noRuntime = "inactive", true
					s.node(name, n.ip, "zone-"+name, "Unknown", "NodeStatusUnknown", stopped, false)
					s.later = append(s.later, s.lease("kube-node-lease", name, name, stopped))
					want.rows = append(want.rows, name+"|kubelet|dead", name+"|etcd|alive", name+"|kube-apiserver|alive", name+"|etcd member|alive", name+"|Node object|last-seen|Ready=Unknown")
				} else {
					s.node(name, n.ip, "zone-"+name, "True", "KubeletReady", s.now.Add(-bootAge), false)
					s.later = append(s.later, s.lease("kube-node-lease", name, name, s.now.Add(-3*time.Second)))
				}
			}
			want.rows = append(want.rows, "cluster|etcd quorum|alive", "cluster|control plane|alive")
			s.judge(want)
		})
	}
}

// loseProcesses kills etcd and the API server of some nodes; their machines answer.
func (s *scene) loseProcesses(since time.Duration, names ...string) {
	for _, name := range names {
		n := s.nodes[name]
		n.behind = true
		for _, c := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			n.containers[c] = ctr{attempt: 0, exit: 137, since: s.now.Add(-bootAge), finished: s.now.Add(-since)}
		}
		n.kubelet = "inactive"
	}
}

// Control-plane processes of two, then three of three nodes are gone: no quorum,
// although the endpoint may still accept connections.
func TestIncidentProcessesLost(t *testing.T) {
	for lost := 1; lost <= 3; lost++ {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, "ha")
			at := s.now.Add(-10 * time.Minute)
			if lost == 1 {
				at = s.now.Add(-2 * time.Second)
			}
			s.base(at)
			s.readyNodes()
			if lost > 1 {
				s.later = s.later[:2]
			}
			names := s.names()[:lost]
			s.loseProcesses(10*time.Minute, names...)
			for _, name := range s.names() {
				n := s.nodes[name]
				switch {
				case lost == 1 && n.kubelet == "inactive":
					n.ladder = s.down(n, true)
					n.ladder[0] = s.probes(n, true)[0]
				case n.kubelet == "inactive":
					n.ladder = s.down(n, true)
				case lost > 1:
					n.ladder = s.probes(n, false)
				}
			}
			want := expect{quiet: []string{"NOD106", "STA302", "HAV103", "HAV104", "HAV201", "HAV202", "HAV301", "QRM107"}}
			for _, name := range names {
				want.rows = append(want.rows, name+"|etcd|dead", name+"|kube-apiserver|dead", name+"|etcd member|dead", name+"|Node object|last-seen|Ready=True")
			}
			if lost == 1 {
				want.state, want.headline, want.chain, want.control = report.StateCause, "NOD106 cp1", "C-25", report.PlaneDegraded
				want.finds = []string{"QRM101 high -"}
				want.rows = append(want.rows, "cp2|etcd|alive", "cluster|etcd quorum|alive")
			} else {
				want.state, want.headline, want.chain, want.control = report.StateCause, "NOD106", "C-25", report.PlaneDown
				want.finds = []string{"QRM101 critical -"}
				want.rows = append(want.rows, "cluster|etcd quorum|dead", "cp1|VIP TCP|alive", "cp1|VIP authenticated GET|dead")
			}
			r := s.judge(want)
			q, _ := report.Fact[report.Quorum](r, report.FactQuorum)
			if len(q.Recovery) != lost || !strings.Contains(q.Recovery[0].Text, "the machine answers") {
				t.Errorf("recovery %+v", q.Recovery)
			}
			for i, x := range q.Recovery {
				if x.Quorum != (lost == 2 && i == 0 || lost == 3 && i == 1) {
					t.Errorf("recovery of %d lost: step %d says quorum %v", lost, i, x.Quorum)
				}
			}
		})
	}
}

// Machines gone: nothing of them but what the others say. back lists those that
// have come back.
func TestIncidentMachinesLost(t *testing.T) {
	for _, c := range []struct {
		name                     string
		gone                     []string
		headline, state, control string
	}{
		{"one", []string{"cp1"}, "QRM101", report.StateCause, report.PlaneUp},
		{"two", []string{"cp1", "cp2"}, "QRM101", report.StateCause, report.PlaneDown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, "ha")
			lost := len(c.gone) > 1
			at := s.now.Add(-2 * time.Second)
			if lost {
				at = s.now.Add(-10 * time.Minute)
			}
			s.base(at)
			s.readyNodes()
			if lost {
				s.later = s.later[:2]
			}
			want := expect{state: c.state, headline: c.headline, control: c.control, chain: "C-14", user: report.PlaneUnknown, quiet: []string{"HAV103", "HAV201", "HAV301", "QRM107", "HAV104"}, finds: []string{"QRM101 high -"}}
			if lost {
				want.finds = []string{"QRM101 critical -"}
			}
			for _, name := range c.gone {
				s.nodes[name].gone = true
				want.rows = append(want.rows, name+"|etcd member|dead", name+"|Node object|last-seen|Ready=True")
			}
			for _, name := range s.names() {
				n := s.nodes[name]
				if n.gone {
					continue
				}
				lines := []string{}
				for _, g := range c.gone {
					lines = append(lines, "10m "+fmt.Sprintf(peerLost, s.nodes[g].id), "9m "+fmt.Sprintf(probeFails, s.nodes[g].id), "5s "+fmt.Sprintf(probeFails, s.nodes[g].id))
				}
				if lost {
					lines = append(lines, "9m58s "+fmt.Sprintf(lostLeader, n.id, s.nodes["cp1"].id), "9m "+noLeader, "4s "+noLeader)
					n.ladder = s.probes(n, false)
				}
				s.log(n, "etcd", 0, lines...)
			}
			r := s.judge(want)
			q, _ := report.Fact[report.Quorum](r, report.FactQuorum)
			if len(q.Recovery) != len(c.gone) || !strings.Contains(q.Recovery[0].Text, "power, network") || q.Recovery[0].Quorum != lost {
				t.Errorf("recovery %+v", q.Recovery)
			}
		})
	}
	// All three are gone and one disk was read: nothing is claimed of the present.
	t.Run("three", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, "ha")
		s.base(s.now.Add(-3 * time.Hour))
		s.readyNodes()
		s.later = s.later[:2]
		for _, name := range s.names() {
			s.nodes[name].gone = name != "cp1"
		}
		s.nodes["cp1"].disk = true
		s.judge(expect{state: report.StateUndetermined, headline: "", control: report.PlaneUnknown, user: report.PlaneUnknown,
			rows: []string{"cp1|etcd|unknown", "cp1|kube-apiserver|unknown", "cp1|kubelet|unknown", "cp2|etcd member|unknown", "cp3|Node object|last-seen|Ready=True", "cluster|etcd quorum|unknown"}})
	})
	// Two are back: quorum holds, the third is still called Ready.
	t.Run("two back", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, "ha")
		s.base(s.now.Add(-2 * time.Second))
		s.readyNodes()
		for i, l := range s.later {
			if strings.Contains(l, "name: cp3") {
				s.later[i] = s.lease("kube-node-lease", "cp3", "cp3", s.now.Add(-30*time.Minute))
			}
		}
		s.nodes["cp3"].gone = true
		for _, name := range []string{"cp1", "cp2"} {
			n := s.nodes[name]
			for c := range n.containers {
				n.containers[c] = ctr{running: true, attempt: 1, since: s.now.Add(-3 * time.Minute)}
			}
			s.log(n, "etcd", 1, "2m "+fmt.Sprintf(probeFails, s.nodes["cp3"].id), "90s "+fmt.Sprintf(probeFails, s.nodes["cp3"].id), "5s "+fmt.Sprintf(probeFails, s.nodes["cp3"].id))
		}
		s.judge(expect{state: report.StateCause, headline: "QRM101", control: report.PlaneUp, finds: []string{"QRM101 high -", "HAV201 medium - cp3 is still called Ready"}, quiet: []string{"QRM107"},
			rows: []string{"cp3|etcd member|dead", "cp3|Node object|last-seen|Ready=True", "cluster|etcd quorum|alive", "cluster|control plane|alive"}})
	})
	// One is back: its processes run, and still nothing is decided without a second.
	t.Run("one back", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, "ha")
		s.base(s.now.Add(-30 * time.Minute))
		s.readyNodes()
		s.later = s.later[:2]
		s.nodes["cp2"].gone, s.nodes["cp3"].gone = true, true
		n := s.nodes["cp1"]
		for c := range n.containers {
			n.containers[c] = ctr{running: true, attempt: 1, since: s.now.Add(-3 * time.Minute)}
		}
		n.ladder = s.probes(n, false)
		lines := []string{"2m " + noLeader, "4s " + noLeader}
		for _, g := range []string{"cp2", "cp3"} {
			lines = append(lines, "2m "+fmt.Sprintf(probeFails, s.nodes[g].id), "65s "+fmt.Sprintf(probeFails, s.nodes[g].id), "5s "+fmt.Sprintf(probeFails, s.nodes[g].id))
		}
		s.log(n, "etcd", 1, lines...)
		r := s.judge(expect{state: report.StateCause, headline: "QRM101", chain: "C-14", control: report.PlaneDown, finds: []string{"QRM101 critical -"},
			quiet: []string{"HAV103", "HAV104", "HAV201", "HAV301", "QRM107"},
			rows:  []string{"cp1|etcd|alive", "cp1|kube-apiserver|alive", "cp2|etcd member|dead", "cp3|etcd member|dead", "cluster|etcd quorum|dead", "cluster|control plane|dead"}})
		q, _ := report.Fact[report.Quorum](r, report.FactQuorum)
		if len(q.Recovery) != 2 || !q.Recovery[0].Quorum || q.Recovery[1].Quorum {
			t.Errorf("recovery %+v", q.Recovery)
		}
	})
	// All three are back: what stands in the old logs is no incident any more.
	t.Run("recovered", func(t *testing.T) {
		t.Parallel()
		s := newScene(t, "ha")
		s.base(s.now.Add(-2 * time.Second))
		s.readyNodes()
		for _, name := range s.names() {
			n := s.nodes[name]
			for c := range n.containers {
				n.containers[c] = ctr{running: true, attempt: 1, since: s.now.Add(-20 * time.Minute)}
			}
			s.log(n, "etcd", 0, "70m "+noLeader, "40m "+noLeader)
			s.log(n, "etcd", 1, "19m50s "+fmt.Sprintf(elected, n.id, s.nodes["cp2"].id), "19m48s "+serving)
		}
		s.judge(expect{state: report.StateUndetermined, headline: "", control: report.PlaneUp,
			rows: []string{"cp1|etcd|alive", "cp3|etcd member|alive", "cluster|etcd quorum|alive", "cluster|control plane|alive"}})
	})
}

// Two clusters in one input: each is judged as if it had been given alone, and
// what is wrong with one is not said of the other (BUN102).
func TestIncidentTwoClusters(t *testing.T) {
	s := newScene(t, "ha")
	s.base(s.now.Add(-10 * time.Minute))
	s.readyNodes()
	s.later = s.later[:2]
	s.nodes["cp3"].alien = true
	s.members = strings.Join(strings.SplitAfter(s.members, "\n")[:2], "")
	s.loseProcesses(10*time.Minute, "cp2")
	s.nodes["cp2"].ladder = s.down(s.nodes["cp2"], true)
	s.nodes["cp1"].ladder = s.probes(s.nodes["cp1"], false)
	r := s.judge(expect{state: report.StateCause, headline: "NOD106 cp2", control: report.PlaneDown,
		quiet: []string{"BUN102", "STA302", "HAV101", "HAV103", "HAV104", "HAV201", "HAV202", "HAV301", "HAV402", "NOD106"},
		finds: []string{"BUN102 critical - the inputs are of 2 clusters", "QRM101 critical -"},
		rows:  []string{"cluster of cp1|etcd quorum|dead", "cluster of cp3|etcd quorum|alive", "cluster of cp1|control plane|dead", "cluster of cp3|control plane|alive", "cluster|control plane|dead", "cp3|etcd member|alive"}})
	q, _ := report.Fact[report.Quorum](r, report.FactQuorum)
	if q.State != "lost" || q.Voters != 2 || len(q.Nodes) != 3 || !strings.Contains(q.Text, "Cluster of cp3: 1 of 1 voters seen alive") {
		t.Errorf("quorum %+v", q)
	}
}

// A restore into another directory: kubeadm must learn of it.
func TestIncidentRestored(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		t.Run(fmt.Sprintf("fixed %v", fixed), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, "single")
			n := s.nodes["cp1"]
			s.base(s.now.Add(-2 * time.Second))
			s.readyNodes()
			// The old directory stays, as it was when etcd was stopped.
			n.behind = true
			s.store(n)
			n.behind, n.dataDir = false, "var/lib/etcd-restored"
			s.edit(n, "etc/kubernetes/manifests/etcd.yaml", "path: /var/lib/etcd\n", "path: /var/lib/etcd-restored\n")
			want := expect{state: report.StateCause, headline: "DIR102 cp1", chain: "C-07", control: report.PlaneUp, finds: []string{"DIR102 critical cp1"}}
			if fixed {
				s.edit(n, "kubeadm-config.yaml", "dataDir: /var/lib/etcd", "dataDir: /var/lib/etcd-restored")
				want = expect{state: report.StateUndetermined, control: report.PlaneUp}
			}
			s.judge(want)
		})
	}
}

// Certificates were renewed and the controller-manager never restarted.
func TestIncidentRenewed(t *testing.T) {
	s := newScene(t, "single")
	s.base(s.now.Add(-2 * time.Second))
	s.readyNodes()
	s.files["all!pki"] = []byte("controller-manager.conf from=2026-05-25T00:00:00Z\nscheduler.conf from=2026-05-25T00:00:00Z\napiserver from=2026-05-25T00:00:00Z\netcd/server from=2026-05-25T00:00:00Z\napiserver-etcd-client from=2026-05-25T00:00:00Z\n")
	n := s.nodes["cp1"]
	c := n.containers["kube-scheduler"]
	c.since = s.now.Add(-5 * 24 * time.Hour) // restarted after the renewal
	n.containers["kube-scheduler"] = c
	s.judge(expect{state: report.StateCause, headline: "PKI401 cp1", control: report.PlaneUp, finds: []string{"PKI401 medium cp1 controller-manager"},
		rows: []string{"cp1|kube-controller-manager|alive", "cluster|kube-controller-manager lease|alive"}})
}

// CoreDNS is a Deployment: being elsewhere is no fault.
func TestIncidentCoreDNSMoved(t *testing.T) {
	s := newScene(t, "ha")
	s.base(s.now.Add(-2 * time.Second))
	s.readyNodes()
	for i, o := range s.objects {
		s.objects[i] = strings.Replace(o, `nodeName: "w1"`, `nodeName: "cp3"`, 1)
	}
	s.judge(expect{state: report.StateUndetermined, control: report.PlaneUp, rows: []string{"cluster|CoreDNS|last-seen|2 of 2 pods Running on cp3, w2"}})
}

// TestRecoveryElsewhere: the sample's member that does not answer is not a dead
// machine; its etcd works in the cluster a restore made.
func TestRecoveryElsewhere(t *testing.T) {
	set, err := bundle.Open(t.Context(), []string{"../testdata/incident"}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var o Options
	o.AsOf = time.Date(2026, 5, 12, 9, 30, 0, 0, time.UTC)
	r, err := Evaluate(t.Context(), set, o)
	if err != nil {
		t.Fatal(err)
	}
	q, _ := report.Fact[report.Quorum](r, report.FactQuorum)
	if len(q.Recovery) != 1 || q.Recovery[0].Node != "cp1" || !strings.Contains(q.Recovery[0].Text, "works in another cluster (cdf818194e3a8c32)") {
		t.Errorf("%+v", q.Recovery)
	}
}
