package etcdstore_test

import (
	"os"
	"strconv"
	"testing"

	"coldplane/analyze/etcdstore"
)

// TestDamage reads damaged copies of a file, over the classes of damage that disks,
// memory, copies and forgers make. COLDPLANE_DAMAGE sets how many copies of each
// class; the default is a fast subset.
func TestDamage(t *testing.T) {
	per := 25
	if v := os.Getenv("COLDPLANE_DAMAGE"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		per = n
	}
	etcdstore.RunDamage(t, per)
}
