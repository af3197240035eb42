package analyzetest

import (
	"fmt"
	"slices"
	"strings"

	"coldplane/analyze/etcdstore/storetest"
)

// Store turns files named PATH!etcd, in the language of storetest, into etcd
// database files.
func Store() Generator {
	return Generator{Kind: "etcd", Make: func(files map[string][]byte) error {
		var names []string
		for p := range files {
			if strings.HasSuffix(p, "!etcd") {
				names = append(names, p)
			}
		}
		slices.Sort(names)
		for _, p := range names {
			b, err := storetest.Build(string(files[p]))
			if err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			delete(files, p)
			files[strings.TrimSuffix(p, "!etcd")] = b
		}
		return nil
	}}
}
