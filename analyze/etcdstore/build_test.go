package etcdstore_test

import (
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/etcdstore/storetest"
)

// storetest imports this package's test helper only from outside.
var _ = func() bool { etcdstore.BuildSpec = storetest.Build; return true }()
