package objects

import (
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"coldplane/analyze/etcdstore"
)

// A Decoder turns any stored value into a generic object. Make one with
// NewDecoder and use it for many.
type Decoder struct{ scheme *runtime.Scheme }

// NewDecoder knows the stable groups of k8s.io/api.
func NewDecoder() (*Decoder, error) {
	s := runtime.NewScheme()
	for _, f := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme,
		discoveryv1.AddToScheme, eventsv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme,
		storagev1.AddToScheme, admissionv1.AddToScheme, certificatesv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme,
		flowcontrolv1.AddToScheme, nodev1.AddToScheme} {
		if err := f(s); err != nil {
			return nil, err
		}
	}
	return &Decoder{s}, nil
}

// Object decodes a stored value. Of a Secret the values of data and stringData,
// and everywhere kubectl's copy of the object, are replaced by their length: they
// are never shown.
func (d *Decoder) Object(v []byte) (map[string]any, error) {
	if len(v) > maxObject {
		return nil, etcdstore.ErrTooLarge
	}
	f := etcdstore.FormatOf(v)
	var o map[string]any
	switch f.Encoding {
	case etcdstore.JSON:
		if err := json.Unmarshal(v, &o); err != nil {
			return nil, err
		}
	case etcdstore.Protobuf:
		x, err := d.typed(v, f)
		if err != nil {
			return nil, err
		}
		o = x
	case etcdstore.Encrypted:
		return nil, fmt.Errorf("%w with %s key %s", errEncrypted, f.Provider, f.Key)
	default:
		return nil, errFormat
	}
	hide(o, f.Kind)
	return o, nil
}

func (d *Decoder) typed(v []byte, f etcdstore.Format) (map[string]any, error) {
	gv, err := schema.ParseGroupVersion(f.APIVersion)
	if err != nil {
		return nil, err
	}
	x, err := d.scheme.New(gv.WithKind(f.Kind))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", f.APIVersion, f.Kind, errFormat)
	}
	u, ok := x.(unmarshaler)
	if !ok {
		return nil, errFormat
	}
	if err := decode(v, u); err != nil {
		return nil, err
	}
	x.GetObjectKind().SetGroupVersionKind(gv.WithKind(f.Kind))
	b, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	var o map[string]any
	return o, json.Unmarshal(b, &o)
}

func hide(o map[string]any, kind string) {
	if k, _ := o["kind"].(string); kind == "Secret" || k == "Secret" {
		for _, name := range []string{"data", "stringData"} {
			if m, ok := o[name].(map[string]any); ok {
				for k, v := range m {
					m[k] = fmt.Sprintf("<%d characters, not shown>", len(fmt.Sprint(v)))
				}
			} else if _, there := o[name]; there {
				o[name] = "<not shown>"
			}
		}
	}
	meta, _ := o["metadata"].(map[string]any)
	notes, _ := meta["annotations"].(map[string]any)
	if s, ok := notes[lastApplied].(string); ok {
		notes[lastApplied] = fmt.Sprintf("<%d characters, not shown>", len(s))
	}
}

// shortNames are kubectl's abbreviations.
var shortNames = map[string]string{"po": "pods", "no": "nodes", "ns": "namespaces", "cm": "configmaps", "svc": "services", "ep": "endpoints", "deploy": "deployments",
	"ds": "daemonsets", "rs": "replicasets", "sts": "statefulsets", "sa": "serviceaccounts", "ev": "events", "pvc": "persistentvolumeclaims", "pv": "persistentvolumes",
	"crd": "customresourcedefinitions", "csr": "certificatesigningrequests", "ing": "ingresses", "netpol": "networkpolicies", "pdb": "poddisruptionbudgets",
	"hpa": "horizontalpodautoscalers", "cj": "cronjobs", "pc": "priorityclasses", "sc": "storageclasses", "rc": "replicationcontrollers"}

// FindType returns the store's type for a name as kubectl takes it: plural,
// singular, short, or with its group ("applications.argoproj.io"). The second
// result lists candidates when the name fits several.
func (s *Set) FindType(name string) (typ string, candidates []string) {
	name = strings.ToLower(name)
	if l, ok := shortNames[name]; ok {
		name = l
	}
	plain, group, grouped := strings.Cut(name, ".")
	for _, t := range s.Store.Types {
		if t.Type == etcdstore.Foreign {
			continue
		}
		res := etcdstore.Resource(t.Type)
		g, _, _ := strings.Cut(t.Type, "/")
		fits := res == plain || res == plain+"s" || res == plain+"es" || strings.TrimSuffix(plain, "y")+"ies" == res
		if t.Type == name || fits && (!grouped || g == group) {
			candidates = append(candidates, t.Type)
		}
	}
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	for _, c := range candidates {
		if !strings.Contains(c, ".") && etcdstore.Resource(c) == plain {
			return c, nil
		}
	}
	return "", candidates
}
