// Package analyze is the engine between evidence and rules: facts, needs,
// gaps, and the pass that is a rule's only door.
//
// A Fact is a typed value computed once per node (or once per cluster) from
// evidence. A Rule declares the facts it needs; the engine computes them,
// records a gap with a reason for every one that cannot be had, and calls the
// rule only when it can be answered. Panics of a fact or a rule stay inside
// it. The packages below hold the facts, one kind of evidence each; they must
// not know any rule or report format.
package analyze
