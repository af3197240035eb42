// Package bun holds the rules about the evidence itself (family BUN).
package bun

import "coldplane/analyze"

// Rules is the family.
var Rules analyze.Catalogue
