package sta

import (
	"fmt"
	"path"
	"strings"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/endpoint"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/logs"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA102", Name: "control-plane-manifest-missing-or-invalid", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Medium},
	Kubeadm:    true,
	Doc: analyze.Doc{
		Title: "A control-plane manifest is missing or is no valid Pod",
		Why: "A control-plane component exists only as long as the kubelet can read its manifest. Without one the running container goes on until the " +
			"kubelet restarts or the node reboots, or is stopped at once, depending on what happened to the file; it does not come back.",
		Fix: "Correct the file, or write it anew with kubeadm (init phase control-plane NAME, with a full configuration). etcd's manifest may be written " +
			"anew only where member/wal and member/snap/db are intact: with an empty directory it would found a new, empty cluster.",
		Links: []string{"https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-init-phase/"},
		Since: "v0.1",
	},
	Wants: []analyze.Need{staticpod.Manifests, running.Config, kubelet.File, kubelet.CommandLine, kubelet.StaticPods, cri.OnNode, logs.OnNode},
	Run:   requiredManifest,
})

func requiredManifest(p *analyze.Pass) error {
	d, err := staticpod.Manifests.Try(p, p.Node())
	if err != nil {
		p.UnknownErr(bundle.KindManifests, p.Node(), err)
		toldByKubelet(p)
		return nil
	}
	elsewhere := kubeletReads(p, d)
	if !controlPlaneNode(p.Node(), d) {
		if elsewhere {
			return nil
		}
		return p.NotApplicable("no control-plane component but etcd belongs on this node")
	}
	for _, c := range staticpod.Components() {
		if other := d.Component(c); other != nil {
			if e := d.Broken(c); e != nil && e.File.Name() == c+path.Ext(e.File.Name()) {
				brokenManifest(p, d, c, e, other)
			}
			continue
		}
		if c == staticpod.Etcd {
			switch need, known := needsEtcd(p, d); {
			case !known:
				p.Unknown(bundle.KindKubeadmConfig, p.Node(), bundle.NotCollected, "without it nothing says whether etcd belongs on this node")
				continue
			case !need:
				continue
			}
		}
		if e := d.Broken(c); e != nil {
			brokenManifest(p, d, c, e, nil)
		} else {
			missingManifest(p, d, c)
		}
	}
	return nil
}

// controlPlaneNode reports whether the node has, or had, a control plane: not
// one that only runs etcd, and no worker.
func controlPlaneNode(n *bundle.Node, d *staticpod.Dir) bool {
	for _, c := range []string{staticpod.APIServer, staticpod.ControllerManager, staticpod.Scheduler} {
		if d.Component(c) != nil || d.Broken(c) != nil {
			return true
		}
	}
	for _, f := range []string{"controller-manager.conf", "scheduler.conf", "pki/apiserver.crt", "pki/apiserver.key"} {
		if _, err := n.Lstat("/etc/kubernetes/" + f); err == nil {
			return true
		}
	}
	return false
}

// needsEtcd decides whether etcd runs on control-plane nodes of this cluster:
// as kubeadm remembers it, else by where the API server looks for it.
func needsEtcd(p *analyze.Pass, d *staticpod.Dir) (need, known bool) {
	if cfg, err := running.Config.Try(p, nil); err == nil {
		return !cfg.External(), true
	}
	api := d.Component(staticpod.APIServer)
	if api == nil {
		return false, false
	}
	f, ok := api.Flag("etcd-servers")
	if !ok || f.Dynamic {
		return false, false
	}
	own, _ := api.Flag("advertise-address")
	urls, _ := endpoint.List(f.Value)
	for _, u := range urls {
		if u.Host == endpoint.Host(own.Value) || u.Loopback() {
			// etcd may also run as a service of this machine.
			_, err := p.Node().Lstat("/etc/kubernetes/pki/etcd/server.crt")
			return true, err == nil
		}
	}
	return false, len(urls) > 0
}

// kubeletReads compares the directory the kubelet reads with the one that was
// looked at, and reports true when they differ.
func kubeletReads(p *analyze.Pass, d *staticpod.Dir) bool {
	sp, err := kubelet.StaticPods.Try(p, p.Node())
	if err != nil || sp.Ref.IsZero() || sp.Path == d.Path || len(d.Pods()) == 0 {
		return false
	}
	if f, err := p.Node().Stat(sp.Path); err == nil && f.Resolved == d.Path {
		return false
	}
	msg := fmt.Sprintf("the kubelet reads static pods from %s, the manifests are in %s", sp.Path, d.Path)
	want := "Point the kubelet at the directory with the manifests"
	if sp.Path == "" {
		msg = fmt.Sprintf("the kubelet's configuration names no static-pod directory, so the manifests in %s are not read", d.Path)
		want = "Name the directory in the kubelet's configuration"
	}
	p.Report(analyze.Finding{
		Subject: "kubelet static-pod directory", Severity: report.Medium, Message: msg,
		Evidence: []analyze.Evidence{analyze.See(sp.Ref, "staticPodPath: "+sp.Path), analyze.Context(d.Pods()[0].File().Ref(), d.Pods()[0].Name)},
		Fix: []report.Step{
			{Text: fmt.Sprintf("%s (staticPodPath: %s), unless the components already run from somewhere else.", want, d.Path), Command: "crictl ps"},
			{Text: "Restart the kubelet.", Command: "systemctl restart kubelet"},
			{Text: "Make the same change in the kubelet-config ConfigMap, which kubeadm upgrade node writes to every node.", Command: "kubectl -n kube-system edit configmap kubelet-config"},
		},
	})
	return true
}

