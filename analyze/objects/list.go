package objects

import (
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"coldplane/analyze/etcdstore"
	"coldplane/bundle"
)

// An Object is one stored object and where it lies.
type Object[T any] struct {
	Key       string
	Rev       int64 // of the last write
	CreateRev int64
	Ref       bundle.Ref
	Value     *T
}

// A List are the objects of one type that a question kept.
type List[T any] struct {
	Items     []Object[T]
	Total     int64 // live objects of the type in the store
	Encrypted int   // not readable without the key
	Failed    int   // damaged, too large or of an unknown form
	More      bool  // a limit left some out
	Problems  []string
}

// Complete reports that every live object of the type was read.
func (l List[T]) Complete() bool { return l.Encrypted == 0 && l.Failed == 0 && !l.More }

// Each decodes the live objects of a type ("pods", "services/specs",
// "argoproj.io/applications"), in one namespace or in all, and keeps those that
// keep accepts (nil: all). dec turns a stored value into an object.
func Each[T any](s *Set, typ, namespace string, dec func(v []byte) (*T, error), keep func(*T) bool) List[T] {
	var l List[T]
	for _, t := range s.Store.Types {
		if t.Type == typ {
			l.Total = t.Live
		}
	}
	list, more := s.Store.TypeKeys(typ, namespace, 1<<20)
	l.More = more
	read := 0
	for _, v := range list {
		if read += v.Len; read > maxBytes || len(l.Items) >= maxKept {
			l.More = true
			break
		}
		o, err := one(s, v, dec)
		if err != nil {
			if errors.Is(err, errEncrypted) {
				l.Encrypted++
				continue
			}
			l.Failed++
			if len(l.Problems) < maxProblems {
				l.Problems = append(l.Problems, fmt.Sprintf("%s: %v", v.Key, err))
			}
			continue
		}
		if keep == nil || keep(o.Value) {
			l.Items = append(l.Items, o)
		}
	}
	return l
}

func one[T any](s *Set, v etcdstore.Version, dec func([]byte) (*T, error)) (Object[T], error) {
	r, err := s.Store.Load(v, maxObject)
	if err != nil {
		return Object[T]{}, err
	}
	x, err := dec(r.Value)
	if err != nil {
		return Object[T]{}, err
	}
	return Object[T]{Key: v.Key, Rev: v.Rev.Main, CreateRev: r.CreateRev, Ref: s.Ref(v), Value: x}, nil
}

// typed decodes a type of k8s.io/api.
func typed[T any, P interface {
	*T
	unmarshaler
}](v []byte) (*T, error) {
	p := P(new(T))
	if err := decode(v, p); err != nil {
		return nil, err
	}
	return (*T)(p), nil
}

// jsonOf decodes a type of ours from JSON.
func jsonOf[T any](v []byte) (*T, error) {
	x := new(T)
	if err := decodeJSON(v, x); err != nil {
		return nil, err
	}
	return x, nil
}

func all[T any, P interface {
	*T
	unmarshaler
}](s *Set, typ string) List[T] {
	return once(s, typ, func() List[T] { return Each(s, typ, "", typed[T, P], nil) })
}

// Nodes are the Node objects.
func (s *Set) Nodes() List[corev1.Node] { return all[corev1.Node](s, "minions") }

// Namespaces are the namespaces.
func (s *Set) Namespaces() List[corev1.Namespace] { return all[corev1.Namespace](s, "namespaces") }

// Leases are all Leases: node heartbeats in kube-node-lease, leaders and API
// servers in kube-system.
func (s *Set) Leases() List[coordinationv1.Lease] { return all[coordinationv1.Lease](s, "leases") }

// Pods are the pods of kube-system and those that are Pending anywhere, without
// the rest: a big cluster has too many.
func (s *Set) Pods() List[corev1.Pod] {
	return once(s, "pods", func() List[corev1.Pod] {
		return Each(s, "pods", "", typed[corev1.Pod], func(p *corev1.Pod) bool {
			return p.Namespace == "kube-system" || p.Status.Phase == corev1.PodPending
		})
	})
}

// Services are the Services.
func (s *Set) Services() List[corev1.Service] { return all[corev1.Service](s, "services/specs") }

// EndpointSlices are the slices of a namespace ("" for all).
func (s *Set) EndpointSlices(namespace string) List[discoveryv1.EndpointSlice] {
	return once(s, "endpointslices/"+namespace, func() List[discoveryv1.EndpointSlice] {
		return Each(s, "endpointslices", namespace, typed[discoveryv1.EndpointSlice], nil)
	})
}

