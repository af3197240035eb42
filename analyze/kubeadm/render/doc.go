// Package render writes the static pods that kubeadm of a given minor would
// write from a ClusterConfiguration, and compares manifests with them.
//
// It is a small model of kubeadm's defaults (cmd/kubeadm/app/phases in the
// Kubernetes source), held against the output of the real kubeadm of several
// minors under testdata/oracle. It knows nothing of bundles and rules.
package render
