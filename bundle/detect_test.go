package bundle

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"testing"
)

// TestSniffArchiveThatBeginsWithADatabase: the meta page of a database at the
// front of an archive lies where that of a bare database with other page sizes
// would.
func TestSniffArchiveThatBeginsWithADatabase(t *testing.T) {
	db := make([]byte, 8192)
	for _, off := range []int{16, 4096 + 16} {
		binary.LittleEndian.PutUint32(db[off:], boltMagic)
	}
	if got := sniffHead(db); got != fileBolt {
		t.Errorf("a database is taken for %v", got)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{{Name: "etcd/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "etcd/snapshot.db", Size: int64(len(db)), Mode: 0o600}} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write(db); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := sniffHead(b.Bytes()); got != fileTar {
		t.Errorf("an archive is taken for %v", got)
	}
}
