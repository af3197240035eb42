package sta

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"coldplane/analyze"
	"coldplane/analyze/kubelet"
	"coldplane/analyze/running"
	"coldplane/analyze/staticpod"
	"coldplane/bundle"
	"coldplane/report"
	"coldplane/rules/recipe"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "STA103", Name: "static-pod-references-api-object", Scope: analyze.PerNode,
	Severities: []report.Severity{report.Critical, report.High, report.Info},
	Latent:     true,
	Doc: analyze.Doc{
		Title: "A static pod refers to an object of the API server",
		Why: "A static pod has to start before there is an API server, so it may not depend on Secrets, ConfigMaps, service accounts or claims. " +
			"Kubelets from 1.34 reject such a manifest unless the gate PreventStaticPodAPIReferences is off; from 1.37 the gate is gone. Older kubelets run it, " +
			"but the API server refuses its mirror pod, so kubectl does not show it.",
		Fix: "Replace the reference by a file of the host: a hostPath volume instead of a Secret or ConfigMap, a kubeconfig of its own instead of a service account.",
		Links: []string{
			"https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/",
			"https://github.com/kubernetes/kubernetes/blob/master/CHANGELOG/CHANGELOG-1.37.md",
		},
		Since: "v0.1",
	},
	Needs: []analyze.Need{staticpod.Manifests},
	Wants: []analyze.Need{running.Config, kubelet.File},
	Run:   apiReference,
})

// Minor versions of pkg/features: the gate is on by default from the first,
// and gone with the second.
var (
	rejectsByDefault = version.MustParseGeneric("1.34.0")
	rejectsAlways    = version.MustParseGeneric("1.37.0")
)

func apiReference(p *analyze.Pass) error {
	d, _ := staticpod.Manifests.In(p)
	v, from := clusterVersion(p, d)
	for _, pod := range d.Pods() {
		field, what := reference(pod)
		if field == "" {
			continue
		}
		sev, conf, says := report.High, report.Certain, ""
		switch {
		case v == nil:
			conf, says = report.Possible, "kubelets from 1.34 reject it, and nothing says how old this one is"
		case v.AtLeast(rejectsAlways):
			sev, says = report.Critical, fmt.Sprintf("a kubelet of %s rejects it", short(v))
		case v.AtLeast(rejectsByDefault) && !gateOff(p):
			says = fmt.Sprintf("a kubelet of %s rejects it by default", short(v))
		case v.AtLeast(rejectsByDefault):
			sev, says = report.Info, "the gate PreventStaticPodAPIReferences is off here, and gone in 1.37"
		default:
			sev, says = report.Info, fmt.Sprintf("a kubelet of %s still runs it, without a mirror pod in the API", short(v))
		}
		if t, err := version.ParseGeneric(p.Target()); err == nil && sev != report.Critical {
			switch {
			case t.AtLeast(rejectsAlways):
				sev, says = report.Critical, fmt.Sprintf("a kubelet of the target %s rejects it", short(t))
			case t.AtLeast(rejectsByDefault) && sev == report.Info && !gateOff(p):
				sev, says = report.High, fmt.Sprintf("a kubelet of the target %s rejects it by default", short(t))
			}
		}
		evidence := []analyze.Evidence{analyze.See(pod.Ref(field), what)}
		if !from.IsZero() {
			evidence = append(evidence, analyze.Context(from, "version "+v.String()))
		}
		p.Report(analyze.Finding{
			Subject: "static pod " + pod.Namespace + "/" + pod.Name, Severity: sev, Confidence: conf,
			Message:  fmt.Sprintf("the static pod %s refers to %s; %s", pod.Name, what, says),
			Evidence: evidence,
			Fix: append([]report.Step{{Text: "Put what the reference gives into a file of the host that only root may read, and mount that file."}},
				recipe.Edit(pod.File().Origin, pod.Spec.Containers[pod.Main()].Name, fmt.Sprintf("Remove the reference (%s) and add the hostPath volume.", field), "")...),
		})
	}
	for _, e := range d.Entries {
		// What the kubelet cannot decode does not run and refers to nothing.
		if r := bundle.ReasonOf(e.Err); e.Err != nil && r != bundle.Damaged && r != bundle.TooLarge {
			p.UnknownErr(bundle.KindManifests, p.Node(), e.Err)
		}
	}
	return nil
}

