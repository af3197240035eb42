package walframe_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"coldplane/bundle/decode/walframe"
	"coldplane/bundle/decode/walframe/walframetest"
)

var snapMembers = []walframe.MemberInfo{
	{ID: 0xa, Name: "cp1", PeerURLs: []string{"https://192.0.2.11:2380"}, ClientURLs: []string{"https://192.0.2.11:2379"}},
	{ID: 0xb, PeerURLs: []string{"https://192.0.2.12:2380"}, IsLearner: true},
}

func snapFile() walframetest.File {
	return walframetest.Snap(3, 120, snapMembers, []uint64{0xdead}, "3.5.0")
}

func readSnap(f walframetest.File) (walframe.SnapFile, error) {
	return walframe.ReadSnap(f.Name, bytes.NewReader(f.Data), int64(len(f.Data)))
}

func TestReadSnap(t *testing.T) {
	s, err := readSnap(snapFile())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(snapMembers, s.Store.Members); d != "" {
		t.Errorf("members (-want +got):\n%s", d)
	}
	got := fmt.Sprintf("%d %d %v %v %s %d %v", s.Index, s.Term, s.ConfState, s.Store.Removed, s.Store.Version, s.Store.UserKeys, s.NameDiffers)
	if want := "120 3 {[10] [11] [] [] false} [57005] 3.5.0 0 false"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReadSnapUserKeys(t *testing.T) {
	store := `{"Root":{"Path":"/","Value":"","Children":{"0":{"Path":"/0","Value":"","Children":{}},` +
		`"1":{"Path":"/1","Value":"","Children":{"app":{"Path":"/1/app","Value":"s3cret","Children":null}}},` +
		`"2":{"Path":"/2","Value":"","Children":{"roles":{"Path":"/2/roles","Value":"","Children":{}}}}}},"WatcherHub":{"x":[1,[2,{}]]}}`
	s, err := readSnap(walframetest.SnapOf(1, 2, []uint64{1}, nil, []byte(store)))
	if err != nil || s.Store.UserKeys != 1 {
		t.Errorf("v2 keys: %d, %v", s.Store.UserKeys, err)
	}
	if strings.Contains(fmt.Sprintf("%+v", s), "s3cret") {
		t.Error("a v2 value was kept")
	}
}

func TestReadSnapDamage(t *testing.T) {
	good := snapFile()
	flip := append([]byte(nil), good.Data...)
	flip[len(flip)/2] ^= 4
	deep := walframetest.SnapOf(1, 2, nil, nil, []byte(strings.Repeat(`{"Root":`, 1)+strings.Repeat("[", 100000)))
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"empty", nil, walframe.ErrSnapEmpty},
		{"cut", good.Data[:len(good.Data)/2], walframe.ErrSnapFormat},
		{"flipped", flip, walframe.ErrSnapChecksum},
		{"zeros", make([]byte, 100), walframe.ErrSnapFormat},
		{"deep", deep.Data, walframe.ErrSnapStore},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := walframe.ReadSnap("x.snap", bytes.NewReader(tt.data), int64(len(tt.data))); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	renamed := good
	renamed.Name = "0000000000000003-0000000000000079.snap"
	if s, err := readSnap(renamed); err != nil || !s.NameDiffers {
		t.Errorf("a renamed snapshot: %v", err)
	}
}

// TestSnapDamageCorpus cuts and flips a snapshot file everywhere.
func TestSnapDamageCorpus(t *testing.T) {
	good := snapFile().Data
	want, err := readSnap(snapFile())
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := walframe.ReadSnap(want.Name, bytes.NewReader(good[:n]), int64(n)); err == nil {
			t.Fatalf("cut at %d is accepted", n)
		}
		for bit := range 8 {
			b := append([]byte(nil), good...)
			b[n] ^= 1 << bit
			got, err := walframe.ReadSnap(want.Name, bytes.NewReader(b), int64(len(b)))
			if err == nil && !cmp.Equal(want, got) {
				t.Fatalf("bit %d of byte %d changes the answer silently", bit, n)
			}
		}
	}
}
