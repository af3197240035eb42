// Package bundle knows what an input is: a set of nodes with files that are read and never written.
//
// Everything the analyzer looks at comes through a Set: node roots in
// directories and archives, bare etcd databases, data directories, coldplane
// bundles. The package hides where bytes lie (disk, archive, spool), resolves
// symbolic links inside a node's root only, and tells "absent on the node"
// from "not collected". It must not know any rule, fact or report format;
// every other package may import it.
package bundle
