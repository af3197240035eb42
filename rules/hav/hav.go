// Package hav holds the rules about API availability, high availability and stale status (family HAV).
package hav

import "coldplane/analyze"

// Rules is the family.
var Rules analyze.Catalogue
