// Package qrm holds the rules about etcd membership, quorum and health (family QRM).
package qrm

import "coldplane/analyze"

// Rules is the family.
var Rules analyze.Catalogue
