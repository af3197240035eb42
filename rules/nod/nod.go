// Package nod holds the rules about the node, its kernel and its runtime (family NOD).
package nod

import "coldplane/analyze"

// Rules is the family.
var Rules analyze.Catalogue