func short(v *version.Version) string { return fmt.Sprintf("v%d.%d", v.Major(), v.Minor()) }

// clusterVersion is the version of the control plane, which a kubelet may be
// older than but never newer; nil when nothing says it.
func clusterVersion(p *analyze.Pass, d *staticpod.Dir) (*version.Version, bundle.Ref) {
	if pod := d.Component(staticpod.APIServer); pod != nil {
		if v, err := version.ParseGeneric(pod.ImageTag()); err == nil {
			return v, pod.ImageRef()
		}
	}
	if cfg, err := running.Config.Try(p, nil); err == nil {
		if v, err := version.ParseGeneric(cfg.KubernetesVersion); err == nil {
			return v, cfg.Ref("/kubernetesVersion")
		}
	}
	return nil, bundle.Ref{}
}

func gateOff(p *analyze.Pass) bool {
	cfg, err := kubelet.File.Try(p, p.Node())
	if err != nil {
		return false
	}
	on, set := cfg.FeatureGates["PreventStaticPodAPIReferences"]
	return set && !on
}

// reference finds the first reference to an API object that the kubelet would
// object to (pkg/api/pod HasAPIObjectReference of Kubernetes 1.37).
func reference(p *staticpod.Pod) (field, what string) {
	s := p.Spec
	if s.ServiceAccountName != "" {
		return "/spec/serviceAccountName", "service account " + s.ServiceAccountName
	}
	for i, r := range s.ImagePullSecrets {
		return fmt.Sprintf("/spec/imagePullSecrets/%d", i), "secret " + r.Name
	}
	if f, w := environment("containers", s.Containers); f != "" {
		return f, w
	}
	if f, w := environment("initContainers", s.InitContainers); f != "" {
		return f, w
	}
	if len(s.ResourceClaims) > 0 {
		return "/spec/resourceClaims", "resource claim " + s.ResourceClaims[0].Name
	}
	for i, v := range s.Volumes {
		if w := volume(v); w != "" {
			return fmt.Sprintf("/spec/volumes/%d", i), w
		}
	}
	return "", ""
}

func environment(kind string, list []corev1.Container) (field, what string) {
	for i, c := range list {
		for j, e := range c.Env {
			f := fmt.Sprintf("/spec/%s/%d/env/%d", kind, i, j)
			switch {
			case e.ValueFrom == nil:
			case e.ValueFrom.SecretKeyRef != nil:
				return f, "secret " + e.ValueFrom.SecretKeyRef.Name
			case e.ValueFrom.ConfigMapKeyRef != nil:
				return f, "config map " + e.ValueFrom.ConfigMapKeyRef.Name
			}
		}
		for j, e := range c.EnvFrom {
			f := fmt.Sprintf("/spec/%s/%d/envFrom/%d", kind, i, j)
			switch {
			case e.SecretRef != nil:
				return f, "secret " + e.SecretRef.Name
			case e.ConfigMapRef != nil:
				return f, "config map " + e.ConfigMapRef.Name
			}
		}
	}
	return "", ""
}

func volume(v corev1.Volume) string {
	switch {
	case v.Secret != nil:
		return "secret " + v.Secret.SecretName
	case v.ConfigMap != nil:
		return "config map " + v.ConfigMap.Name
	case v.PersistentVolumeClaim != nil:
		return "claim " + v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return "a claim of an ephemeral volume"
	case v.CSI != nil:
		return "CSI driver " + v.CSI.Driver
	case v.Glusterfs != nil:
		return "endpoints " + v.Glusterfs.EndpointsName
	case v.AzureFile != nil:
		return "secret " + v.AzureFile.SecretName
	case v.Projected == nil:
		return ""
	}
	for _, s := range v.Projected.Sources {
		switch {
		case s.Secret != nil:
			return "secret " + s.Secret.Name
		case s.ConfigMap != nil:
			return "config map " + s.ConfigMap.Name
		case s.ServiceAccountToken != nil:
			return "a service account token"
		case s.ClusterTrustBundle != nil:
			return "a cluster trust bundle"
		case s.PodCertificate != nil:
			return "a pod certificate"
		}
	}
	return ""
}
