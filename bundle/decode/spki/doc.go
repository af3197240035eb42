// Package spki reads PEM files of certificates and keys down to public fingerprints.
//
// A private key is parsed only far enough to name its public half: the SHA-256
// of the SubjectPublicKeyInfo, by which a key and a certificate are matched.
// Nothing of the key itself is kept or returned. The package imports nothing
// of ours and may be used by the collector and by the analyzer.
package spki
