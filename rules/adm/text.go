package adm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// list joins names, the first n of them.
func list(names []string, n int) string {
	if len(names) > n {
		return strings.Join(names[:n], ", ") + fmt.Sprintf(" and %d more", len(names)-n)
	}
	return strings.Join(names, ", ")
}
