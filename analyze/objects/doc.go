// Package objects holds facts about Kubernetes objects stored in etcd: typed
// values decoded on demand out of a node's database, and the map between etcd
// revisions and wall-clock time that their timestamps give.
//
// Everything is bounded: the size and nesting of one object, the number of
// objects kept of a type, the bytes decoded for one question. What a limit, an
// encryption or a damaged record leaves out is counted in the answer.
//
// Values of Secrets are never decoded.
package objects
