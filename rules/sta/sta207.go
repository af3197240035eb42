package sta

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"

	"coldplane/analyze"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/etcdlisten"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA207", Name: "probe-does-not-match-listener", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Low},
	Doc: analyze.Doc{
		Title: "A probe of a control-plane pod asks where the process does not listen",
		Why: "A liveness or startup probe that can never succeed makes the kubelet kill a healthy etcd or API server again and again, some minutes after " +
			"every start; a readiness probe keeps the pod unready.",
		Fix: "Make the probe's host, port and scheme those of the listener. With kubeadm change the listen flag through extraArgs and let kubeadm write the " +
			"manifest, which derives the probes from the flags.",
		Links: []string{"https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/"},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Run:   probes,
})

// A listener is one address a component serves its health checks on.
type listener struct {
	endpoint.URL
	flag   staticpod.Flag
	mutual bool // asks for a client certificate, which the kubelet has not
}

func probes(p *analyze.Pass) error {
	d, _ := staticpod.Manifests.In(p)
	asked := false
	for _, name := range staticpod.Components() {
		pod := d.Component(name)
		if pod == nil {
			if e := d.Broken(name); e != nil {
				p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
				asked = true
			}
			continue
		}
		ls, known := listeners(p.Node(), pod, name)
		asked = true
		if !known {
			p.Unknown(bundle.KindManifests, p.Node(), bundle.Undecided, name+" takes its addresses from a variable or a configuration file")
			continue
		}
		c := pod.Spec.Containers[pod.Main()]
		for _, pr := range []struct {
			field string
			probe *corev1.Probe
		}{{"livenessProbe", c.LivenessProbe}, {"startupProbe", c.StartupProbe}, {"readinessProbe", c.ReadinessProbe}} {
			if pr.probe != nil && pr.probe.HTTPGet != nil {
				judgeProbe(p, pod, name, pr.field, pr.probe.HTTPGet, ls)
			}
		}
	}
	if !asked {
		return p.NotApplicable("no control-plane component on this node")
	}
	return nil
}

// Ports a component serves on unless told otherwise, and the last minor
// version with an insecure port: cmd/*/app/options of those versions.
var ports = map[string]struct {
	secure, insecure   string
	insecureFlag, addr string
	gone               string
}{
	staticpod.APIServer:         {"6443", "8080", "insecure-port", "insecure-bind-address", "1.20.0"},
	staticpod.ControllerManager: {"10257", "10252", "port", "address", "1.22.0"},
	staticpod.Scheduler:         {"10259", "10251", "port", "address", "1.23.0"},
}

// listeners says where a component answers health checks. known is false when
// the manifest does not tell all of it.
func listeners(n *bundle.Node, pod *staticpod.Pod, name string) (out []listener, known bool) {
	if name == staticpod.Etcd {
		m := etcdlisten.OfPod(n, pod)
		metrics, _ := pod.Setting("listen-metrics-urls")
		auth, _ := pod.Setting("client-cert-auth")
		ca, hasCA := pod.Setting("trusted-ca-file")
		for _, u := range m.Metrics {
			out = append(out, listener{URL: u, flag: metrics})
		}
		for _, u := range m.Client {
			out = append(out, listener{URL: u, flag: m.ClientFlag, mutual: u.Scheme == "https" && (auth.True() || hasCA && ca.Value != "")})
		}
		return out, !m.Open
	}
	d := ports[name]
	value := func(flag, def string) (string, staticpod.Flag) {
		f, ok := pod.Flag(flag)
		if f.Dynamic {
			known = false
		}
		if !ok {
			return def, f
		}
		return f.Value, f
	}
	known = true
	port, pf := value("secure-port", d.secure)
	bind, bf := value("bind-address", "0.0.0.0")
	if pf.Ref.IsZero() {
		pf = bf
	}
	if port != "0" {
		out = append(out, listener{URL: endpoint.URL{Scheme: "https", Host: endpoint.Host(bind), Port: port}, flag: pf})
	}
	last := version.MustParseGeneric(d.gone)
	if v, err := version.ParseGeneric(pod.ImageTag()); err != nil || !v.AtLeast(last) {
		port, pf := value(d.insecureFlag, d.insecure)
		addr, _ := value(d.addr, "127.0.0.1")
		if port != "0" {
			out = append(out, listener{URL: endpoint.URL{Scheme: "http", Host: endpoint.Host(addr), Port: port}, flag: pf})
		}
	}
	if _, ok := pod.Flag("config"); ok && name == staticpod.Scheduler && pf.Ref.IsZero() {
		known = false // old configuration files could set the health address
	}
	return out, known
}

