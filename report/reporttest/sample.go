package reporttest

import (
	"fmt"
	"strings"

	"coldplane/report"
)

// Sample is the report of a three-node cluster after half a restore: cp1 was
// restored into a new directory, cp2 runs the old data, cp3 is gone. All facts
// are filled.
func Sample() *report.Report {
	r := Empty()
	r.AsOf, r.AsOfSource = ptr(asOf), "collection"
	r.Inputs = []report.Input{
		{ID: "b1", Path: "coldplane-cp1-20260314T092653Z.tar.zst", Format: "coldplane bundle", Node: "cp1", State: "intact", CollectedAt: ptr(asOf), SHA256: strings.Repeat("1a", 32)},
		{ID: "b2", Path: "coldplane-cp2-20260314T092711Z.tar.zst", Format: "coldplane bundle", Node: "cp2", State: "intact", CollectedAt: ptr(at(0.3)), SHA256: strings.Repeat("2b", 32)},
		{ID: "b3", Path: "cp3-disk", Format: "node root", Node: "cp3", State: "read"},
	}
	split := sampleFinding("QRM112", "etcd-nodes-in-different-clusters", "", "etcd clusters", report.Critical,
		"Nodes belong to different etcd clusters", "cp1 runs cluster 7a1f0c5d2e9b4c11 with one member, cp2 runs cluster cdf818194e3a8c32 with three; both claim to be this Kubernetes cluster",
		ev("b1", "cp1", "var/lib/etcd-restored/member/wal/0000000000000000-0000000000000000.wal", 0, "cluster id 7a1f0c5d2e9b4c11"),
		ev("b2", "cp2", "var/lib/etcd/member/wal/0000000000000007-00000000000c3f1a.wal", 0, "cluster id cdf818194e3a8c32"))
	dir := sampleFinding("DIR102", "etcd-data-dir-not-in-kubeadm-config", "cp1", "etcd data directory", report.Critical,
		"etcd's live data directory is not the one kubeadm remembers", "etcd uses /var/lib/etcd-restored on the host, kubeadm-config says /var/lib/etcd; /var/lib/etcd still holds a member (1.9 GiB), so the next upgrade starts etcd on that data",
		ev("b1", "cp1", "etc/kubernetes/manifests/etcd.yaml", 83, "path: /var/lib/etcd-restored"), ev("b1", "cp1", "kubeadm-config.yaml", 17, "dataDir: /var/lib/etcd"))
	rst := sampleFinding("RST101", "restored-with-default-identity", "cp1", "etcd member", report.High,
		"Restored with the default member identity", "the restored member is 8e9e05c52164694d, name default, peer URL http://localhost:2380: other members cannot find it",
		report.Evidence{Input: "b1", Node: "cp1", Path: "var/lib/etcd-restored/member/snap/db", Key: "members/8e9e05c52164694d", Excerpt: `{"name":"default","peerURLs":["http://localhost:2380"]}`, Role: report.RoleSubject})
	quorum := sampleFinding("QRM101", "quorum-and-tolerance", "", "etcd quorum", report.Critical,
		"etcd has no quorum", "of 3 voters 1 is alive, 2 are needed: writes are refused until one more comes back", ev("b2", "cp2", "etcdctl/endpoint-status.json", 4, `"errors":["etcdserver: no leader"]`))
	stale := sampleFinding("HAV201", "status-is-the-last-observation", "", "Node objects", report.Medium,
		"Object status is the last observation, not the present", "3 nodes read Ready, their leases are 41 minutes old", report.Evidence{Input: "b2", Node: "cp2", Path: "etcd/snapshot.db", Key: "/registry/leases/kube-node-lease/cp3", Revision: 804211, Excerpt: "renewTime 2026-03-14T08:45:39Z", Role: report.RoleSubject})
	cert := sampleFinding("PKI102", "certificate-expires-soon", "cp2", "apiserver.crt", report.Medium,
		"A certificate expires soon", "apiserver.crt expires in 19 days (2026-04-02)", ev("b2", "cp2", "etc/kubernetes/pki/apiserver.crt", 0, "notAfter 2026-04-02T08:00:00Z"))
	frag := sampleFinding("CAP103", "database-fragmented", "cp2", "etcd database", report.Low,
		"Free pages make up most of the database file", "1.1 of 1.9 GiB are free pages", ev("b2", "cp2", "etcd/snapshot.db", 0, "free 1181116006 of 2040109465 bytes"))
	frag.Confidence = report.Probable
	dir.Explains, split.ExplainedBy = []string{split.ID}, []string{dir.ID}
	split.Explains, quorum.ExplainedBy = []string{quorum.ID}, []string{split.ID}
	quorum.Explains, stale.ExplainedBy = []string{stale.ID}, []string{quorum.ID}
	dir.Fix = []report.Step{
		{Text: "Do not run kubeadm upgrade on any node before this is settled."},
		{Text: "See which directory holds the data you want to keep.", Command: "coldplane etcd status /var/lib/etcd /var/lib/etcd-restored"},
		{Text: "Write the directory etcd really uses into kubeadm-config.", Command: "kubectl -n kube-system edit configmap kubeadm-config\n# etcd.local.dataDir: /var/lib/etcd-restored"},
	}
	r.Findings = []report.Finding{split, dir, rst, quorum, stale, cert, frag}
	r.Verdict = report.Verdict{
		State: report.StateCause, Headline: ptr(split.ID), ChainName: "C-08 restore on one node only",
		Summary: "cp1 was restored from a snapshot into a new directory and began a cluster of its own; cp2 still runs the old one and lost its quorum with cp3.",
		Chain: []report.ChainLink{
			{Finding: split.ID, Because: "cp1 was restored alone, at 2026-03-14T08:44:02Z"},
			{Finding: rst.ID, Because: "no --name and no --initial-cluster were given, so the member took the defaults"},
			{Finding: quorum.ID, Because: "cp1 left the old cluster and cp3 is down: 1 of 3 voters is left"},
			{Finding: stale.ID, Because: "nothing can be written, so nodes still read Ready"},
		},
		Candidates: []report.Candidate{},
		Collect:    []report.Collect{{What: "the journal of kubelet and containerd on cp3", Command: "ssh cp3 sudo coldplane collect -o - > cp3.tar.zst"}},
		Control:    report.PlaneDown, UserPlane: report.PlaneUp,
		Do: []report.Step{
			{Text: "Decide which data is right: cp1's (restored at 08:44) or cp2's (newest write 08:45)."},
			{Text: "Stop every API server, so that nobody writes to either.", Command: "mv /etc/kubernetes/manifests/kube-apiserver.yaml /root/"},
			{Text: "Restore the same snapshot on all three nodes, each with its own --name and the full --initial-cluster."},
		},
		DoNot: []string{"Do not start cp3 with its old data directory before the restore.", "Do not run kubeadm upgrade: it would start etcd on /var/lib/etcd again."},
	}
	r.Results = sampleResults(r.Findings)
	r.Tool.Rules = len(sampleRules)
	r.Facts = sampleFacts(r.Findings)
	r.Timeline = sampleTimeline(r.Findings)
	r.Sort()
	return r
}

