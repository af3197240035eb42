package correlate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"coldplane/report"
)

// finding reads "RULE severity node subject | message | evidence | +minutes".
func finding(t *testing.T, s string) report.Finding {
	t.Helper()
	parts := strings.Split(s, "|")
	f := strings.Fields(parts[0])
	if len(f) < 4 {
		t.Fatalf("finding %q", s)
	}
	x := report.Finding{Rule: f[0], Severity: report.Severity(f[1]), Confidence: report.Certain, Node: f[2], Subject: strings.Join(f[3:], " "), Explains: []string{}, ExplainedBy: []string{}}
	if c, ok := strings.CutSuffix(f[1], "?"); ok {
		x.Severity, x.Confidence = report.Severity(c), report.Possible
	}
	if x.Node == "-" {
		x.Node = ""
	}
	if x.Severity.Rank() < 0 {
		t.Fatalf("severity in %q", s)
	}
	x.Message = x.Rule + " fired"
	if len(parts) > 1 {
		x.Message = strings.TrimSpace(parts[1])
	}
	if len(parts) > 2 {
		x.Evidence = []report.Evidence{{Path: "log", Excerpt: strings.TrimSpace(parts[2])}}
	}
	if len(parts) > 3 {
		var m int
		if _, err := fmt.Sscanf(strings.TrimSpace(parts[3]), "%d", &m); err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 5, 12, 9, m, 0, 0, time.UTC)
		x.ObservedAt = &at
	}
	x.ID = report.FindingID(x.Rule, x.Node, x.Subject)
	x.Fix = []report.Step{{Text: "Do " + x.Rule + "."}}
	return x
}

var testTraits = map[string]Traits{
	"HAV103": {Symptom: true}, "HAV201": {Symptom: true}, "HAV301": {Symptom: true}, "ADM202": {Symptom: true}, "STA302": {Symptom: true},
	"PKI102": {Latent: true}, "PKI103": {Latent: true}, "RST106": {Latent: true}, "QRM104": {Latent: true},
}

