package opinion

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"coldplane/analyze/etcdstore"
	"coldplane/analyze/etcdstore/storetest"
)

// TestMain lets the test binary be its own child.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == Command {
		rev, _ := strconv.ParseInt(os.Args[3], 10, 64)
		if err := Child(os.Stdout, os.Args[2], rev); err != nil {
			os.Exit(4)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestAsk(t *testing.T) {
	data, err := storetest.Build("member 1f name=cp1\nput /registry/pods/a/p count=30 size=500\n")
	if err != nil {
		t.Fatal(err)
	}
	s, err := etcdstore.Read(t.Context(), bytes.NewReader(data), int64(len(data)), etcdstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.HashKV(t.Context(), 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o, err := Ask(t.Context(), os.Args[0], dir, bytes.NewReader(data), int64(len(data)), 0)
	if err != nil || o.Bolt != "opens" || o.Etcd != "starts" || o.Hash != want.Hash {
		t.Errorf("%+v, %v; our hash %d", o, err, want.Hash)
	}
	// A damaged page kills the child, and only the child.
	bad := bytes.Clone(data)
	for i := 2; i < len(bad)/4096; i++ {
		copy(bad[i*4096:(i+1)*4096], bytes.Repeat([]byte{0xff}, 4096))
	}
	o, err = Ask(t.Context(), os.Args[0], dir, bytes.NewReader(bad), int64(len(bad)), 0)
	if err != nil || o.Etcd == "starts" || !strings.Contains(o.Bolt, "died") {
		t.Errorf("damaged: %+v, %v", o, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
