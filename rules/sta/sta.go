// Package sta holds the rules about static pods, manifests and flags (family STA).
package sta

import "coldplane/analyze"

// Rules is the family.
var Rules analyze.Catalogue
