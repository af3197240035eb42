package etcdstore_test

import (
	"bytes"
	"strings"
	"testing"

	"coldplane/analyze/etcdstore"
	"coldplane/analyze/etcdstore/storetest"
)

func read(t *testing.T, spec string) *etcdstore.Store {
	t.Helper()
	data, err := storetest.Build(spec)
	if err != nil {
		t.Fatal(err)
	}
	s, err := etcdstore.Read(t.Context(), bytes.NewReader(data), int64(len(data)), etcdstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCompare: members that are at different revisions and compacted differently
// agree; one with another value, one without a record and one with a record too
// many do not, and the first revision is named.
func TestCompare(t *testing.T) {
	base := "put /registry/pods/a/p count=50 size=300\nput /registry/pods/a/p count=50 size=300\ndelete /registry/pods/a/p-00003\n"
	same := []*etcdstore.Store{read(t, base+"put /x value=1 times=20\n"), read(t, base+"compact 60\nput /x value=1 times=5\n"), read(t, base+"compact 90\nput /x value=1 times=12\n")}
	c, err := etcdstore.Compare(t.Context(), same)
	if err != nil || !c.Same || c.Rev != 107 || c.CompactRev != 90 || len(c.Differences) > 0 {
		t.Errorf("equal members: %+v, %v", c, err)
	}
	for name, other := range map[string]string{
		"values differ": strings.Replace(base, "put /registry/pods/a/p count=50 size=300\ndelete", "put /registry/pods/a/p count=30 size=300\nput /registry/pods/a/q value=other rev=82\nput /registry/pods/a/p count=19 size=300\ndelete", 1),
		"only in A":     strings.Replace(base, "delete /registry/pods/a/p-00003\n", "", 1) + "put /x value=1 rev=103\n",
	} {
		a, b := read(t, base+"put /x value=1 rev=103\n"), read(t, other+"put /x value=1 rev=103\n")
		c, err := etcdstore.Compare(t.Context(), []*etcdstore.Store{a, b})
		if err != nil || c.Same || len(c.Differences) == 0 || c.FirstRev == 0 {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}
