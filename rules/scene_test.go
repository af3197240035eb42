package rules

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/analyzetest"
	"coldplane/analyze/etcdstore/storetest"
	"coldplane/analyze/pki/pkitest"
	"coldplane/bundle"
	"coldplane/bundle/decode/walframe/walframetest"
	"coldplane/bundle/hostfacts"
	"coldplane/report"
)

// A scene is a small cluster at one moment, as its nodes' evidence: kubeadm's
// files, the machine's processes and units, containers, probes, etcd's store
// and log. Everything is made in the test and read by the whole path that
// analyze takes.
type scene struct {
	t     *testing.T
	now   time.Time
	files map[string][]byte
	nodes map[string]*sceneNode
	// objects of the store, in the words of storetest. later are those that nodes
	// which fell behind have not seen.
	objects, later []string
	members        string // storetest member lines
	meta           string // further storetest lines: alarms
}

// A sceneNode is how one control-plane node was found.
type sceneNode struct {
	name, ip   string
	id         uint64
	gone       bool               // no evidence of it at all
	kubelet    string             // state of the unit
	containers map[string]ctr     // by component
	ladder     []hostfacts.Target // nil: nothing was probed
	behind     bool               // its store ends before what is later
	noRuntime  bool               // crictl does not answer
	dataDir    string
	alien      bool // it is the only member of another cluster
	disk       bool // only its disk was read: no host facts, no runtime, no probes
}

// ctr is a control-plane container.
type ctr struct {
	running  bool
	attempt  int
	exit     int
	since    time.Time // created
	finished time.Time
}

const bootAge = 40 * 24 * time.Hour

// newScene is a healthy cluster of one or three control-plane nodes.
func newScene(t *testing.T, base string) *scene {
	t.Helper()
	files, err := analyzetest.Base(base)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, now: analyzetest.DefaultAsOf, files: files, nodes: map[string]*sceneNode{}}
	names := []string{"cp1"}
	if base == "ha" {
		names = []string{"cp1", "cp2", "cp3"}
	}
	for i, name := range names {
		n := &sceneNode{name: name, ip: fmt.Sprintf("10.0.0.%d", 11+i), id: uint64(0xa1 + i), kubelet: "active", containers: map[string]ctr{}, dataDir: "var/lib/etcd"}
		for _, c := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			n.containers[c] = ctr{running: true, since: s.now.Add(-bootAge)}
		}
		n.ladder = s.probes(n, true)
		s.nodes[name] = n
		s.members += fmt.Sprintf("member %x name=%s peer=https://%s:2380 client=https://%s:2379\n", n.id, name, n.ip, n.ip)
	}
	return s
}

func (s *scene) names() []string { return slices.Sorted(maps.Keys(s.nodes)) }

// down is the ladder of a node whose own API server does not listen.
func (s *scene) down(n *sceneNode, endpointOpen bool) []hostfacts.Target {
	out := s.probes(n, false)
	refused := []hostfacts.Rung{{Step: "tcp", Error: "connect: connection refused", At: s.now.Add(-time.Second)}}
	out[1].Rungs = refused
	if !endpointOpen {
		out[0].Rungs = refused
	}
	return out
}

// probes are the rungs a node climbed to the cluster's endpoint and its own server.
func (s *scene) probes(n *sceneNode, ok bool) []hostfacts.Target {
	var out []hostfacts.Target
	for _, t := range []hostfacts.Target{{Name: "endpoint", URL: "https://api.k8s.example:6443"}, {Name: "local", URL: "https://" + n.ip + ":6443"}} {
		for _, step := range []string{"tcp", "tls", "livez", "readyz", "get"} {
			r := hostfacts.Rung{Step: step, OK: true, LatencyMS: 4, At: s.now.Add(-time.Second)}
			if step != "tcp" && step != "tls" {
				r.Status = 200
			}
			if !ok && step == "readyz" {
				r.OK, r.Status = false, 500
			}
			if !ok && step == "get" {
				r.OK, r.Status, r.Error = false, 504, "the server was unable to return a response in the time allotted"
			}
			t.Rungs = append(t.Rungs, r)
		}
		out = append(out, t)
	}
	return out
}

