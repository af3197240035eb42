package storetest

import (
	"fmt"
	"strings"
)

// Make turns every file named PATH!etcd into the database its text describes:
// the generator of rule scripts.
func Make(files map[string][]byte) error {
	for name, spec := range files {
		p, ok := strings.CutSuffix(name, "!etcd")
		if !ok {
			continue
		}
		b, err := Build(string(spec))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		delete(files, name)
		files[p] = b
	}
	return nil
}
