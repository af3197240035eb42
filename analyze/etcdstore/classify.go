package etcdstore

import (
	"bytes"
	"strings"
)

// DefaultPrefix is kube-apiserver's default for --etcd-prefix.
const DefaultPrefix = "/registry"

// Foreign is the type of keys outside the API server's prefix.
const Foreign = "(foreign)"

// A Name is an etcd key taken apart.
type Name struct {
	Type      string // "pods", "services/specs", "example.com/widgets", Foreign
	Namespace string // empty for cluster-scoped objects
	Object    string
}

// Classify takes a key below prefix apart. It knows the API server's layout:
// /registry/TYPE/NAME or /registry/TYPE/NAMESPACE/NAME, where TYPE is one segment,
// or two when the first is an API group (it holds a dot) or is "services".
func Classify(prefix string, key []byte) Name {
	typ, ns, rest := split(prefix, key)
	if typ == nil {
		return Name{Type: Foreign, Object: string(key)}
	}
	return Name{Type: string(typ), Namespace: string(ns), Object: string(rest)}
}

func split(prefix string, key []byte) (typ, ns, object []byte) {
	if len(key) <= len(prefix)+1 || string(key[:len(prefix)]) != prefix || key[len(prefix)] != '/' {
		return nil, nil, nil
	}
	rest := key[len(prefix)+1:]
	j := bytes.IndexByte(rest, '/')
	if j == 0 {
		return nil, nil, nil
	}
	if j < 0 {
		return rest, nil, nil
	}
	if bytes.IndexByte(rest[:j], '.') >= 0 || string(rest[:j]) == "services" {
		k := bytes.IndexByte(rest[j+1:], '/')
		if k < 0 {
			return rest, nil, nil
		}
		j += 1 + k
	}
	typ, rest = rest[:j:j], rest[j+1:]
	if k := bytes.IndexByte(rest, '/'); k >= 0 {
		return typ, rest[:k:k], rest[k+1:]
	}
	return typ, nil, rest
}

// registryNames are the types whose segment in the key is not their resource
// name (k8s.io/kubernetes pkg/kubeapiserver/default_storage_factory_builder.go
// and the historic names of core types).
var registryNames = map[string]string{
	"minions":            "nodes",
	"controllers":        "replicationcontrollers",
	"services/specs":     "services",
	"services/endpoints": "endpoints",
	"ingress":            "ingresses",
	"podsecuritypolicy":  "podsecuritypolicies",
	"masterleases":       "masterleases",
}

// Resource returns the plural resource name of a type, without its group.
func Resource(typ string) string {
	if n, ok := registryNames[typ]; ok {
		return n
	}
	if i := strings.LastIndexByte(typ, '/'); i >= 0 {
		return typ[i+1:]
	}
	return typ
}

// compactRevKey is what kube-apiserver's compactor writes before each compaction
// (k8s.io/apiserver pkg/storage/etcd3/compact.go). It lies outside the prefix.
const compactRevKey = "compact_rev_key"
