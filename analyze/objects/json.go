package objects

import (
	"time"
)

// Meta is the part of an object's metadata that questions use.
type Meta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	CreationTimestamp time.Time         `json:"creationTimestamp"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
	Finalizers        []string          `json:"finalizers"`
	Annotations       map[string]string `json:"annotations"`
	Labels            map[string]string `json:"labels"`
	OwnerReferences   []OwnerRef        `json:"ownerReferences"`
}

// OwnerRef names an owner.
type OwnerRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Condition is a status condition.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// ServiceRef names the service behind a webhook or an aggregated API.
type ServiceRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Port      *int32 `json:"port"`
	Path      string `json:"path"`
}

// A CRD is a CustomResourceDefinition, in the fields v1 and v1beta1 share.
type CRD struct {
	APIVersion string `json:"apiVersion"`
	Metadata   Meta   `json:"metadata"`
	Spec       struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Plural string `json:"plural"`
			Kind   string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name       string `json:"name"`
			Served     bool   `json:"served"`
			Storage    bool   `json:"storage"`
			Deprecated bool   `json:"deprecated"`
		} `json:"versions"`
		Version    string `json:"version"` // v1beta1
		Conversion struct {
			Strategy            string `json:"strategy"`
			WebhookClientConfig *struct {
				URL      *string     `json:"url"`
				Service  *ServiceRef `json:"service"`
				CABundle []byte      `json:"caBundle"`
			} `json:"webhookClientConfig"` // v1beta1
			Webhook *struct {
				ClientConfig *struct {
					URL      *string     `json:"url"`
					Service  *ServiceRef `json:"service"`
					CABundle []byte      `json:"caBundle"`
				} `json:"clientConfig"`
			} `json:"webhook"`
		} `json:"conversion"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string    `json:"storedVersions"`
		Conditions     []Condition `json:"conditions"`
	} `json:"status"`
}

// An APIService registers an aggregated or local API version.
type APIService struct {
	APIVersion string `json:"apiVersion"`
	Metadata   Meta   `json:"metadata"`
	Spec       struct {
		Group                 string      `json:"group"`
		Version               string      `json:"version"`
		Service               *ServiceRef `json:"service"` // nil: served by the API server itself
		InsecureSkipTLSVerify bool        `json:"insecureSkipTLSVerify"`
		CABundle              []byte      `json:"caBundle"`
	} `json:"spec"`
	Status struct {
		Conditions []Condition `json:"conditions"`
	} `json:"status"`
}

// An Application is an Argo CD Application.
type Application struct {
	Metadata Meta `json:"metadata"`
	Status   struct {
		Sync struct {
			Status string `json:"status"`
		} `json:"sync"`
		Health struct {
			Status string `json:"status"`
		} `json:"health"`
		ReconciledAt *time.Time `json:"reconciledAt"`
	} `json:"status"`
}

// A Custom is any custom resource, by its metadata alone.
type Custom struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   Meta   `json:"metadata"`
}

// CRDs are the CustomResourceDefinitions.
func (s *Set) CRDs() List[CRD] {
	return once(s, "crds", func() List[CRD] {
		return Each(s, "apiextensions.k8s.io/customresourcedefinitions", "", jsonOf[CRD], nil)
	})
}

// APIServices are the APIServices.
func (s *Set) APIServices() List[APIService] {
	return once(s, "apiservices", func() List[APIService] {
		return Each(s, "apiregistration.k8s.io/apiservices", "", jsonOf[APIService], nil)
	})
}

// Applications are Argo CD's Applications.
func (s *Set) Applications() List[Application] {
	return once(s, "applications", func() List[Application] {
		return Each(s, "argoproj.io/applications", "", jsonOf[Application], nil)
	})
}

// Customs are the custom resources of a type ("example.com/widgets").
func (s *Set) Customs(typ, namespace string) List[Custom] {
	return Each(s, typ, namespace, jsonOf[Custom], nil)
}
