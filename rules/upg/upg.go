// Package upg holds the rules asked before an upgrade (family UPG).
package upg

import "coldplane/analyze"

// Rules is the family.
var Rules analyze.Catalogue
