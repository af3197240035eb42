// Package kubevalue walks the values that Kubernetes keeps in etcd without decoding them.
//
// It tells what form a value has (protobuf envelope, JSON, encrypted, other),
// finds kind and API version, and overwrites fields in place by a Policy: same
// length, same structure, still decodable under any schema. Nothing of a value
// is allocated, depth and size are bounded, and what cannot be parsed is
// overwritten whole.
//
// It knows the wire formats and no Kubernetes type. It imports nothing of ours
// and may be used by the collector and by the analyzer.
package kubevalue
