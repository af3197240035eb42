package nod

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/host"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD106", Name: "kubelet-down", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High},
	Doc: analyze.Doc{
		Title: "The kubelet is down or restarts again and again",
		Why: "Without the kubelet nothing on the node is started, restarted or reported: containers that run go on, those that end stay down, edits of " +
			"manifests have no effect, and the Node turns NotReady although its processes live.",
		Fix:   "Cure the cause the message names, then systemctl restart kubelet. Do not remove the node or its etcd member because the Node is NotReady: its processes may run.",
		Links: []string{"https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/troubleshooting-kubeadm/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "restarts", Default: 3, Unit: "restarts"}, {Name: "recent", Default: 15, Unit: "minutes before collection"}},
	Wants:  []analyze.Need{host.Units, logs.OnNode, cri.OnNode},
	Run:    kubeletDown,
})

// fatalKubelet are texts with which the kubelet ends, and what they mean.
var fatalKubelet = []struct{ id, what string }{
	{"S06", "a flag is not accepted"}, {"K32", "a flag is not accepted"}, {"K16", "swap is on"}, {"K17", "the host uses cgroup v1"},
	{"K18", "its configuration file cannot be read"}, {"K19", "its configuration is not valid"}, {"K12", "its client certificate expired"},
	{"K15", "its bootstrap certificate expired"}, {"K34", "its kubeconfig is not usable and there is no bootstrap kubeconfig"},
	{"A14", "a feature gate is unknown"}, {"A15", "a feature gate cannot be set"}, {"K20", "the runtime does not answer"}, {"K58", "it could not run"}, {"X21", "it ended with an error"},
}

func kubeletDown(p *analyze.Pass) error {
	var ev []analyze.Evidence
	looked, down, what := false, false, ""
	if l, err := host.Units.Try(p, p.Node()); err == nil {
		for i, u := range l.Items {
			if u.Name != "kubelet.service" || u.ActiveState == "" {
				continue
			}
			looked = true
			if u.ActiveState == "active" && u.Restarts < int(p.Param("restarts")) {
				return nil
			}
			if u.ActiveState == "active" { // restarted often, running now: only words of a crash count
				continue
			}
			down, what = true, u.ActiveState
			if u.Result == "success" && u.ActiveState == "inactive" {
				what = "stopped"
			}
			ev = append(ev, analyze.See(l.Refs[i], strings.TrimSpace(fmt.Sprintf("kubelet.service %s %s %s", u.ActiveState, u.SubState, u.Result))))
		}
	}
	n, err := logs.OnNode.Try(p, p.Node())
	if err == nil && n.Has(signature.Kubelet) {
		looked = true
		if at, cause, ok := lastWords(p, n); ok {
			if !down {
				down, what = true, "ending"
			}
			what += ": " + cause
			ev = append(ev, analyze.Context(at.Ref(), at.Excerpt()))
			if u, ok := n.Last(signature.Systemd, "X12", "X13"); ok && strings.HasPrefix(u.Value("unit"), "kubelet") {
				ev = append(ev, analyze.Context(u.Ref(), u.Excerpt()))
			}
		}
	}
	if !looked {
		p.Unknown(bundle.KindJournal, p.Node(), bundle.NotCollected, "neither the state of kubelet.service nor its journal")
		return nil
	}
	if !down {
		return nil
	}
	ev[0].Role = report.RoleSubject
	sev := report.High
	if dead := deadPods(p); dead != "" {
		sev = report.Critical
		what += "; " + dead + " is down and nothing will start it"
	}
	p.Report(analyze.Finding{Subject: "kubelet", Severity: sev, Message: "the kubelet is " + what, Evidence: ev})
	return nil
}

// lastWords returns the newest text with which the kubelet ended, if it ended:
// nothing that a running kubelet says comes after it.
func lastWords(p *analyze.Pass, n *logs.Node) (logs.At, string, bool) {
	var ids []string
	for _, f := range fatalKubelet {
		ids = append(ids, f.id)
	}
	hits := n.Hits(signature.Kubelet, ids...)
	if len(hits) == 0 {
		return logs.At{}, "", false
	}
	last := hits[len(hits)-1]
	// The kubelet logs much while it runs: minutes of it after the last fatal
	// line, or a start that stays, mean that it came up again.
	s := last.Stream
	end := s.Result.Last
	if s.Program == 0 {
		if at, ok := n.Last(signature.Kubelet, "K37", "K46", "K47", "K51", "K28"); ok {
			end = at.Time
		} else {
			end = last.Time
		}
	}
	if end.Sub(last.Time) > time.Duration(p.Param("recent"))*time.Minute {
		return logs.At{}, "", false
	}
	if s.Program == signature.Kubelet && s.Result.LastTimed-last.Line > 40 {
		return logs.At{}, "", false
	}
	// The particular text of the same end explains more than the general one.
	for _, f := range fatalKubelet {
		for _, h := range slices.Backward(hits) {
			if h.Stat.Sig.ID == f.id && last.Time.Sub(h.Time).Abs() < 10*time.Second {
				cause := f.what
				if v := h.Value("flag"); v != "" {
					cause += " (" + v + ")"
				}
				return h, cause, true
			}
		}
	}
	return last, "it ended", true
}

// deadPods names a control-plane component that is known not to run.
func deadPods(p *analyze.Pass) string {
	v, err := cri.OnNode.Try(p, p.Node())
	if err != nil || !v.Listed {
		return ""
	}
	for _, name := range staticpod.Components() {
		if v.Newest(name) != nil && v.Running(name) == nil {
			return name
		}
	}
	return ""
}