func (s *scene) root(n *sceneNode) string {
	if len(s.nodes) == 1 {
		return ""
	}
	return "nodes/" + n.name
}

// stamp writes a time the way objects hold it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// object adds one object, written as YAML, to every store.
func (s *scene) object(yaml string) {
	s.objects = append(s.objects, "object\n"+strings.TrimSpace(yaml)+"\nend\n")
}

func (s *scene) lease(ns, name, holder string, renewed time.Time) string {
	d := 15
	if ns == "kube-node-lease" {
		d = 40
	}
	return fmt.Sprintf("object\napiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {namespace: %s, name: %s}\nspec: {holderIdentity: %s_0a1b, leaseDurationSeconds: %d, acquireTime: %q, renewTime: %q}\nend\n",
		ns, name, holder, d, stamp(s.now.Add(-bootAge)), stamp(renewed))
}

// pod adds a pod. where "" leaves it Pending.
func (s *scene) pod(ns, name, where string, labels map[string]string, extra string) {
	l, _ := json.Marshal(labels)
	phase := "Running"
	if where == "" {
		phase = "Pending"
	}
	s.object(fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {namespace: %s, name: %s, uid: uid-%s, labels: %s, creationTimestamp: %q}\nspec: {nodeName: %q, containers: [{name: c, image: i}]}\nstatus:\n  phase: %s\n%s",
		ns, name, name, l, s.now.Add(-10*time.Minute).UTC().Format(time.RFC3339), where, phase, extra))
}

