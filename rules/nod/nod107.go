package nod

import (
	"fmt"
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
	ID: "NOD107", Name: "container-runtime-down", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "The container runtime is down, or cannot start control-plane containers",
		Why: "Running containers survive a runtime that is down, but nothing new starts and the kubelet sees nothing. A control-plane image that is neither " +
			"on the node nor to be had from a registry keeps its pod down after the next restart.",
		Fix:   "systemctl status containerd and its journal; restart it (running containers go on). For a missing image, import it from another node: ctr -n k8s.io images export and import.",
		Links: []string{"https://kubernetes.io/docs/setup/production-environment/container-runtimes/"},
		Since: "v0.1",
	},
	Params: []analyze.Param{{Name: "recent", Default: 15, Unit: "minutes before the end of the logs"}},
	Wants:  []analyze.Need{host.Units, logs.OnNode, cri.OnNode, staticpod.Manifests},
	Run:    runtimeDown,
})

func runtimeDown(p *analyze.Pass) error {
	looked := false
	if l, err := host.Units.Try(p, p.Node()); err == nil {
		for i, u := range l.Items {
			if name := strings.TrimSuffix(u.Name, ".service"); (name == "containerd" || name == "crio") && u.ActiveState != "" {
				looked = true
				if u.ActiveState != "active" && u.LoadState != "not-found" {
					p.Report(analyze.Finding{Subject: name, Severity: report.Critical, Message: fmt.Sprintf("%s is %s", name, strings.TrimSpace(u.ActiveState+" "+u.Result)),
						Evidence: []analyze.Evidence{analyze.See(l.Refs[i], u.Name+" "+u.ActiveState)}})
				}
			}
		}
	}
	n, lerr := logs.OnNode.Try(p, p.Node())
	if lerr == nil && (n.Has(signature.Kubelet) || n.Has(signature.Containerd)) {
		looked = true
		runtimeWords(p, n)
	}
	v, err := cri.OnNode.Try(p, p.Node())
	if err == nil && v.Images != nil {
		looked = true
		images(p, v, n)
	} else if lerr == nil {
		pulls(p, v, n)
	}
	if err == nil {
		if c, ok := v.Conditions["RuntimeReady"]; ok && !c.Status {
			p.Report(analyze.Finding{Subject: "runtime", Severity: report.Critical, Message: "the runtime says it is not ready: " + c.Reason + " " + c.Message,
				Evidence: []analyze.Evidence{analyze.See(c.Ref, c.Reason)}})
		}
	}
	if !looked {
		p.Unknown(bundle.KindHost, p.Node(), bundle.NotCollected, "state of the runtime, its journal or the kubelet's")
	}
	return nil
}

// runtimeWords judges what kubelet and runtime said last.
func runtimeWords(p *analyze.Pass, n *logs.Node) {
	end, _ := n.End()
	fresh := func(at logs.At) bool {
		return at.Time.IsZero() || end.Sub(at.Time) <= time.Duration(p.Param("recent"))*time.Minute
	}
	if at, ok := n.Last(signature.Kubelet|signature.Kubeadm, "K20"); ok && fresh(at) && !worksSince(n, at) {
		p.Report(analyze.Finding{Subject: "runtime", Severity: report.Critical, Confidence: report.Probable, Message: "the kubelet cannot talk to the runtime" + when(at.Time),
			Evidence: []analyze.Evidence{at.See()}, ObservedAt: at.Time})
		return
	}
	if at, ok := n.Last(signature.Kubelet, "K22", "K50"); ok && fresh(at) {
		p.Report(analyze.Finding{Subject: "runtime", Severity: report.High, Confidence: report.Probable, Message: "the runtime answers too slowly to list its containers" + when(at.Time),
			Evidence: []analyze.Evidence{at.See()}, ObservedAt: at.Time})
		return
	}
	if hits := n.Hits(0, "D11"); len(hits) >= 2 && fresh(hits[len(hits)-1]) {
		at := hits[len(hits)-1]
		p.Report(analyze.Finding{Subject: "sandbox image", Severity: report.High, Confidence: report.Probable, ObservedAt: hits[0].Time,
			Message:  fmt.Sprintf("no pod can start: the sandbox image %s is not on the node and cannot be pulled, %d times, last%s", at.Value("image"), len(hits), when(at.Time)),
			Evidence: []analyze.Evidence{at.See()},
			Fix: []report.Step{
				{Text: "See whether the node reaches the registry the error names (DNS, proxy of the runtime's unit, firewall).", Command: "crictl pull " + at.Value("image")},
				{Text: "Without a way there: set sandbox_image in /etc/containerd/config.toml to an image the node can pull or has, then restart containerd. Running containers go on meanwhile.", Command: "systemctl restart containerd"},
			}})
		return
	}
	// Failures to start count only for the control plane's own pods: others
	// wait for CNI or a registry without harm to it.
	var hits []logs.At
	for _, at := range n.Hits(signature.Containerd, "D02", "D03", "D05", "D10") {
		if text := at.Excerpt(); fresh(at) && aboutControlPlane(text) && !strings.Contains(text, "cni") {
			hits = append(hits, at)
		}
	}
	if len(hits) >= 3 {
		p.Report(analyze.Finding{Subject: "control-plane containers", Severity: report.High, Confidence: report.Probable,
			Message:  fmt.Sprintf("the runtime fails to start control-plane containers, %d times, last%s", len(hits), when(hits[len(hits)-1].Time)),
			Evidence: seeAll(hits, 3), ObservedAt: hits[0].Time})
	}
}

