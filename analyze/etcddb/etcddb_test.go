package etcddb

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"coldplane/analyze"
	"coldplane/bundle"
)

// database writes a small etcd database with one member.
func database(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range []string{"key", "meta", "members", "cluster"} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte("members")).Put([]byte("1f"), []byte(`{"id":31,"name":"cp1","peerURLs":["https://192.0.2.11:2380"]}`))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func files(t *testing.T, input string) DBs {
	t.Helper()
	set, err := bundle.Open(t.Context(), []string{input}, bundle.Options{SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	e := analyze.New(context.Background(), set, analyze.Options{})
	dbs, err := OnNode.Get(e.Ctx(set.Nodes[0]))
	if err != nil {
		t.Fatal(err)
	}
	return dbs
}

func TestDataDirAndSnapshots(t *testing.T) {
	root := filepath.Join(t.TempDir(), "node")
	database(t, filepath.Join(root, "var/lib/etcd/member/snap/db"))
	database(t, filepath.Join(root, "etcd/snapshot.db"))
	if err := os.WriteFile(filepath.Join(root, "etcd/empty.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dbs := files(t, root)
	if len(dbs) != 3 || dbs[0].Saved() || dbs.Live() != dbs[0] || len(dbs[0].Store.Members) != 1 {
		t.Fatalf("%d databases: %+v", len(dbs), dbs)
	}
	if empty := dbs[1]; empty.Store != nil || !empty.Damaged() {
		t.Errorf("an empty file is no database: %+v", empty)
	}
}

func TestBareDatabase(t *testing.T) {
	p := filepath.Join(t.TempDir(), "backup.db")
	database(t, p)
	dbs := files(t, p)
	if len(dbs) != 1 || !dbs[0].Saved() || dbs[0].Store == nil || dbs.Live() != nil {
		t.Errorf("a bare database: %+v", dbs)
	}
}
