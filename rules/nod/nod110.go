package nod

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "NOD110", Name: "port-taken", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High},
	Doc: analyze.Doc{
		Title: "A control-plane port is held by another process",
		Why:   "The component that owns the port cannot start. A leftover process of an earlier attempt, a second etcd started by hand, or a proxy on the same port are the usual holders.",
		Fix:   "Find the holder (ss -ltnp), stop it, and see that it does not come back; the kubelet then starts the component by itself.",
		Links: []string{"https://kubernetes.io/docs/reference/networking/ports-and-protocols/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{host.Sockets, logs.OnNode, staticpod.Manifests},
	Run:   portTaken,
})

// owners are the ports of a kubeadm control plane and who listens there:
// cmd/kubeadm/app/constants.
var owners = []struct {
	port int
	comm string
}{{6443, "kube-apiserver"}, {2379, "etcd"}, {2380, "etcd"}, {2381, "etcd"}, {10250, "kubelet"}, {10257, "kube-controller-manager"}, {10259, "kube-scheduler"}}

func portTaken(p *analyze.Pass) error {
	looked := false
	if l, err := host.Sockets.Try(p, p.Node()); err == nil && controlPlane(p) {
		looked = true
		for i, s := range l.Items {
			k := slices.IndexFunc(owners, func(o struct {
				port int
				comm string
			}) bool {
				return o.port == s.Port
			})
			if k < 0 || s.Comm == "" || !strings.HasPrefix(s.Proto, "tcp") {
				continue
			}
			own := owners[k].comm
			// Names of processes are cut to 15 bytes.
			if strings.HasPrefix(own, s.Comm[:min(len(s.Comm), 15)]) || holdsAlso(l, s.Port, own) || moved(p, own) {
				continue
			}
			p.Report(analyze.Finding{Subject: fmt.Sprintf("port %d", s.Port), Severity: report.High,
				Message:  fmt.Sprintf("port %d of %s is held by %s (pid %d)", s.Port, own, s.Comm, s.PID),
				Evidence: []analyze.Evidence{analyze.See(l.Refs[i], fmt.Sprintf("%s:%d %s", s.Address, s.Port, s.Comm))}})
		}
	}
	if n, err := logs.OnNode.Try(p, p.Node()); err == nil {
		looked = true
		for _, s := range n.Of(signature.Etcd | signature.APIServer | signature.ControllerManager | signature.Scheduler | signature.Kubelet) {
			if d, ok := s.Death(); ok && d.Class == logs.ClassPort {
				p.Report(analyze.Finding{Subject: "port of " + s.Component, Severity: report.High, Confidence: report.Probable,
					Message:  fmt.Sprintf("%s ended because a port is taken%s", s.Component, when(d.Line.Time)),
					Evidence: []analyze.Evidence{analyze.See(s.Ref(d.Line.Number, d.Line.Offset), d.Line.Excerpt)}, ObservedAt: d.Line.Time})
			}
		}
	}
	if !looked {
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "listening sockets and the components' logs")
	}
	return nil
}

// holdsAlso reports whether the owner listens on the port too, on another
// address of the host.
func holdsAlso(l *host.List[socket], port int, own string) bool {
	return slices.ContainsFunc(l.Items, func(s socket) bool {
		return s.Port == port && s.Comm != "" && strings.HasPrefix(own, s.Comm[:min(len(s.Comm), 15)])
	})
}

// moved reports whether the owner does not run on this node or was given other
// ports by a flag.
func moved(p *analyze.Pass, own string) bool {
	if own == "kubelet" {
		return false
	}
	m, err := staticpod.Manifests.Try(p, p.Node())
	if err != nil {
		return true
	}
	pod := m.Component(own)
	if pod == nil {
		return true
	}
	f, ok := pod.Setting("secure-port")
	return ok && f.Value != "6443" && f.Value != "10257" && f.Value != "10259"
}
