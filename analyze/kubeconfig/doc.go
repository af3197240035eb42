// Package kubeconfig holds facts about a node's kubeconfig files: where each
// points, whom it trusts and with what it proves who it is.
//
// Of private keys, tokens and passwords only their existence is kept, and of
// keys the fingerprint of the public half.
package kubeconfig