// worksSince reports whether the kubelet took up its work after a complaint
// about the runtime: the two only started in the wrong order.
func worksSince(n *logs.Node, at logs.At) bool {
	w, ok := n.Last(signature.Kubelet, "K46", "K47")
	return ok && w.Time.After(at.Time)
}

// pulls reports images of manifests that the kubelet says it cannot pull, when
// nothing lists the images of the node.
func pulls(p *analyze.Pass, v *cri.View, n *logs.Node) {
	m, err := staticpod.Manifests.Try(p, p.Node())
	if err != nil {
		return
	}
	hits := n.Hits(signature.Kubelet|signature.Containerd|signature.Events, "X25")
	for _, name := range staticpod.Components() {
		pod := m.Component(name)
		if pod == nil || pod.Main() < 0 || v != nil && v.Running(name) != nil {
			continue
		}
		img := pod.Spec.Containers[pod.Main()].Image
		for i := len(hits) - 1; i >= 0 && img != ""; i-- {
			at := hits[i]
			if !strings.Contains(at.Excerpt(), img) && !strings.Contains(at.Value("err"), img) {
				continue
			}
			if end, _ := n.End(); !at.Time.IsZero() && end.Sub(at.Time) > time.Duration(p.Param("recent"))*time.Minute {
				break
			}
			p.Report(analyze.Finding{Subject: "image of " + name, Severity: report.High, Confidence: report.Probable, ObservedAt: at.Time,
				Message:  "the image of " + name + " cannot be pulled: " + img,
				Evidence: []analyze.Evidence{analyze.See(pod.ImageRef(), "image: "+img), analyze.Context(at.Ref(), at.Excerpt())}})
			break
		}
	}
}

func aboutControlPlane(text string) bool {
	for _, name := range staticpod.Components() {
		if strings.Contains(text, name) {
			return true
		}
	}
	return false
}

// images finds images of manifests that are not on the node.
func images(p *analyze.Pass, v *cri.View, n *logs.Node) {
	m, err := staticpod.Manifests.Try(p, p.Node())
	if err != nil {
		return
	}
	for _, name := range staticpod.Components() {
		pod := m.Component(name)
		if pod == nil || pod.Main() < 0 {
			continue
		}
		img := pod.Spec.Containers[pod.Main()].Image
		if has, known := v.HasImage(img); has || !known || img == "" || v.Running(name) != nil && v.Running(name).Image == img {
			continue
		}
		sev, said := report.Medium, "the image of "+name+" is not on the node: "+img
		ev := []analyze.Evidence{analyze.See(pod.ImageRef(), "image: "+img)}
		if n != nil {
			for _, at := range n.Hits(signature.Kubelet|signature.Containerd|signature.Events, "X25", "D09") {
				if strings.Contains(at.Excerpt(), name) {
					sev, said = report.High, said+", and it cannot be pulled"
					ev = append(ev, analyze.Context(at.Ref(), at.Excerpt()))
					break
				}
			}
		}
		p.Report(analyze.Finding{Subject: "image of " + name, Severity: sev, Message: said, Evidence: ev})
	}
}
