package logline

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestExport(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("__CURSOR=a\n__REALTIME_TIMESTAMP=1796054029263160\n__MONOTONIC_TIMESTAMP=77\n_BOOT_ID=beef\nSYSLOG_IDENTIFIER=kubelet\nMESSAGE=one\n\n")
	b.WriteString("__REALTIME_TIMESTAMP=1796054029263161\n_TRANSPORT=kernel\nMESSAGE\n")
	long := "two\nlines " + strings.Repeat("x", 3*MaxField)
	binary.Write(&b, binary.LittleEndian, uint64(len(long)))
	b.WriteString(long + "\n\n")
	b.WriteString("__REALTIME_TIMESTAMP=1796054029263162\nMESSAGE=cut off")
	r := NewExportReader(&b)

	rec, err := r.Next()
	if err != nil || string(rec.Ident) != "kubelet" || string(rec.Message) != "one" || rec.Boot != "beef" || rec.Monotonic != 77 || rec.Line != 1 || rec.Offset != 0 {
		t.Errorf("first: %+v %v", rec, err)
	}
	rec, err = r.Next()
	if err != nil || string(rec.Ident) != "kernel" || len(rec.Message) != MaxField || rec.Cut != int64(len(long)-MaxField) || rec.Line != 8 {
		t.Errorf("second: ident %q, %d bytes, cut %d, line %d, %v", rec.Ident, len(rec.Message), rec.Cut, rec.Line, err)
	}
	rec, err = r.Next()
	if err != nil || string(rec.Message) != "cut off" || !rec.Stamp.Zoned {
		t.Errorf("third: %+v %v", rec, err)
	}
	if _, err = r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("end: %v", err)
	}
}

// FuzzExport: any stream ends after finitely many entries, none of which holds
// more than MaxField bytes of message.
func FuzzExport(f *testing.F) {
	f.Add([]byte("A=b\nMESSAGE=x\n\nB=c\n"))
	f.Add([]byte("MESSAGE\n\x03\x00\x00\x00\x00\x00\x00\x00a\nb\n\n"))
	f.Add([]byte("MESSAGE\n\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewExportReader(bytes.NewReader(b))
		for n := 0; ; n++ {
			rec, err := r.Next()
			if err != nil {
				return
			}
			if len(rec.Message) > MaxField+64 || n > len(b) {
				t.Fatalf("%d bytes of message, %d entries", len(rec.Message), n)
			}
		}
	})
}