func ev(input, node, path string, line int, excerpt string) report.Evidence {
	return report.Evidence{Input: input, Node: node, Path: path, Line: line, Excerpt: excerpt}
}

func sampleFinding(rule, name, node, subject string, s report.Severity, title, msg string, evidence ...report.Evidence) report.Finding {
	f := finding(rule, node, subject, s, report.Certain, msg)
	f.Name, f.Title, f.Evidence = name, title, evidence
	for i := range f.Evidence {
		f.Evidence[i].Role = report.RoleContext
		if i == 0 {
			f.Evidence[i].Role = report.RoleSubject
		}
	}
	f.Fix = []report.Step{{Text: "What to do about " + rule + ", in order.", Command: "coldplane explain " + rule}}
	return f
}

var sampleRules = []string{"ADM101", "CAP101", "CAP102", "CAP103", "CAP104", "DIR101", "DIR102", "DIR103", "HAV103", "HAV201", "NOD101", "PKI101", "PKI102", "PKI201", "QRM101", "QRM106", "QRM112", "RST101", "STA101", "STA302", "UPG101"}

func sampleResults(fs []report.Finding) []report.Result {
	var out []report.Result
	for i, rule := range sampleRules {
		subjects := []string{"cp1", "cp2", "cp3"}
		if strings.HasPrefix(rule, "QRM") || strings.HasPrefix(rule, "HAV") {
			subjects = []string{"cluster"}
		}
		for _, s := range subjects {
			x := report.Result{Rule: rule, Subject: s, Outcome: report.Pass, Gaps: []report.Gap{}}
			for _, f := range fs {
				if f.Rule == rule && (f.Node == s || s == "cluster") {
					x.Outcome = report.Fail
				}
			}
			switch {
			case x.Outcome == report.Fail:
			case s == "cp3" && i%2 == 0:
				x.Outcome = report.Unknown
				x.Gaps = []report.Gap{{Evidence: "logs.kubelet", Node: "cp3", Reason: "not-collected", Detail: "a disk holds no journal of a volatile machine"}}
			case rule == "ADM101":
				x.Outcome, x.Detail = report.NotApplicable, "no webhook is registered"
			}
			out = append(out, x)
		}
	}
	return out
}

