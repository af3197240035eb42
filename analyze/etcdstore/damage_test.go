package etcdstore_test

import (
	"os"
	"strconv"
	"testing"

	"coldplane/analyze/etcdstore"
)

// TestDamage reads damaged copies of a file, over the classes of damage that disks,
// memory, copies and forgers make. COLDPLANE_DAMAGE sets how many copies of each
// class, "full" is 300; the default is a fast subset.
func TestDamage(t *testing.T) {
	per := 25
	switch v := os.Getenv("COLDPLANE_DAMAGE"); v {
	case "":
	case "full":
		per = 300
	default:
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		per = n
	}
	etcdstore.RunDamage(t, per)
}
