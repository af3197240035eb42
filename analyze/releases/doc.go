// Package releases knows what each release of Kubernetes and etcd accepts:
// flags, feature gates, admission plugins, kinds it can decode, what kubeadm
// installs, and the versions of etcd with known trouble.
//
// The files under data are generated from the sources by internal/tablegen.
// A release outside the tables is unknown, never assumed to be like its
// neighbour. The package imports nothing of ours.
package releases