func judge(t *testing.T, lines ...string) *report.Report {
	t.Helper()
	r := &report.Report{Facts: map[string]any{}}
	for _, l := range lines {
		r.Findings = append(r.Findings, finding(t, l))
	}
	Judge(r, testTraits)
	r.Sort()
	return r
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name     string
		findings []string
		state    string
		head     string // rule, "" for none
		chain    string // id of the named chain
		explains int
	}{
		{"expired peer certificate takes quorum", []string{
			"PKI101 critical cp1 etcd/peer | the etcd peer certificate expired", "QRM108 critical - cp1 | TLS rejected | x509: certificate has expired",
			"QRM101 critical - quorum | quorum lost", "HAV103 critical - endpoint | GET fails", "PKI102 high cp2 apiserver | expires in 9 days",
		}, report.StateCause, "PKI101", "C-01", 3},
		{"bloat to NOSPACE", []string{
			"CAP101 critical - alarm | NOSPACE is raised", "CAP109 medium - helm | releases fill the database", "CAP102 critical - db | at 99% of the quota",
			"CAP104 high - history | not compacted", "HAV201 critical - store | frozen", "HAV301 high - scheduler | not leading",
		}, report.StateCause, "CAP101", "C-03", 4},
		{"one wrong line", []string{
			"STA201 critical cp1 kube-apiserver --etcd-servers | peer port", "STA302 critical cp1 kube-apiserver | dead | frame header looked like an HTTP/1.1 header", "HAV301 high - scheduler | not leading",
		}, report.StateCause, "STA201", "C-04", 2},
		{"a wrong line on another node does not explain this one", []string{
			"STA201 high cp2 kube-apiserver --etcd-servers | one endpoint is a peer port", "STA302 critical cp1 kube-apiserver | dead: exit 2 | panic",
		}, report.StateCause, "STA201", "C-04", 0},
		{"slow disk", []string{
			"QRM106 high cp1 disk | fdatasync took 2.3s", "QRM105 high - leader | 5 changes | slow fdatasync took", "STA302 medium cp1 kube-scheduler | restarts | lost lease",
		}, report.StateCause, "QRM106", "C-05", 2},
		{"full disk, not the quota", []string{
			"NOD101 critical cp1 / | 100% full | | 0", "STA302 critical cp1 etcd | dead | no space left on device | 5", "QRM101 high - quorum | tolerance 0 | | 6",
		}, report.StateCause, "NOD101", "C-06", 2},
		{"disk filled long after etcd died", []string{
			"NOD101 critical cp1 / | 100% full | | 50", "STA302 critical cp1 etcd | dead | panic | 5",
		}, report.StateCause, "NOD101", "C-06", 0},
		{"half-done restore", []string{
			"RST101 high cp1 member | default identity 8e9e05c52164694d", "QRM112 critical - cluster | cluster id cdf818194e3a8c32 and another", "DIR102 critical cp1 etcd data directory | /var/lib/etcd-restored, not /var/lib/etcd",
		}, report.StateCause, "RST101", "C-08", 2},
		{"stray manifest", []string{
			"STA101 critical cp1 kube-apiserver | two files", "STA301 high cp1 kube-apiserver | the container runs the old arguments",
		}, report.StateCause, "STA101", "C-20", 1},
		{"kubelet down, processes alive", []string{
			"NOD106 high cp2 kubelet | stopped", "HAV202 medium cp2 Node cp2 | NotReady, etcd runs", "STA301 high cp2 kube-apiserver | old arguments",
		}, report.StateCause, "NOD106", "C-19", 2},
		{"machines gone", []string{
			"QRM101 critical - quorum | 1 of 3 alive", "HAV103 critical - endpoint | TCP open, GET fails", "HAV201 critical - store | frozen",
		}, report.StateCause, "QRM101", "C-14", 2},
		{"the clock, not the certificate", []string{
			"NOD103 critical cp1 clock | 400 days ahead", "PKI101 critical cp1 apiserver | expired | current time 2027 is after", "QRM108 high - cp1 | TLS | current time",
		}, report.StateCause, "NOD103", "C-13", 2},
		{"webhook deadlock", []string{
			"ADM101 critical - webhook kyverno | no backend", "HAV401 medium - coredns | not running", "HAV301 high - scheduler | pending | webhook kyverno",
		}, report.StateCause, "ADM101", "C-10", 2},
		{"encryption key gone", []string{
			"ADM301 critical cp1 aescbc key1 | no such key", "ADM202 medium - namespace x | stuck",
		}, report.StateCause, "ADM301", "C-17", 1},
		{"damaged write-ahead log", []string{
			"DIR105 critical cp1 member/wal | crc mismatch", "STA302 critical cp1 etcd | dead | walpb: crc mismatch", "STA302 critical cp1 kube-apiserver | dead | dial 127.0.0.1:2379",
		}, report.StateCause, "DIR105", "C-23", 2},
		{"two causes for one symptom", []string{
			"CAP101 critical - alarm | NOSPACE", "QRM101 critical - quorum | lost", "HAV201 critical - store | frozen", "HAV301 critical - scheduler | not leading",
		}, report.StateCandidates, "", "", 0},
		{"only a symptom", []string{"HAV201 critical - store | frozen"}, report.StateUndetermined, "HAV201", "", 0},
		{"latent findings do not head an incident", []string{
			"PKI102 high cp1 apiserver | expires in 9 days", "STA201 high cp1 kube-apiserver | wrong port",
		}, report.StateCause, "STA201", "C-04", 0},
		{"only hygiene", []string{"RST106 medium - backup | none found", "STA104 low cp1 file | mode"}, report.StateCause, "RST106", "", 0},
		{"a misspelt flag, not the probe it starves", []string{
			"STA203 critical cp1 etcd --lisen-metrics-urls | unknown flag", "STA207 high cp1 etcd livenessProbe | nobody listens on 2381", "STA302 critical cp1 etcd | dead | flag provided but not defined",
		}, report.StateCause, "STA203", "C-04", 2},
		{"a node initialised alone has other CAs and another key", []string{
			"PKI203 critical cp2 ca.crt | another CA", "PKI204 critical cp2 service-account key | another key", "STA205 high - kube-apiserver content of --client-ca-file | differs",
		}, report.StateCause, "PKI203", "C-15", 2},
		{"another service network, not the name the certificate lacks for it", []string{
			"STA205 high cp2 kube-apiserver --service-cluster-ip-range | differs", "PKI205 high cp2 apiserver.crt | does not hold 10.97.0.1, used by pods (Service kubernetes)",
		}, report.StateCause, "STA205", "", 1},
		{"drift does not outrank a dead component", []string{
			"STA206 medium cp1 etcd manifest | edited", "STA302 high cp1 kube-controller-manager | dead | leaderelection lost",
		}, report.StateUndetermined, "STA302", "", 0},
		{"nothing", []string{"STA104 low cp1 file | mode"}, report.StateHealthy, "", "", 0},
		{"one hint is capped", []string{
			"QRM108 critical? - cp1 | TLS | bad certificate", "DIR102 high cp1 etcd data directory | two directories",
		}, report.StateCause, "DIR102", "C-07", 0},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			r := judge(t, c.findings...)
			head := ""
			if f := r.HeadlineFinding(); f != nil {
				head = f.Rule
			}
			if r.Verdict.State != c.state || head != c.head {
				t.Fatalf("state %s, head %s, want %s, %s\n%s", r.Verdict.State, head, c.state, c.head, r.Verdict.Summary)
			}
			if id, _, _ := strings.Cut(r.Verdict.ChainName, " "); id != c.chain {
				t.Errorf("chain %q, want %s", r.Verdict.ChainName, c.chain)
			}
			if n := max(len(r.Verdict.Chain)-1, 0); n != c.explains {
				t.Errorf("explains %d, want %d: %v", n, c.explains, r.Verdict.Chain)
			}
			if r.Verdict.Summary == "" {
				t.Error("no summary")
			}
		})
	}
}

