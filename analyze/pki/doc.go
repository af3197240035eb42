// Package pki holds facts about a node's credentials: certificates, keys by
// their public fingerprints, the CAs each verifier was told to trust, and
// which process uses which file.
//
// Certificates are joined to keys by SPKI fingerprint, to their issuers by key
// identifiers and signature, and to their users by the flags of the manifests.
// Private keys are read only as far as their public half. The package judges
// nothing: dates, trust and names are questions for rules.
package pki
