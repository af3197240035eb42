package walframe_test

import (
	"bytes"
	"testing"

	"coldplane/bundle/decode/walframe"
)

// FuzzWalk: whatever the bytes of one or two segments, Walk returns; it never
// reports more entries than the bytes can hold, never a place outside the
// file, and a log whose newest segment has bytes after its last record is
// never called whole.
func FuzzWalk(f *testing.F) {
	files := sample().Files()
	f.Add(files[0].Data, files[1].Data)
	f.Add(files[2].Data[:4096], []byte{})
	f.Add(make([]byte, 600), []byte{1})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		segs := []walframe.Segment{
			{Name: "0000000000000000-0000000000000000.wal", Size: int64(len(a)), R: bytes.NewReader(a)},
			{Name: "0000000000000001-0000000000000019.wal", Size: int64(len(b)), R: bytes.NewReader(b)},
		}
		l := walframe.Walk(segs)
		if l.Entries > int64(len(a)+len(b))/16 {
			t.Errorf("%d entries in %d bytes", l.Entries, len(a)+len(b))
		}
		for _, d := range l.Damage {
			if d.Offset < 0 || d.Offset > max(int64(len(a)), int64(len(b))) {
				t.Errorf("damage outside the file: %+v", d)
			}
		}
		tail := l.Segments[1]
		if l.Whole() && len(bytes.Trim(b[min(int64(len(b)), tail.Written):], "\x00")) > 0 {
			t.Error("bytes after the last record and no damage")
		}
		if l.Whole() != (l.Start == walframe.StartOpens) && l.Whole() {
			t.Errorf("whole log and start %v", l.Start)
		}
	})
}

// FuzzReadSnap: ReadSnap returns; without an error the checksum fits and the
// membership is bounded.
func FuzzReadSnap(f *testing.F) {
	f.Add(snapFile().Data)
	f.Add([]byte{8, 1, 18, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := walframe.ReadSnap("x.snap", bytes.NewReader(b), int64(len(b)))
		if err == nil && len(s.Store.Members) > len(b) {
			t.Error("more members than bytes")
		}
	})
}