// The data must be usable: edges and chains name rules in the id form, edges
// do not run against the layers, and every chain can be reached.
func TestData(t *testing.T) {
	for _, e := range compile(edges) {
		if len(e.cause) == 0 || len(e.effect) == 0 || e.weight < 0.3 || e.weight > 1 {
			t.Errorf("edge %v → %v: empty or weight %v outside 0.3 to 1", e.cause, e.effect, e.weight)
		}
		for _, s := range append(append([]selector{}, e.cause...), e.effect...) {
			if len(s.rule) != 6 {
				t.Errorf("selector %q", s.rule)
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range chains {
		if seen[c.id] || c.name == "" || c.decides == "" || len(parse(c.roots)) == 0 {
			t.Errorf("chain %s is incomplete or double", c.id)
		}
		seen[c.id] = true
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	a := judge(t, "CAP101 critical - alarm", "CAP102 critical - db", "CAP106 high - events", "HAV201 critical - store")
	b := judge(t, "HAV201 critical - store", "CAP106 high - events", "CAP102 critical - db", "CAP101 critical - alarm")
	if *a.Verdict.Headline != *b.Verdict.Headline || fmt.Sprint(a.Verdict.Chain) != fmt.Sprint(b.Verdict.Chain) {
		t.Errorf("%v\n%v", a.Verdict, b.Verdict)
	}
}

// TestSameCauseIsNamedOnce holds that the verdict does not repeat a rule and
// node for every file it was found in.
func TestSameCauseIsNamedOnce(t *testing.T) {
	r := judge(t, "CAP101 critical cp1 alarm | NOSPACE", "QRM101 critical cp1 quorum | lost")
	g := &graph{}
	var cs []candidate
	for _, f := range []*report.Finding{{Rule: "STA101", Node: "cp1"}, {Rule: "STA102", Node: "cp1"}, {Rule: "STA101", Node: "cp1"}, {Rule: "STA101", Node: "cp2"}} {
		cs = append(cs, candidate{f: f})
	}
	candidatesVerdict(r, g, cs)
	if want := "4 causes explain the same symptoms: STA101 cp1 (2 times); STA102 cp1; STA101 cp2. What decides: "; !strings.HasPrefix(r.Verdict.Summary, want) {
		t.Errorf("%q, want %q...", r.Verdict.Summary, want)
	}
}
