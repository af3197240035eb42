// Package scan reads one log stream once and says which known texts are in it, how often and when.
//
// A stream may be gzip, CRI, journald text, JSON or export, or bare; it may hold
// NUL bytes, binary junk and lines of any length. Memory is bounded: of a line
// the first 8 KiB count, of a text's occurrences the first and last are kept
// with counts per quarter hour. The package knows log texts only as package
// signature gives them, and nothing of nodes, bundles or rules.
package scan
