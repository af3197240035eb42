package etcdstore

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// realDir holds evidence taken from real clusters beside the repository.
const realDir = "../../../shared/real"

// members returns the files of a .tar.zst whose name is accepted.
func members(t *testing.T, path string, accept func(name string) bool) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if name := strings.TrimPrefix(h.Name, "./"); h.Typeflag == tar.TypeReg && accept(name) {
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = b
		}
	}
}

// truth is what an independent program counted in a snapshot.
type truth struct {
	Alarms int `json:"alarms"`
	Types  []struct {
		Type                                               string
		LiveKeys, LiveBytes, AllRevs, AllBytes, Tombstones int64
	} `json:"by_type_top14"`
	ConsistentIndex uint64            `json:"consistent_index"`
	FileBytes       int64             `json:"file_bytes"`
	FreePages       uint64            `json:"free_pages"`
	LiveKeys        int64             `json:"live_keys"`
	MaxRevision     int64             `json:"max_revision"`
	Members         map[string]string `json:"members"`
	PageSize        int64             `json:"page_size"`
	RevisionRecords int64             `json:"revision_records"`
	StorageVersion  string            `json:"storage_version"`
	Finished        *int64            `json:"finished_compact"`
	Scheduled       *int64            `json:"scheduled_compact"`
}

// TestTruth compares every figure of the reference counts beside the real cases.
func TestTruth(t *testing.T) {
	list, _ := filepath.Glob(filepath.Join(realDir, "*.truth.json"))
	if len(list) == 0 {
		t.Skip("no real cases here")
	}
	done := 0
	for _, path := range list {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(b, &all); err != nil {
			t.Fatal(err)
		}
		for name, raw := range all {
			snap, ok := strings.CutSuffix(name, ".truth.json")
			if !ok {
				continue
			}
			var want truth
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			done++
			t.Run(strings.TrimSuffix(filepath.Base(path), ".truth.json")+"/"+snap, func(t *testing.T) {
				files := members(t, strings.TrimSuffix(path, ".truth.json")+".tar.zst", func(n string) bool { return strings.HasSuffix(n, snap+".db") })
				if len(files) != 1 {
					t.Fatalf("%d files for %s", len(files), snap)
				}
				for _, data := range files {
					compareTruth(t, data, want)
				}
			})
		}
	}
	if done < 10 {
		t.Errorf("only %d reference counts found", done)
	}
}

func compareTruth(t *testing.T, data []byte, want truth) {
	s, err := Read(t.Context(), bytes.NewReader(data), int64(len(data)), Options{Trailer: true})
	if err != nil {
		t.Fatal(err)
	}
	eq := func(what string, got, want any) {
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	eq("trailer", s.Trailer, TrailerOK)
	eq("damage", len(s.Damage), 0)
	eq("missing revisions", s.MissingTotal, int64(0))
	eq("alarms", len(s.Alarms), want.Alarms)
	eq("consistent index", s.Meta.ConsistentIndex, want.ConsistentIndex)
	eq("file", s.Pages.DBSize, want.FileBytes)
	eq("free pages", s.Pages.Free, want.FreePages)
	eq("live keys", s.Live, want.LiveKeys)
	eq("max revision", s.MaxRev, want.MaxRevision)
	eq("page size", s.Pages.PageSize, want.PageSize)
	eq("records", s.Records, want.RevisionRecords)
	eq("storage version", s.Meta.StorageVersion, want.StorageVersion)
	eq("members", len(s.Members), len(want.Members))
	if want.Finished != nil {
		eq("finished compaction", s.Finished, *want.Finished)
		eq("scheduled compaction", s.Scheduled, *want.Scheduled)
	}
	types := map[string]TypeStats{}
	for _, ty := range s.Types {
		types[ty.Type] = ty
	}
	for _, w := range want.Types {
		g := types[w.Type]
		eq(w.Type+" live", g.Live, w.LiveKeys)
		eq(w.Type+" live bytes", g.LiveRec-17*g.Live, w.LiveBytes)
		// the reference leaves tombstones out of both
		eq(w.Type+" records", g.Records-g.Tombstones, w.AllRevs)
		eq(w.Type+" bytes", g.RecBytes-17*g.Records-g.Tombstones-tombstoneBytes(s, w.Type), w.AllBytes)
		eq(w.Type+" tombstones", g.Tombstones, w.Tombstones)
	}
}

// tombstoneBytes is the size of a type's tombstone records: each holds its key.
func tombstoneBytes(s *Store, typ string) (n int64) {
	match := s.MatchType(typ, "")
	for p := range s.table.part {
		t := &s.table.part[p]
		for i := range t.n {
			if e := t.at(i); match(t.key(e)) {
				n += int64(e.tombs) * int64(2+e.keyLen)
			}
		}
	}
	return n
}
