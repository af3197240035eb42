// Package rules is the catalogue: one package per family, one file per rule,
// its test script beside it. Evaluate asks all of them over a set and settles
// the report. A new rule is one file in its family's folder; a new family is
// one line in All.
package rules