// ValidatingWebhooks and MutatingWebhooks are the webhook configurations.
func (s *Set) ValidatingWebhooks() List[admissionv1.ValidatingWebhookConfiguration] {
	return all[admissionv1.ValidatingWebhookConfiguration](s, "validatingwebhookconfigurations")
}

// MutatingWebhooks are the mutating webhook configurations.
func (s *Set) MutatingWebhooks() List[admissionv1.MutatingWebhookConfiguration] {
	return all[admissionv1.MutatingWebhookConfiguration](s, "mutatingwebhookconfigurations")
}

// CSRs are the certificate signing requests.
func (s *Set) CSRs() List[certificatesv1.CertificateSigningRequest] {
	return all[certificatesv1.CertificateSigningRequest](s, "certificatesigningrequests")
}

// ClusterRoleBindings are the cluster role bindings.
func (s *Set) ClusterRoleBindings() List[rbacv1.ClusterRoleBinding] {
	return all[rbacv1.ClusterRoleBinding](s, "clusterrolebindings")
}

// Deployments are the Deployments.
func (s *Set) Deployments() List[appsv1.Deployment] { return all[appsv1.Deployment](s, "deployments") }

// DaemonSets are the DaemonSets.
func (s *Set) DaemonSets() List[appsv1.DaemonSet] { return all[appsv1.DaemonSet](s, "daemonsets") }

// ReplicaSets are the ReplicaSets.
func (s *Set) ReplicaSets() List[appsv1.ReplicaSet] { return all[appsv1.ReplicaSet](s, "replicasets") }

// Jobs are the Jobs.
func (s *Set) Jobs() List[batchv1.Job] { return all[batchv1.Job](s, "jobs") }

// One returns a single object by its place: Object(s, "/registry/minions/cp1").
func One[T any, P interface {
	*T
	unmarshaler
}](s *Set, key string) (Object[T], error) {
	v, ok := s.Store.Latest(key)
	if !ok || v.Tombstone {
		return Object[T]{}, s.missing(bundle.Absent, key, "not in the store")
	}
	o, err := one(s, v, typed[T, P])
	if err != nil {
		return o, s.missing(reasonOf(err), key, err.Error())
	}
	return o, nil
}

// ConfigMap returns a ConfigMap.
func (s *Set) ConfigMap(namespace, name string) (Object[corev1.ConfigMap], error) {
	return One[corev1.ConfigMap](s, s.Store.Prefix+"/configmaps/"+namespace+"/"+name)
}

// Endpoints returns the Endpoints of a service.
func (s *Set) Endpoints(namespace, name string) (Object[corev1.Endpoints], error) {
	return One[corev1.Endpoints](s, s.Store.Prefix+"/services/endpoints/"+namespace+"/"+name)
}

// Namespace returns one namespace; kube-system's UID identifies a cluster.
func (s *Set) Namespace(name string) (Object[corev1.Namespace], error) {
	return One[corev1.Namespace](s, s.Store.Prefix+"/namespaces/"+name)
}

// Has reports whether a key is live.
func (s *Set) Has(key string) bool {
	v, ok := s.Store.Latest(key)
	return ok && !v.Tombstone
}

func (s *Set) missing(r bundle.Reason, key, detail string) error {
	return &bundle.MissingError{Evidence: key, Node: s.DB.File.Node.Name, Reason: r, Detail: detail, Ref: s.DB.AtKey(key, 0)}
}

func reasonOf(err error) bundle.Reason {
	switch {
	case errors.Is(err, errEncrypted):
		return bundle.Redacted
	case errors.Is(err, etcdstore.ErrTooLarge):
		return bundle.TooLarge
	case errors.Is(err, errFormat):
		return bundle.Unsupported
	}
	return bundle.Damaged
}

// FinishedPods are the heads of pods in phase Succeeded or Failed. Only the phase
// is decoded of each pod.
func (s *Set) FinishedPods() List[Head] {
	return once(s, "finished-pods", func() List[Head] {
		return Each(s, "pods", "", func(v []byte) (*Head, error) {
			b, ok := raw(v)
			if !ok {
				return nil, errFormat
			}
			status, _ := field(b, 3)
			phase, _ := field(status, 1)
			if p := string(phase); p != string(corev1.PodSucceeded) && p != string(corev1.PodFailed) {
				return nil, nil
			}
			h, err := protoHead(b)
			h.SecretType = ""
			return &h, err
		}, func(h *Head) bool { return h != nil })
	})
}