func sampleFacts(fs []report.Finding) map[string]any {
	row := func(plane, subject, name, state string, minutes float64, text string) report.MatrixRow {
		return report.MatrixRow{Plane: plane, Subject: subject, Name: name, State: state, Time: ptr(at(minutes)), Text: text, Evidence: []report.Evidence{ev("b1", subject, "crictl/ps.json", 12, text)}}
	}
	member := func(id, node, state, why string, leader bool) report.Member {
		return report.Member{ID: id, Name: node, Node: node, Cluster: "cdf818194e3a8c32", PeerURLs: []string{"https://10.0.0.1:2380"}, ClientURLs: []string{"https://10.0.0.1:2379"}, State: state, Why: why, Time: ptr(at(-3)), Leader: leader, Domain: "rack-" + node[2:], Version: "3.6.8", Term: 14, Index: 913220, Revision: 804311, Size: 2040109465, Source: "etcd/snapshot.db"}
	}
	typ := func(name string, live, history, objects, revs int64, ns ...string) report.StoreType {
		t := report.StoreType{Type: name, Live: live, History: history, Objects: objects, Revisions: revs}
		for i, n := range ns {
			t.Namespaces = append(t.Namespaces, report.StoreNamespace{Namespace: n, Live: live / int64(i+2), History: history / int64(i+2), Objects: objects / int64(i+2)})
		}
		return t
	}
	certificate := func(node, path, role, subject string, from, days int, chain string) report.Certificate {
		return report.Certificate{Node: node, Path: path, Role: role, Subject: subject, Issuer: "CN=kubernetes", SANs: []string{node, "10.0.0.1"}, UsedBy: []string{"kube-apiserver --tls-cert-file"}, NotBefore: asOf.AddDate(0, 0, from), NotAfter: asOf.AddDate(0, 0, days), DaysLeft: ptr(days), Chain: chain, KeyMatch: report.Good, AsOf: ptr(asOf)}
	}
	var certs []report.Certificate
	for _, n := range []string{"cp1", "cp2", "cp3"} {
		certs = append(certs,
			certificate(n, "etc/kubernetes/pki/ca.crt", "ca", "CN=kubernetes", -500, 3150, report.Good),
			certificate(n, "etc/kubernetes/pki/apiserver.crt", "apiserver", "CN=kube-apiserver", -346, 19, report.Good),
			certificate(n, "etc/kubernetes/pki/etcd/peer.crt", "etcd/peer", "CN="+n, -346, 190, report.Good),
			certificate(n, "etc/kubernetes/pki/front-proxy-client.crt", "front-proxy-client", "CN=front-proxy-client", -380, -15, report.Bad))
	}
	certs[0].CA = true
	return map[string]any{
		report.FactBanner:   report.Banner{Text: "cluster state as of 2026-03-14T08:45:41Z, 2472 s before collection", LastWrite: ptr(at(-41.2)), AgeSeconds: ptr(int64(2472))},
		report.FactTopology: report.Topology{KubernetesVersion: "v1.34.2", ControlPlaneEndpoint: "10.0.0.100:6443", Etcd: "stacked", Source: "kubeadm-config.yaml"},
		report.FactInventory: []report.NodeInventory{
			{Node: "cp1", Roles: []string{"control-plane", "etcd"}, Inputs: []string{"b1"}, DataDir: "/var/lib/etcd-restored", AsOf: ptr(asOf), AsOfSource: "collection", Components: []report.Component{{Name: "etcd", Version: "3.6.8-0", Path: "etc/kubernetes/manifests/etcd.yaml"}, {Name: "kube-apiserver", Version: "v1.34.2", Path: "etc/kubernetes/manifests/kube-apiserver.yaml"}}},
			{Node: "cp2", Roles: []string{"control-plane", "etcd"}, Inputs: []string{"b2"}, DataDir: "/var/lib/etcd", AsOf: ptr(at(0.3)), AsOfSource: "collection", Components: []report.Component{{Name: "etcd", Version: "3.6.8-0", Path: "etc/kubernetes/manifests/etcd.yaml"}}},
			{Node: "cp3", Roles: []string{"control-plane"}, Inputs: []string{"b3"}, DataDir: "/var/lib/etcd", AsOf: ptr(at(-52)), AsOfSource: "inferred", AsOfDetail: "newest log line", Components: []report.Component{}},
		},
		report.FactVersions: []report.Version{
			{Node: "cp1", Component: "kube-apiserver", Version: "v1.34.2", Source: "manifest"}, {Node: "cp1", Component: "etcd", Version: "3.6.8", Source: "log"},
			{Node: "cp2", Component: "kubelet", Version: "v1.33.1", Source: "node status", Note: "one minor behind"},
		},
		report.FactMatrix: report.Matrix{Rows: []report.MatrixRow{
			row("control", "cp1", "etcd process", report.Alive, -1, "container running, attempt 3"), row("control", "cp2", "etcd process", report.Alive, -1, "container running"), row("control", "cp3", "etcd process", report.LastSeen, -52, "last log line"),
			row("control", "cp1", "API server process", report.Alive, -1, "container running"), row("control", "cp2", "API server process", report.Dead, -1, "exited 1, 38 restarts"), row("control", "cp3", "API server process", report.NotKnown, -52, "no runtime evidence"),
			row("control", "cp1", "kubelet", report.Alive, -1, "unit active"), row("control", "cp2", "kubelet", report.Alive, -1, "unit active"), row("control", "cp3", "kubelet", report.LastSeen, -52, "journal ends"),
			row("control", "cluster", "VIP TCP", report.Alive, -1, "10.0.0.100:6443 accepts"), row("control", "cluster", "authenticated GET", report.Dead, -1, "timeout after 5 s"),
			row("control", "cluster", "scheduling", report.Dead, -40, "no lease renewed since"), row("user", "cluster", "user traffic", report.Alive, -2, "ingress answered"), row("user", "cluster", "CoreDNS", report.Alive, -2, "2 containers running"),
		}},
		report.FactMembers: []report.Member{
			member("8211f1d0f64f3269", "cp1", report.Dead, "its directory is not mounted any more", false), member("91bc3c398fb3c146", "cp2", report.Alive, "answers its status", false),
			member("fd422379fda50e48", "cp3", report.LastSeen, "last heartbeat in cp2's log", true), {ID: "aa11", Name: "cp4", Node: "cp4", Learner: true, State: report.NotKnown, PeerURLs: []string{}, ClientURLs: []string{}, Cluster: "cdf818194e3a8c32", Domain: "rack-1"},
		},
		report.FactQuorum: report.Quorum{
			State: "lost", Text: "1 of 3 voters is proved alive, 2 are needed", Cluster: "cdf818194e3a8c32", Voters: 3, Learners: 1, Need: 2, AliveMin: 1, AliveMax: 2, ToleranceMin: -1, ToleranceMax: 0, Source: "etcd/snapshot.db",
			Losses:  []report.Loss{{Lost: 0, Left: 2, Quorum: "unknown", Text: "held only if cp3 is alive"}, {Lost: 1, Left: 1, Quorum: "lost"}, {Lost: 2, Left: 0, Quorum: "lost"}},
			Domains: []report.Domain{{Name: "rack-1", Members: []string{"cp1", "cp4"}, Quorum: "unknown"}, {Name: "rack-2", Members: []string{"cp2"}, Quorum: "lost"}, {Name: "rack-3", Members: []string{"cp3"}, Quorum: "lost"}},
		},
		report.FactStore: []report.Store{{
			Node: "cp2", Member: "91bc3c398fb3c146", Path: "etcd/snapshot.db", Size: 2040109465, InUse: 858993459, Free: 1181116006, Live: 312000000, History: 498000000, Tombstones: 9120, Keys: 48211, Revisions: 391022, Revision: 804311, Compacted: 412000,
			Quota: ptr(int64(2 << 30)), QuotaSource: "default", AfterComp: ptr(int64(330000000)), AfterDefrag: ptr(int64(334000000)), Alarms: []report.Alarm{}, LastWrite: ptr(at(-41.2)), Version: "3.6",
			Types: []report.StoreType{
				typ("events", 121000000, 260000000, 31000, 180000, "loki", "default", "argocd"), typ("configmaps", 90000000, 120000000, 900, 41000, "argocd", "kube-system"), typ("secrets", 60000000, 20000000, 1200, 5000, "default", "helm"),
				typ("pods", 21000000, 48000000, 900, 61000, "default", "loki", "kube-system", "데모"), typ("leases", 900000, 44000000, 120, 98000, "kube-node-lease"), typ("customresourcedefinitions", 12000000, 3000000, 180, 400), typ("other", 7100000, 3000000, 400, 900),
			},
			Largest: []report.StoreKey{{Key: "/registry/configmaps/argocd/big", Size: 1040000, Revisions: 4, Bytes: 4100000}, {Key: "/registry/secrets/helm/sh.helm.release.v1.loki.v41", Size: 890000, Revisions: 1, Bytes: 890000}},
			Hot:     []report.StoreKey{{Key: "/registry/leases/kube-system/kube-scheduler", Size: 460, Revisions: 41200, Bytes: 18900000}},
		}},
		report.FactCertificates: certs,
		report.FactIncident:     report.Incident{From: at(-44), To: at(0), Why: "etcd on cp1 stopped"},
	}
}

