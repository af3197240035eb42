package sta

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA208", Name: "etcd-liveness-probe-too-strict", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Kubeadm:    true,
	Doc: analyze.Doc{
		Title: "etcd's liveness probe fails for reasons a restart cannot cure",
		Why: "The plain path /health answers false while any alarm is set, while there is no leader, and for a client without a user while etcd's own " +
			"authentication is on. The kubelet then kills a member that works, again and again, and each restart makes the outage worse. kubeadm asked " +
			"that path until 1.24 and leaves the alarm out since.",
		Fix: "Cure the cause first (alarm, quorum). Then probe /livez where etcd has it, or /health?exclude=NOSPACE&serializable=true as kubeadm 1.25 and " +
			"newer write it. With authentication on, the metrics port offers no identity: use a TCP probe, or an exec probe with a user.",
		Links: []string{"https://github.com/etcd-io/etcd/issues/13415", "https://github.com/kubernetes/kubernetes/pull/110744", "https://github.com/etcd-io/etcd/pull/13340"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: []analyze.Need{logs.OnNode, cri.OnNode, etcddb.OnNode},
	Run:   strictProbe,
})

func strictProbe(p *analyze.Pass) error {
	m, _ := staticpod.Manifests.In(p)
	pod := m.Component(staticpod.Etcd)
	if pod == nil {
		return p.NotApplicable("no etcd manifest on this node")
	}
	main := pod.Main()
	if main < 0 || main >= len(pod.Spec.Containers) {
		return p.NotApplicable("the etcd pod has no container")
	}
	probe := pod.Spec.Containers[main].LivenessProbe
	if probe == nil || probe.HTTPGet == nil {
		return p.NotApplicable("no HTTP liveness probe")
	}
	u, err := url.Parse(probe.HTTPGet.Path)
	if err != nil || strings.TrimSuffix(u.Path, "/") != "/health" {
		return nil // /livez, /readyz and others do not ask for alarms or users
	}
	excludes := strings.Contains(u.RawQuery, "exclude=NOSPACE")
	where := pod.Ref(fmt.Sprintf("/spec/containers/%d/livenessProbe/httpGet/path", main))
	f := analyze.Finding{Subject: "etcd liveness probe", Severity: report.Low,
		Evidence: []analyze.Evidence{analyze.See(where, "path: "+probe.HTTPGet.Path)}}

	cause, auth, ev := answersFalse(p, excludes)
	f.Evidence = append(f.Evidence, ev...)
	restarts, rev := restarting(p)
	switch {
	case cause == "" && excludes:
		return nil
	case cause == "":
		f.Message = fmt.Sprintf("the probe asks %s, which fails while an alarm is set, without a leader, or with authentication on", probe.HTTPGet.Path)
	case restarts:
		f.Severity = report.High
		f.Evidence = append(f.Evidence, rev...)
		f.Message = fmt.Sprintf("the probe asks %s, which answers false (%s), and the kubelet restarts etcd for it", probe.HTTPGet.Path, cause)
	default:
		f.Severity = report.Medium
		f.Message = fmt.Sprintf("the probe asks %s, which answers false: %s", probe.HTTPGet.Path, cause)
	}
	if auth {
		f.Fix = []report.Step{
			{Text: "Authentication is on, and the metrics port knows no user: replace the HTTP probe by tcpSocket on the client port, or by an exec probe with a user, in the manifest and in kubeadm-config or its patches."},
			{Text: "Or turn authentication off again; Kubernetes does not need it, client certificates already limit who may connect.", Command: "etcdctl auth disable"},
		}
	}
	p.Report(f)
	return nil
}

// answersFalse finds out why /health answers false, "" if nothing says it does.
func answersFalse(p *analyze.Pass, excludesSpace bool) (cause string, auth bool, ev []analyze.Evidence) {
	if n, err := logs.OnNode.Try(p, p.Node()); err == nil {
		for _, c := range []struct{ id, cause string }{{"E102", "auth: user name is empty"}, {"E101", "health check failed"}, {"E03", "an alarm is set"}, {"E04", "no leader"}} {
			if c.id == "E03" && excludesSpace {
				continue
			}
			at, ok := n.Last(signature.Etcd, c.id)
			if !ok || c.id == "E04" && !lasting(n, at) {
				continue
			}
			if cause == "" {
				cause = c.cause
			}
			auth = auth || strings.Contains(at.Excerpt(), "auth: user name is empty") || c.id == "E102"
			ev = append(ev, analyze.Context(at.Ref(), at.Excerpt()))
		}
	}
	for _, f := range p.Node().Glob("/health*.json") {
		b, err := f.Bytes(1 << 16)
		var body struct {
			Health string `json:"health"`
			Reason string `json:"reason"`
		}
		if err == nil && json.Unmarshal(b, &body) == nil && body.Health == "false" {
			cause = body.Reason
			auth = auth || strings.Contains(body.Reason, "auth:")
			ev = append(ev, analyze.Context(f.Line(1), strings.TrimSpace(string(b))))
		}
	}
	if dbs, err := etcddb.OnNode.Try(p, p.Node()); err == nil {
		if db := dbs.Live(); db != nil {
			if db.Store.Auth.Enabled {
				cause, auth = "etcd's authentication is on", true
				ev = append(ev, analyze.Context(db.Ref(), "auth is enabled"))
			}
			for _, a := range db.Store.Alarms {
				if a.Type == "NOSPACE" && excludesSpace {
					continue
				}
				if cause == "" {
					cause = "alarm " + a.Type + " is set"
				}
				ev = append(ev, analyze.Context(db.Ref(), "alarm "+a.Type))
			}
		}
	}
	if auth {
		cause = "auth: user name is empty"
	}
	return cause, auth, ev
}

// lasting reports whether "no leader" stands for more than an election.
func lasting(n *logs.Node, last logs.At) bool {
	for _, e := range last.Stat.Episodes {
		if e.To.Sub(e.From) > 30*time.Second {
			return true
		}
	}
	return false
}

// restarting reports whether etcd's container was restarted lately.
func restarting(p *analyze.Pass) (bool, []analyze.Evidence) {
	v, err := cri.OnNode.Try(p, p.Node())
	if err != nil {
		return false, nil
	}
	c := v.Newest(staticpod.Etcd)
	if c == nil || c.Attempt < 1 {
		return false, nil
	}
	now, ok := p.AsOf(p.Node())
	if ok && !c.Began().IsZero() && now.Sub(c.Began()) > time.Hour {
		return false, nil
	}
	return true, []analyze.Evidence{analyze.Context(c.Where(), state(c))}
}
