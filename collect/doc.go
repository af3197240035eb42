// Package collect turns a node, or a dead node's disk, into one safe bundle.
//
// It runs as root on a machine that may be failing, so it is built to do no harm:
// it writes nothing but its output and an unlinked temporary file, locks nothing,
// opens nothing that is not a regular file, follows links inside the root only,
// waits for nothing without a deadline and leaves room on the disk. Each source
// runs by itself; one that hangs is left behind and the others go on.
//
// What is taken goes through package redact first. The package knows no rule and
// no report; cmd imports it.
package collect