func sampleTimeline(fs []report.Finding) []report.Event {
	mark := func(minutes float64, node, source, text string) report.Event {
		e := ev("b1", node, "var/log/pods/etcd/0.log", 100, text)
		return report.Event{Time: at(minutes), Node: node, Source: source, Text: text, Kind: report.EventMark, Ref: &e}
	}
	out := []report.Event{
		mark(-52, "cp3", "etcd", "last line of cp3's etcd"), mark(-44, "cp1", "etcd", "etcd stops: terminated"), mark(-42.8, "cp1", "files", "etcd.yaml changed: hostPath /var/lib/etcd-restored"),
		mark(-42.2, "cp1", "etcd", "etcd starts a cluster of its own"), mark(-41.2, "cp2", "etcd", "last good write, revision 804311"), mark(-41, "cp2", "etcd", "leader lost"), mark(-40.9, "cp2", "apiserver", "first refused write"),
		{Time: at(-52), Until: ptr(at(0)), Node: "cp3", Source: "etcd", Text: "nothing was logged", Kind: report.EventGap},
		{Time: at(-30), Until: ptr(at(-10)), Node: "cp2", Source: "kubelet", Text: "restarting kube-apiserver over and over", Kind: report.EventSpan, Finding: fs[0].ID},
	}
	for i := range 60 {
		out = append(out, report.Event{Time: at(-60 + float64(i)), Node: fmt.Sprintf("cp%d", 1+i%3), Source: []string{"etcd", "kubelet", "apiserver", "leases"}[i%4], Text: fmt.Sprintf("entry %d", i)})
	}
	return out
}

