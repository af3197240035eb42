package upg

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"coldplane/analyze"
	"coldplane/analyze/kubeadm"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/objects"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "UPG204", Name: "release-notes-that-apply", Scope: analyze.PerCluster, Audit: true,
	Severities: []report.Severity{report.High, report.Medium, report.Low},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "A must-read note of a release on the way applies to this cluster",
		Why: "Each release comes with notes about what changes without anybody asking for it. Those that can be decided from the evidence are asked here, " +
			"one by one, for every minor between the running one and the target; the others are rules of their own (stored kinds UPG201, flags UPG301, cgroups UPG503, runtime UPG504, pinned etcd UPG404).",
		Fix: "Do what the note says before the step to that minor.",
		Links: []string{
			"https://github.com/kubernetes/kubernetes/tree/master/CHANGELOG",
		},
		Since: "v0.1",
	},
	Wants: []analyze.Need{running.Config, running.OnNode, running.Nodes, objects.Cluster, staticpod.Manifests, kubelet.File},
	Run:   releaseNotes,
})

// A note is one entry of a changelog and how it is decided.
type note struct {
	minor int // 1.N whose upgrade it is about
	ask   func(*noteCheck)
}

// notes are the entries, by minor.
func notes() []note {
	return []note{
		{24, (*noteCheck).masterLabel},
		{25, (*noteCheck).oldRegistry},
		{25, (*noteCheck).podSecurityPolicies},
		{37, (*noteCheck).staticPodReferences},
		{37, (*noteCheck).unlimitedEvents},
	}
}

type noteCheck struct {
	p     *analyze.Pass
	minor int
	cfg   *kubeadm.Config
	set   *objects.Set
}

func releaseNotes(p *analyze.Pass) error {
	t, ok := target(p)
	if !ok {
		return p.NotApplicable("the target is not a Kubernetes 1.x version")
	}
	c := &noteCheck{p: p}
	var err error
	if c.cfg, err = running.Config.Try(p, nil); err != nil {
		c.cfg = nil
	}
	if c.set, err = objects.Cluster.Try(p, nil); err != nil {
		c.set = nil
	}
	from, _, known := current(p, c.cfg)
	if !known {
		p.Unknown(bundle.KindManifests, nil, bundle.NotCollected, "the running version, and with it which notes lie on the way")
		return nil
	}
	tabled(p, t)
	for _, n := range notes() {
		if from.Minor < n.minor && n.minor <= t.Minor {
			c.minor = n.minor
			n.ask(c)
		}
	}
	return nil
}

func (c *noteCheck) say(subject string, sev report.Severity, text string, fix []report.Step, ev ...analyze.Evidence) {
	c.p.Report(analyze.Finding{Subject: subject, Severity: sev, Evidence: ev, Fix: fix, Message: fmt.Sprintf("1.%d: %s", c.minor, text)})
}

// masterLabel: kubeadm takes the label node-role.kubernetes.io/master off.
func (c *noteCheck) masterLabel() {
	if c.set == nil {
		return
	}
	const label = "node-role.kubernetes.io/master"
	uses := func(s corev1.PodSpec) bool {
		_, ok := s.NodeSelector[label]
		if a := s.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				for _, e := range t.MatchExpressions {
					ok = ok || e.Key == label && e.Operator != corev1.NodeSelectorOpDoesNotExist && e.Operator != corev1.NodeSelectorOpNotIn
				}
			}
		}
		return ok
	}
	fix := steps(report.Step{Text: "Select node-role.kubernetes.io/control-plane instead, and tolerate its taint."})
	for _, o := range c.set.Deployments().Items {
		if uses(o.Value.Spec.Template.Spec) {
			c.say("deployment "+o.Value.Namespace+"/"+o.Value.Name, report.Medium, fmt.Sprintf("Deployment %s/%s selects nodes by %s, a label kubeadm removes: its pods are not scheduled any more", o.Value.Namespace, o.Value.Name, label), fix, analyze.See(o.Ref, label))
		}
	}
	for _, o := range c.set.DaemonSets().Items {
		if uses(o.Value.Spec.Template.Spec) {
			c.say("daemonset "+o.Value.Namespace+"/"+o.Value.Name, report.Medium, fmt.Sprintf("DaemonSet %s/%s selects nodes by %s, a label kubeadm removes: its pods go away", o.Value.Namespace, o.Value.Name, label), fix, analyze.See(o.Ref, label))
		}
	}
}

