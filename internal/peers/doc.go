// Package peers pins the tools that the tests and benchmarks of the store use
// beside coldplane: etcdutl makes real restores, and bbolt and etcdutl are what
// the speed of the page reader is measured against. It is a module of its own,
// so that nothing of theirs moves a version of coldplane's.
package peers