// node adds a Node object with its zone and Ready condition.
func (s *scene) node(name, ip, zone, ready, reason string, since time.Time, worker bool) {
	labels := map[string]string{"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
	if !worker {
		labels["node-role.kubernetes.io/control-plane"] = ""
	}
	l, _ := json.Marshal(labels)
	s.object(fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: %s, uid: uid-%s, labels: %s, creationTimestamp: %q}
status:
  addresses: [{type: InternalIP, address: %s}, {type: Hostname, address: %s}]
  nodeInfo: {kubeletVersion: v1.37.2, containerRuntimeVersion: "containerd://2.1.4", kernelVersion: 6.8.0, osImage: Linux}
  conditions: [{type: Ready, status: %q, reason: %s, lastHeartbeatTime: %q, lastTransitionTime: %q}]
`, name, name, l, s.now.Add(-60*24*time.Hour).UTC().Format(time.RFC3339), ip, name, ready, reason, since.UTC().Format(time.RFC3339), since.UTC().Format(time.RFC3339)))
}

// base adds what every healthy cluster's store holds. leaders renewed at t.
func (s *scene) base(t time.Time) {
	s.object("apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system, uid: 6c1f0c1e-0000-4000-8000-000000000001}")
	s.objects = append(s.objects, s.lease("kube-system", "kube-scheduler", "cp1", s.now.Add(-10*time.Minute)))
	s.object("apiVersion: v1\nkind: Namespace\nmetadata: {name: default, uid: 6c1f0c1e-0000-4000-8000-000000000002}")
	s.later = append(s.later, s.lease("kube-system", "kube-scheduler", "cp1", t), s.lease("kube-system", "kube-controller-manager", "cp1", t))
	s.pod("kube-system", "coredns-1", "w1", map[string]string{"k8s-app": "kube-dns"}, "")
	s.pod("kube-system", "coredns-2", "w2", map[string]string{"k8s-app": "kube-dns"}, "")
}

// readyNodes adds every control-plane node and two workers, all Ready.
func (s *scene) readyNodes() {
	for i, name := range s.names() {
		s.node(name, s.nodes[name].ip, "zone-"+string(rune('a'+i)), "True", "KubeletReady", s.now.Add(-bootAge), false)
		s.later = append(s.later, s.lease("kube-node-lease", name, name, s.now.Add(-3*time.Second)))
	}
	for i := range 2 {
		name := fmt.Sprintf("w%d", i+1)
		s.node(name, fmt.Sprintf("10.0.0.%d", 31+i), "zone-a", "True", "KubeletReady", s.now.Add(-bootAge), true)
		s.later = append(s.later, s.lease("kube-node-lease", name, name, s.now.Add(-3*time.Second)))
	}
}

// put writes a file of a node.
func (s *scene) put(n *sceneNode, p string, data []byte) {
	s.files[path.Join(s.root(n), p)] = data
}

func (s *scene) json(n *sceneNode, p string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(n, p, b)
}

// edit replaces text that must be there in a node's file.
func (s *scene) edit(n *sceneNode, p, old, new string) {
	full := path.Join(s.root(n), p)
	if !bytes.Contains(s.files[full], []byte(old)) {
		s.t.Fatalf("%s has no %q", full, old)
	}
	s.files[full] = bytes.ReplaceAll(s.files[full], []byte(old), []byte(new))
}

// lay writes the evidence of every node that is not gone.
func (s *scene) lay() {
	for _, name := range s.names() {
		n := s.nodes[name]
		if n.gone {
			maps.DeleteFunc(s.files, func(p string, _ []byte) bool { return strings.HasPrefix(p, "nodes/"+name+"/") })
			continue
		}
		s.store(n)
		if n.disk {
			continue
		}
		boot := s.now.Add(-bootAge)
		s.json(n, hostfacts.NodePath, hostfacts.Node{Hostname: name, BootTime: &boot, Kernel: "6.8.0", CPUs: 4, MemTotal: 8 << 30, MemAvailable: 4 << 30, Swaps: []hostfacts.Swap{}})
		synced := true
		s.json(n, hostfacts.ClockPath, hostfacts.Clock{Start: s.now.Add(-2 * time.Second), End: s.now, MonotonicNano: 2e9, Synchronized: &synced})
		since := boot
		s.json(n, hostfacts.UnitsPath, []hostfacts.Unit{{Name: "kubelet.service", LoadState: "loaded", ActiveState: n.kubelet, SubState: map[string]string{"active": "running", "inactive": "dead"}[n.kubelet], FileState: "enabled", StateChangedAt: &since},
			{Name: "containerd.service", LoadState: "loaded", ActiveState: map[bool]string{false: "active", true: "inactive"}[n.noRuntime], SubState: map[bool]string{false: "running", true: "dead"}[n.noRuntime], FileState: "enabled", StateChangedAt: &since}})
		procs, socks := []hostfacts.Process{{PID: 1, Comm: "systemd", StartedAt: &since}}, []hostfacts.Socket{}
		if n.kubelet == "active" {
			procs = append(procs, hostfacts.Process{PID: 900, Comm: "kubelet", StartedAt: &since})
		}
		var list []map[string]any
		for i, c := range slices.Sorted(maps.Keys(n.containers)) {
			x := n.containers[c]
			id := fmt.Sprintf("%x%063x", i+1, n.id)
			state := "CONTAINER_EXITED"
			if x.running {
				state = "CONTAINER_RUNNING"
				started := x.since
				procs = append(procs, hostfacts.Process{PID: 1000 + i, Comm: c[:min(15, len(c))], StartedAt: &started, ContainerID: id})
				for _, port := range map[string][]int{"etcd": {2379, 2380}, "kube-apiserver": {6443}}[c] {
					socks = append(socks, hostfacts.Socket{Proto: "tcp", Address: n.ip, Port: port, PID: 1000 + i, Comm: c})
				}
			}
			list = append(list, map[string]any{"id": id, "podSandboxId": "5" + id[1:], "metadata": map[string]any{"name": c, "attempt": x.attempt}, "state": state,
				"createdAt": fmt.Sprint(x.since.UnixNano()), "labels": map[string]string{"io.kubernetes.pod.namespace": "kube-system", "io.kubernetes.pod.name": c + "-" + name, "io.kubernetes.container.name": c}})
			status := map[string]any{"id": id, "metadata": map[string]any{"name": c, "attempt": x.attempt}, "state": state, "createdAt": x.since, "startedAt": x.since,
				"labels": map[string]string{"io.kubernetes.pod.namespace": "kube-system", "io.kubernetes.pod.name": c + "-" + name}}
			if !x.running {
				status["finishedAt"], status["exitCode"], status["reason"] = x.finished, x.exit, "Error"
			}
			if !n.noRuntime {
				s.json(n, "crictl/inspect/"+c+".json", map[string]any{"status": status})
			}
		}
		s.json(n, hostfacts.ProcessesPath, procs)
		s.json(n, hostfacts.SocketsPath, socks)
		if !n.noRuntime {
			s.json(n, "crictl/ps.json", map[string]any{"containers": list})
		}
		if n.ladder != nil {
			s.json(n, hostfacts.LadderPath, n.ladder)
		}
	}
}

// store writes a node's database and write-ahead log.
func (s *scene) store(n *sceneNode) {
	objects := slices.Clone(s.objects)
	if !n.behind {
		objects = slices.Concat(objects, s.later)
	}
	members, cluster := s.members, "c1"
	if n.alien {
		cluster = "c2"
		members = fmt.Sprintf("member %x name=%s peer=https://%s:2380 client=https://%[3]s:2379\n", n.id, n.name, n.ip)
		for i, o := range objects {
			objects[i] = strings.Replace(o, "6c1f0c1e-0000-4000-8000-000000000001", "7d2a1d2f-0000-4000-8000-000000000001", 1)
		}
	}
	s.put(n, n.dataDir+"/member/snap/db!etcd", []byte(members+s.meta+"meta consistent_index=20 term=4 storageVersion=3.6.0 clusterVersion=3.6.0\n"+strings.Join(objects, "")))
	s.put(n, n.dataDir+"!wal", fmt.Appendf(nil, "node %x cluster %s\n%sleader 4\nput /registry/x times=20\nstate\n", n.id, cluster, members))
}

// log writes lines of a container's log as the runtime keeps them. Each line is
// "SECONDS text": seconds before now.
func (s *scene) log(n *sceneNode, comp string, attempt int, lines ...string) {
	var b strings.Builder
	age := func(l string) time.Duration {
		ago, _, _ := strings.Cut(l, " ")
		d, _ := time.ParseDuration(ago)
		return d
	}
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(age(b), age(a)) })
	for _, l := range lines {
		ago, text, _ := strings.Cut(l, " ")
		d, err := time.ParseDuration(ago)
		if err != nil {
			s.t.Fatal(err)
		}
		at := s.now.Add(-d)
		text = strings.NewReplacer("TS", at.UTC().Format("2006-01-02T15:04:05.000000Z"), "KLOG", at.UTC().Format("0102 15:04:05.000000")).Replace(text)
		fmt.Fprintf(&b, "%s stderr F %s\n", at.UTC().Format("2006-01-02T15:04:05.000000000Z"), text)
	}
	s.put(n, fmt.Sprintf("var/log/pods/kube-system_%s-%s_0a1b/%s/%d.log", comp, n.name, comp, attempt), []byte(b.String()))
}

// A claim is what a scene's report must say of one thing.
type expect struct {
	state    string // verdict
	headline string // "RULE" or "RULE node"; "" for none
	chain    string // "C-14"
	control  string // plane; "" is not asked
	user     string
	rows     []string // "SUBJECT|NAME|STATE|text pattern"
	finds    []string // "RULE severity node pattern": must be there; a missing node is "-"
	quiet    []string // rules whose findings of medium and above are allowed
	says     string   // pattern of the verdict's summary
}

// judge runs the whole analysis and holds the report against what is expected.
func (s *scene) judge(want expect) *report.Report {
	s.t.Helper()
	s.lay()
	for _, g := range []func(map[string][]byte) error{pkitest.Make, storetest.Make, walframetest.Make} {
		if err := g(s.files); err != nil {
			s.t.Fatal(err)
		}
	}
	dir := filepath.Join(s.t.TempDir(), "in")
	for p, data := range s.files {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(full, data, 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Chtimes(full, s.now, s.now); err != nil {
			s.t.Fatal(err)
		}
	}
	set, err := bundle.Open(s.t.Context(), []string{dir}, bundle.Options{SpoolDir: s.t.TempDir()})
	if err != nil {
		s.t.Fatal(err)
	}
	defer set.Close()
	r, err := Evaluate(s.t.Context(), set, Options{Options: analyze.Options{AsOf: s.now, Defect: func(what string, stack []byte) { s.t.Errorf("defect: %s\n%s", what, stack) }}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.check(r, want)
	if s.t.Failed() {
		s.t.Log(story(r))
	}
	return r
}

func (s *scene) check(r *report.Report, want expect) {
	s.t.Helper()
	v := r.Verdict
	head := ""
	if f := r.HeadlineFinding(); f != nil {
		head = f.Rule
		if strings.Contains(want.headline, " ") {
			head += " " + f.Node
		}
	}
	if v.State != want.state || head != want.headline {
		s.t.Errorf("verdict %s, headline %q; want %s, %q", v.State, head, want.state, want.headline)
	}
	if id, _, _ := strings.Cut(v.ChainName, " "); want.chain != "" && id != want.chain {
		s.t.Errorf("chain %q, want %s", v.ChainName, want.chain)
	}
	if want.control != "" && v.Control != want.control {
		s.t.Errorf("control plane %s, want %s", v.Control, want.control)
	}
	if got := cmp.Or(want.user, v.UserPlane); got != v.UserPlane {
		s.t.Errorf("user plane %s, want %s", v.UserPlane, want.user)
	}
	if want.says != "" && !regexp.MustCompile(want.says).MatchString(v.Summary) {
		s.t.Errorf("summary %q does not match %q", v.Summary, want.says)
	}
	m, _ := report.Fact[report.Matrix](r, report.FactMatrix)
	for _, w := range want.rows {
		p := strings.SplitN(w, "|", 4)
		i := slices.IndexFunc(m.Rows, func(row report.MatrixRow) bool { return row.Subject == p[0] && row.Name == p[1] })
		switch {
		case i < 0:
			s.t.Errorf("no row %s", w)
		case m.Rows[i].State != p[2], len(p) > 3 && !regexp.MustCompile(p[3]).MatchString(m.Rows[i].Text):
			s.t.Errorf("row %s/%s is %s, %q; want %s", p[0], p[1], m.Rows[i].State, m.Rows[i].Text, w)
		case p[2] != report.NotKnown && !strings.HasPrefix(m.Rows[i].Subject, report.SubjectAll) && len(m.Rows[i].Evidence) == 0:
			s.t.Errorf("row %s has no evidence", w)
		}
	}
	wanted := map[string]bool{}
	for _, w := range want.finds {
		p := strings.SplitN(w, " ", 4)
		wanted[p[0]] = true
		if !slices.ContainsFunc(r.Findings, func(f report.Finding) bool {
			return f.Rule == p[0] && string(f.Severity) == p[1] && cmp.Or(f.Node, "-") == p[2] && (len(p) < 4 || regexp.MustCompile(p[3]).MatchString(f.Message))
		}) {
			s.t.Errorf("not found: %s", w)
		}
	}
	for _, f := range r.Findings {
		if f.Severity.AtLeast(report.Medium) && !wanted[f.Rule] && !slices.Contains(want.quiet, f.Rule) {
			s.t.Errorf("claimed: %s %s %s: %s", f.Rule, f.Severity, f.Node, f.Message)
		}
	}
}

// story is the report in short, for a failed test.
func story(r *report.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n", r.Verdict.State, r.Verdict.ChainName, r.Verdict.Summary)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "  %s %s %s %q: %s\n", f.Rule, f.Severity, f.Node, f.Subject, f.Message)
	}
	m, _ := report.Fact[report.Matrix](r, report.FactMatrix)
	for _, row := range m.Rows {
		fmt.Fprintf(&b, "  %s | %s | %s | %s\n", row.Subject, row.Name, row.State, row.Text)
	}
	return b.String()
}
