package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"
)

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, f := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme,
		discoveryv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme,
		admissionv1.AddToScheme, certificatesv1.AddToScheme} {
		if err := f(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// segments are the kinds whose part of the key is not the lower-case plural of
// the kind.
var segments = map[string]string{
	"Node": "minions", "Service": "services/specs", "Endpoints": "services/endpoints", "ReplicationController": "controllers", "Ingress": "ingress",
	"StorageClass": "storageclasses", "PriorityClass": "priorityclasses", "NetworkPolicy": "networkpolicies",
}

// object stores what the YAML of a line describes.
func (b *builder) object(l line) error {
	js, err := yaml.YAMLToJSON([]byte(l.body))
	if err != nil {
		return err
	}
	var m struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct{ Name, Namespace string }
	}
	if err := json.Unmarshal(js, &m); err != nil {
		return err
	}
	if m.Kind == "" || m.APIVersion == "" || m.Metadata.Name == "" {
		return fmt.Errorf("an object needs apiVersion, kind and metadata.name")
	}
	s, err := newScheme()
	if err != nil {
		return err
	}
	seg, val := "", []byte(nil)
	plural := strings.ToLower(m.Kind) + "s"
	if strings.HasSuffix(m.Kind, "y") {
		plural = strings.ToLower(m.Kind[:len(m.Kind)-1]) + "ies"
	}
	if o, _, err := serializer.NewCodecFactory(s).UniversalDeserializer().Decode(js, nil, nil); err == nil {
		var buf bytes.Buffer
		if err := protobuf.NewSerializer(s, s).Encode(o, &buf); err != nil {
			return err
		}
		seg, val = plural, buf.Bytes()
		if n, ok := segments[m.Kind]; ok {
			seg = n
		}
	} else if runtime.IsNotRegisteredError(err) {
		var u any
		if err := json.Unmarshal(js, &u); err != nil {
			return err
		}
		if val, err = json.Marshal(u); err != nil {
			return err
		}
		group, _, _ := strings.Cut(m.APIVersion, "/")
		if r := l.opts["resource"]; r != "" {
			plural = r
		}
		seg = group + "/" + plural
	} else {
		return err
	}
	key := "/registry/" + seg + "/"
	if m.Metadata.Namespace != "" {
		key += m.Metadata.Namespace + "/"
	}
	key += m.Metadata.Name
	if k := l.opts["key"]; k != "" {
		key = k
	}
	times, err := l.number("times", 1)
	if err != nil {
		return err
	}
	for range times {
		if err := b.add(l, key, val); err != nil {
			return err
		}
	}
	return nil
}