func judgeProbe(p *analyze.Pass, pod *staticpod.Pod, name, field string, get *corev1.HTTPGetAction, ls []listener) {
	base := fmt.Sprintf("/spec/containers/%d/%s/httpGet", pod.Main(), field)
	port, declared, ok := probePort(pod, get.Port)
	if !ok {
		report207(p, pod, name, field, report.High, analyze.See(pod.Ref(base+"/port"), "port: "+get.Port.String()), nil,
			fmt.Sprintf("%s asks the port %s, which the container does not declare", field, get.Port.String()), "Declare the port under ports, or name its number.")
		return
	}
	u := endpoint.URL{Scheme: strings.ToLower(string(get.Scheme)), Host: endpoint.Host(get.Host), Port: port}
	if u.Scheme == "" {
		u.Scheme = "http"
	}
	host := u.Host
	if host == "" {
		host = "the pod's address"
	}
	var near *listener
	for i, l := range ls {
		if l.Unix() || l.Port != u.Port {
			continue
		}
		switch {
		case l.Scheme != u.Scheme, l.mutual, !probeReaches(l, u.Host):
			near = &ls[i]
		default:
			if declared != "" && declared != port {
				report207(p, pod, name, field, report.Low, analyze.See(pod.Ref(fmt.Sprintf("/spec/containers/%d/ports", pod.Main())), "containerPort: "+declared), nil,
					fmt.Sprintf("the container declares port %s for its probes, and they rightly ask %s", declared, port), "Correct containerPort.")
			}
			return
		}
	}
	what := fmt.Sprintf("%s asks %s://%s:%s, but %s listens on %s", field, u.Scheme, host, port, name, listing(ls))
	if near != nil && near.mutual && near.Scheme == u.Scheme {
		what = fmt.Sprintf("%s asks %s://%s:%s, where etcd wants a client certificate, which the kubelet has not", field, u.Scheme, host, port)
	}
	pointer := base + "/port"
	excerpt := "port: " + get.Port.String()
	if near != nil && near.Scheme != u.Scheme {
		pointer, excerpt = base+"/scheme", "scheme: "+string(get.Scheme)
	} else if near != nil {
		pointer, excerpt = base+"/host", "host: "+get.Host
	}
	var expect []analyze.Evidence
	if near == nil && len(ls) > 0 {
		near = &ls[0]
	}
	if near != nil && !near.flag.Ref.IsZero() {
		expect = append(expect, analyze.Expect(near.flag.Ref, near.flag.Text()))
	}
	report207(p, pod, name, field, report.High, analyze.See(pod.Ref(pointer), excerpt), expect, what, "Make host, port and scheme of the probe those of the listener.")
}

func report207(p *analyze.Pass, pod *staticpod.Pod, name, field string, sev report.Severity, see analyze.Evidence, more []analyze.Evidence, message, change string) {
	effect := "; the kubelet restarts the container for it"
	if field == "readinessProbe" {
		effect = "; the pod never becomes ready"
	}
	if sev == report.Low {
		effect = ""
	}
	p.Report(analyze.Finding{
		Subject: name + " " + field, Severity: sev, Message: message + effect,
		Evidence: append([]analyze.Evidence{see}, more...),
		Fix:      recipe.Edit(pod.File().Origin, name, change, "the listen flag in extraArgs; kubeadm derives the probes from it"),
	})
}

func listing(ls []listener) string {
	var out []string
	for _, l := range ls {
		out = append(out, l.String())
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// probePort resolves a probe's port, by name through the container's ports;
// declared is a port of the name kubeadm uses when the probe gives a number.
func probePort(pod *staticpod.Pod, port intstr.IntOrString) (number, declared string, ok bool) {
	c := pod.Spec.Containers[pod.Main()]
	if port.Type == intstr.Int {
		for _, cp := range c.Ports {
			if cp.Name == "probe-port" {
				declared = fmt.Sprint(cp.ContainerPort)
			}
		}
		return port.String(), declared, true
	}
	for _, cp := range c.Ports {
		if cp.Name == port.StrVal {
			return fmt.Sprint(cp.ContainerPort), "", true
		}
	}
	return "", "", false
}

// probeReaches reports whether the kubelet, which dials from the node, reaches
// a listener at a probe's host; an empty host is the pod's address, which in
// the host's network is the node's.
func probeReaches(l listener, host string) bool {
	if host != "" {
		return endpoint.SameHost(l.Host, host)
	}
	return !l.Loopback()
}
