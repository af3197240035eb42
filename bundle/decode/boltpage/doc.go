// Package boltpage reads bbolt files page by page without trusting them.
//
// It works over an io.ReaderAt: no memory map, no lock, no write, no goroutine
// left behind. Every page is claimed once, so the work is bounded by the size of
// the file whatever its pointers say; every bound is checked against the bytes
// that are there; what is damaged is recorded with its page and what was lost
// below it, and the walk goes on in the other subtrees.
//
// The package knows bbolt's format and nothing of etcd. It imports nothing of
// ours and may be used by the collector and by the analyzer.
//
// A reader opens a File, starts a Walk, lists the Buckets, lists the leaves of
// each (List reads only branch pages) and scans them with as many workers as it
// likes (Scan). After all buckets are scanned, Finish counts the pages and
// Unreached names the ones nothing points to.
package boltpage