// Big is a report of so many findings and timeline entries.
func Big(findings, events int) *report.Report {
	r := Sample()
	for i := range findings {
		node := fmt.Sprintf("cp%d", i%9+1)
		f := sampleFinding([]string{"PKI102", "CAP107", "STA202", "UPG201"}[i%4], "name", node, fmt.Sprintf("subject %d", i), report.Severities()[i%5], "A title of usual length for a rule", fmt.Sprintf("object %d is larger than it should be by a good deal, written by controller %d", i, i%7),
			ev("b1", node, fmt.Sprintf("etc/kubernetes/manifests/file-%d.yaml", i), i+1, "value: "+strings.Repeat("x", 60)), ev("b1", node, "var/log/pods/x/0.log", i+9, strings.Repeat("log line ", 12)))
		r.Findings = append(r.Findings, f)
	}
	for i := range events {
		e := ev("b1", "cp1", "var/log/pods/etcd/0.log", i+1, "")
		r.Timeline = append(r.Timeline, report.Event{Time: at(-60 + float64(i)/float64(events)*60), Node: fmt.Sprintf("cp%d", i%3+1), Source: []string{"etcd", "kubelet", "apiserver", "events", "leases"}[i%5], Text: fmt.Sprintf("apply request took too long, entry %d of the log", i), Ref: &e})
	}
	r.Sort()
	return r
}