// oldRegistry: new images come from registry.k8s.io only.
func (c *noteCheck) oldRegistry() {
	if c.cfg == nil || !strings.HasPrefix(c.cfg.ImageRepository, "k8s.gcr.io") {
		return
	}
	c.say("imageRepository", report.High, fmt.Sprintf("kubeadm-config takes images from %s, which has none of newer releases; they are in registry.k8s.io", c.cfg.ImageRepository),
		steps(report.Step{Text: "Set imageRepository to registry.k8s.io, or to a mirror of it, in kubeadm-config.", Command: "kubectl -n kube-system edit configmap kubeadm-config"}),
		analyze.See(c.cfg.Ref("/imageRepository"), "imageRepository: "+c.cfg.ImageRepository))
}

// podSecurityPolicies stop to have any effect.
func (c *noteCheck) podSecurityPolicies() {
	if c.set == nil {
		return
	}
	for _, t := range c.set.Store.Types {
		if t.Type == "podsecuritypolicy" && t.Live > 0 {
			c.say("podsecuritypolicies", report.Medium, fmt.Sprintf("%d PodSecurityPolicies stop to have any effect; what they forbid is allowed then", t.Live),
				steps(report.Step{Text: "Label the namespaces for Pod Security admission (pod-security.kubernetes.io/enforce) and take PodSecurityPolicy out of the admission plugins before the upgrade."}),
				analyze.See(c.set.DB.AtKey(c.set.Store.Prefix+"/podsecuritypolicy/", 0), fmt.Sprintf("%d PodSecurityPolicies", t.Live)))
		}
	}
}

// staticPodReferences: a static pod that names an API object is refused.
func (c *noteCheck) staticPodReferences() {
	for _, n := range c.p.Nodes() {
		m, err := staticpod.Manifests.Try(c.p, n)
		if err != nil {
			continue
		}
		for _, e := range m.Entries {
			if e.Pod == nil || e.Ignored != "" {
				continue
			}
			if what, ptr := apiReference(e.Pod.Spec); what != "" {
				c.say("static pod "+e.Pod.Name+" on "+n.Name, report.High, fmt.Sprintf("the static pod %s on %s names %s; kubelets refuse static pods that name API objects", e.Pod.Name, n.Name, what),
					steps(report.Step{Text: "Put what it needs into files on the node (hostPath), or run it as a DaemonSet."}), analyze.See(e.Pod.Ref(ptr), what))
			}
		}
	}
}

// apiReference finds the first API object a pod names, by pkg/api/pod of
// Kubernetes (what HasAPIObjectReference looks at).
func apiReference(s corev1.PodSpec) (what, pointer string) {
	if s.ServiceAccountName != "" {
		return "the service account " + s.ServiceAccountName, "/spec/serviceAccountName"
	}
	for i, v := range s.Volumes {
		at := fmt.Sprintf("/spec/volumes/%d", i)
		switch {
		case v.Secret != nil:
			return "the Secret " + v.Secret.SecretName, at
		case v.ConfigMap != nil:
			return "the ConfigMap " + v.ConfigMap.Name, at
		case v.PersistentVolumeClaim != nil:
			return "the PersistentVolumeClaim " + v.PersistentVolumeClaim.ClaimName, at
		case v.Projected != nil:
			return "a projected volume " + v.Name, at
		}
	}
	for i, ct := range s.Containers {
		for j, e := range ct.EnvFrom {
			at := fmt.Sprintf("/spec/containers/%d/envFrom/%d", i, j)
			switch {
			case e.ConfigMapRef != nil:
				return "the ConfigMap " + e.ConfigMapRef.Name, at
			case e.SecretRef != nil:
				return "the Secret " + e.SecretRef.Name, at
			}
		}
		for j, e := range ct.Env {
			at := fmt.Sprintf("/spec/containers/%d/env/%d", i, j)
			switch {
			case e.ValueFrom == nil:
			case e.ValueFrom.ConfigMapKeyRef != nil:
				return "the ConfigMap " + e.ValueFrom.ConfigMapKeyRef.Name, at
			case e.ValueFrom.SecretKeyRef != nil:
				return "the Secret " + e.ValueFrom.SecretKeyRef.Name, at
			}
		}
	}
	return "", ""
}

// unlimitedEvents: eventRecordQPS 0 comes to mean what it says.
func (c *noteCheck) unlimitedEvents() {
	for _, n := range c.p.Nodes() {
		k, err := kubelet.File.Try(c.p, n)
		if err != nil || k.EventRecordQPS == nil || *k.EventRecordQPS != 0 {
			continue
		}
		c.say("eventRecordQPS on "+n.Name, report.Low, fmt.Sprintf("the kubelet of %s has eventRecordQPS: 0, which comes to mean no limit on the events it writes", n.Name),
			steps(report.Step{Text: "Leave the field out, or set it to a number, in the kubelet-config ConfigMap and in /var/lib/kubelet/config.yaml."}), analyze.See(k.Doc.Ref("/eventRecordQPS"), "eventRecordQPS: 0"))
	}
}
