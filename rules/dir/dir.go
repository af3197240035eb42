// Package dir holds the rules about etcd data directories (family DIR).
package dir

import "coldplane/analyze"

// Rules is the family.
var Rules analyze.Catalogue
