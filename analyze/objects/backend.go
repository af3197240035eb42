package objects

import (
	corev1 "k8s.io/api/core/v1"

	"coldplane/bundle"
)

// A Backend is what stands behind a webhook, a conversion or an aggregated API,
// by the last stored state.
type Backend struct {
	Service string // "namespace/name"; "" for a URL
	Dead    bool
	Why     string // why it is dead
	Known   bool   // whether liveness can be told from the store
	Ready   int    // ready addresses
	Ref     bundle.Ref
	Object  *corev1.Service // nil when there is none
}

// Backend judges a Service by its endpoints.
func (s *Set) Backend(namespace, name string) Backend {
	b := Backend{Service: namespace + "/" + name, Known: true}
	var svc *Object[corev1.Service]
	l := s.Services()
	for i := range l.Items {
		if l.Items[i].Value.Namespace == namespace && l.Items[i].Value.Name == name {
			svc = &l.Items[i]
		}
	}
	if svc == nil {
		if !l.Complete() {
			return Backend{Service: b.Service}
		}
		b.Dead, b.Why = true, "its service "+b.Service+" does not exist"
		return b
	}
	b.Ref = svc.Ref
	if svc.Value.Spec.Type == corev1.ServiceTypeExternalName {
		return Backend{Service: b.Service, Ref: svc.Ref}
	}
	b.Object = svc.Value
	slices, ready, any := s.EndpointSlices(namespace), 0, false
	for _, o := range slices.Items {
		if o.Value.Labels["kubernetes.io/service-name"] != name {
			continue
		}
		any = true
		for _, e := range o.Value.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready += len(e.Addresses)
			}
		}
	}
	if !any {
		if ep, err := One[corev1.Endpoints](s, s.Store.Prefix+"/services/endpoints/"+namespace+"/"+name); err == nil { //nolint:staticcheck // clusters of before 1.21 have nothing else
			for _, x := range ep.Value.Subsets {
				ready += len(x.Addresses)
			}
		} else if !slices.Complete() {
			return Backend{Service: b.Service, Ref: svc.Ref}
		}
	}
	b.Ready = ready
	if ready == 0 {
		b.Dead, b.Why = true, "its service "+b.Service+" has no ready endpoint"
	}
	return b
}