// alive says what the runtime knows of a component: a running container, and
// whether the list of containers proves that there is none.
func alive(p *analyze.Pass, component string) (c *cri.Container, none bool) {
	v, err := cri.OnNode.Try(p, p.Node())
	if err != nil {
		return nil, false
	}
	c = v.Running(component)
	return c, c == nil && v.Listed
}

// weigh gives the severity of a component whose manifest is no good.
func weigh(p *analyze.Pass, component string) (report.Severity, string, []analyze.Evidence) {
	switch c, none := alive(p, component); {
	case c != nil:
		return report.High, "; its container still runs, until the kubelet or the node restarts", []analyze.Evidence{analyze.Context(c.Where(), "running")}
	case none:
		return report.Critical, "; no container of it runs", nil
	}
	return report.High, "", nil
}

// brokenManifest reports a component's file that the kubelet cannot use; other is
// the pod of another file that the kubelet runs in its place, or nil.
func brokenManifest(p *analyze.Pass, d *staticpod.Dir, component string, e *staticpod.Entry, other *staticpod.Pod) {
	var m *bundle.MissingError
	if !asMissing(e.Err, &m) || m.Reason != bundle.Damaged && m.Reason != bundle.TooLarge {
		p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
		return
	}
	sev, state, more := weigh(p, component)
	if other != nil {
		sev, state = report.High, fmt.Sprintf("; it runs it from %s instead", other.File().Name())
		more = []analyze.Evidence{analyze.Context(other.File().Ref(), "pod "+other.Name)}
	}
	ref := m.Ref
	if ref.IsZero() {
		ref = e.File.Ref()
	}
	p.Report(analyze.Finding{
		Subject: component + " manifest", Severity: sev,
		Message:  fmt.Sprintf("the kubelet cannot run %s from %s: %s%s", component, e.File.Name(), m.Detail, state),
		Evidence: append([]analyze.Evidence{analyze.See(ref, m.Detail)}, more...),
		Fix:      append([]report.Step{correct(p, e, component)}, regenerate(component, d.Path, e.File.Name())...),
	})
}

// correct is the step that repairs the file by hand.
func correct(p *analyze.Pass, e *staticpod.Entry, component string) report.Step {
	name := recipe.Quote(e.File.Origin)
	draft := recipe.Quote("/root/" + e.File.Name())
	return report.Step{Text: "Correct a copy outside the directory and move it into place.",
		Command: fmt.Sprintf("cp -p %s %s.broken && cp -p %s %s && vi %s && mv %s %s", name, draft, name, draft, draft, draft, name)}
}

func missingManifest(p *analyze.Pass, d *staticpod.Dir, component string) {
	sev, state, more := weigh(p, component)
	file := path.Join(d.Path, component+".yaml")
	ref := p.Node().Ref(d.Path)
	evidence := append([]analyze.Evidence{analyze.See(ref, "no "+component+".yaml among "+names(d))}, more...)
	fix := []report.Step{}
	if f := parked(p.Node(), component); f != nil {
		state += "; a copy is parked at " + f.Origin
		evidence = append(evidence, analyze.Context(f.Ref(), "parked copy"))
		fix = append(fix, report.Step{Text: "If nobody is working on this node, look at the parked copy and move it back. During a restore it is meant to be away.",
			Command: fmt.Sprintf("mv -n %s %s", recipe.Quote(f.Origin), recipe.Quote(file))})
	}
	p.Report(analyze.Finding{
		Subject: component + " manifest", Severity: sev,
		Message:  fmt.Sprintf("%s does not exist, though this is a control-plane node%s", file, state),
		Evidence: evidence,
		Fix:      append(fix, regenerate(component, d.Path, component+".yaml")...),
	})
}

func names(d *staticpod.Dir) string {
	var out []string
	for _, e := range d.Entries {
		if e.Ignored == "" {
			out = append(out, e.File.Name())
		}
	}
	if len(out) == 0 {
		return "no files"
	}
	return strings.Join(out, ", ")
}

// parked looks for the manifest where people put it during maintenance.
func parked(n *bundle.Node, component string) *bundle.File {
	for _, dir := range []string{"/root", "/etc/kubernetes", "/etc/kubernetes/manifests.bak", "/etc/kubernetes/manifests-backup", "/etc/kubernetes/manifests.old", "/tmp", "/root/manifests", "/root/manifests-removed"} {
		for _, f := range n.Glob(dir + "/" + component + ".yaml*") {
			if f.Mode.IsRegular() {
				return f
			}
		}
	}
	return nil
}

// regenerate gives the steps with which kubeadm writes a manifest anew.
func regenerate(component, dir, name string) []report.Step {
	full := report.Step{Text: "Or let kubeadm write it anew. Make full.yaml first: the ClusterConfiguration of kubeadm-config and an InitConfiguration with this " +
		"node's nodeRegistration.name and localAPIEndpoint.advertiseAddress; without it kubeadm takes defaults."}
	if component == staticpod.Etcd {
		return []report.Step{full,
			{Text: "etcd: only when member/wal and member/snap/db of the data directory are there and whole; on an empty directory this founds a NEW, empty cluster. Otherwise remove the member and join the node again.",
				Command: "ls -l /var/lib/etcd/member/snap/db /var/lib/etcd/member/wal && kubeadm init phase etcd local --config full.yaml"},
			recipe.Watch(component)}
	}
	phase := strings.TrimPrefix(component, "kube-")
	return []report.Step{full,
		{Text: "Write it.", Command: "kubeadm init phase control-plane " + phase + " --config full.yaml"},
		recipe.Watch(component)}
}
