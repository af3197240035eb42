// Package etcdstore reads an etcd database file, damaged or not, in one pass.
//
// Read walks the pages once (boltpage), decodes of every record only the
// revision, the key and the first bytes of the value, and keeps one small entry
// per key. Everything else, from sizes per resource type to the KV hash that
// members compare, is answered from these entries or from a further pass that
// reads only what is asked for. No file is ever opened for writing or locked, no
// etcd or bbolt code runs on it.
//
// Facts about a node's databases are built on Read; rules use the facts.
package etcdstore
