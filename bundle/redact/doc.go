// Package redact takes secrets out of evidence before it leaves a node.
//
// Structure and allow-lists do the work: what is not known to be harmless is
// overwritten in place, with the same length, or left out. Text that has no
// structure goes through detectors of secret shapes. Over the finished stream the
// Scanner looks once more, for those shapes and for the very values that were
// overwritten; it is the alarm, not the mechanism.
//
// Everything here is told what to do by its caller and reads no file by itself.
// The collector imports it; the analyzer imports it for the marks that redaction
// leaves.
package redact
