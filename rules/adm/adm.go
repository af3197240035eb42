// Package adm holds the rules about admission, aggregation, deletion and
// encryption at rest (family ADM).
package adm

import "coldplane/analyze"

// Rules is the family.
var Rules analyze.Catalogue
