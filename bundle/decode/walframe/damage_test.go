package walframe_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"coldplane/bundle/decode/walframe"
	"coldplane/bundle/decode/walframe/walframetest"
)

// damageClasses are ways in which a log loses or changes bytes. Each gets the
// files of a whole log and returns what is left of them.
var damageClasses = []struct {
	name  string
	apply func(r *rand.Rand, f []walframetest.File, written int) []walframetest.File
}{
	{"truncated", func(r *rand.Rand, f []walframetest.File, written int) []walframetest.File {
		i := r.IntN(len(f))
		f[i].Data = f[i].Data[:r.IntN(extent(f, i, written))]
		return f
	}},
	{"zeroed-sector", func(r *rand.Rand, f []walframetest.File, written int) []walframetest.File {
		i := r.IntN(len(f))
		at := r.IntN(extent(f, i, written)) / 512 * 512
		clear(f[i].Data[at:min(at+512, len(f[i].Data))])
		return f
	}},
	{"bit-flip", func(r *rand.Rand, f []walframetest.File, written int) []walframetest.File {
		i := r.IntN(len(f))
		f[i].Data[r.IntN(extent(f, i, written))] ^= 1 << r.IntN(8)
		return f
	}},
	{"garbage-run", func(r *rand.Rand, f []walframetest.File, written int) []walframetest.File {
		i := r.IntN(len(f))
		at := r.IntN(extent(f, i, written))
		for j := at; j < min(at+1+r.IntN(600), len(f[i].Data)); j++ {
			f[i].Data[j] = byte(r.Uint32())
		}
		return f
	}},
	{"forged-length", func(r *rand.Rand, f []walframetest.File, written int) []walframetest.File {
		i := r.IntN(len(f))
		offs := frameOffsets(f[i].Data)
		at := offs[r.IntN(len(offs))]
		v := r.Uint64()
		switch r.IntN(4) {
		case 0:
			v = uint64(r.IntN(4096))
		case 1:
			v = 0
		case 2:
			n := r.IntN(4096)
			v = uint64(n)
			if p := (8 - n%8) % 8; p > 0 {
				v |= uint64(0x80|p) << 56
			}
		}
		binary.LittleEndian.PutUint64(f[i].Data[at:], v)
		return f
	}},
	{"records-cut-out", func(r *rand.Rand, f []walframetest.File, written int) []walframetest.File {
		i := r.IntN(len(f))
		offs := frameOffsets(f[i].Data)
		a := r.IntN(len(offs) - 1)
		b := a + 1 + r.IntN(len(offs)-1-a)
		f[i].Data = append(append([]byte(nil), f[i].Data[:offs[a]]...), f[i].Data[offs[b]:]...)
		return f
	}},
	{"records-swapped", func(r *rand.Rand, f []walframetest.File, written int) []walframetest.File {
		i := r.IntN(len(f))
		offs := frameOffsets(f[i].Data)
		a := r.IntN(len(offs) - 2)
		x, y, z := offs[a], offs[a+1], offs[a+2]
		d := append([]byte(nil), f[i].Data[:x]...)
		d = append(append(d, f[i].Data[y:z]...), f[i].Data[x:y]...)
		f[i].Data = append(d, f[i].Data[z:]...)
		return f
	}},
	{"segment-lost-or-swapped", func(r *rand.Rand, f []walframetest.File, written int) []walframetest.File {
		switch i := r.IntN(len(f) - 1); r.IntN(3) {
		case 0:
			if i == 0 {
				i = 1
			}
			return append(append([]walframetest.File(nil), f[:i]...), f[i+1:]...)
		case 1:
			f[i].Data, f[i+1].Data = f[i+1].Data, f[i].Data
			return f
		default:
			f[i+1].Data = append([]byte(nil), f[i].Data...)
			return f
		}
	}},
}

// extent is how much of a file holds records.
func extent(f []walframetest.File, i, written int) int {
	if i == len(f)-1 {
		return min(written, len(f[i].Data))
	}
	return len(f[i].Data)
}

// frameOffsets lists the places of the records of an undamaged segment.
func frameOffsets(b []byte) (out []int) {
	for off := 0; off+8 <= len(b); {
		l := binary.LittleEndian.Uint64(b[off:])
		n := int(l & (1<<56 - 1))
		if n == 0 {
			break
		}
		out = append(out, off)
		off += 8 + (n+7)/8*8
	}
	return out
}

// content is what a log says; when it differs from that of the whole log,
// something was lost.
func content(l *walframe.Log) string {
	return fmt.Sprint(l.Identity, l.State, l.FirstIndex, l.LastIndex, l.LastTerm, l.Entries, l.Replaced, l.Kinds, l.Prefixes,
		l.ConfChanges, l.Alarms, l.Attrs, l.Versions, l.Terms, l.Compactions)
}

// earlier tells whether the damaged files are byte for byte what the log was at
// an earlier time: whole records, and nothing but preallocated zeros behind
// them. No reader of the log alone can tell such a file from a younger log.
func earlier(whole, damaged []walframetest.File) bool {
	n := len(damaged)
	if n == 0 || n > len(whole) {
		return false
	}
	for i := range n - 1 {
		if whole[i].Name != damaged[i].Name || !bytes.Equal(whole[i].Data, damaged[i].Data) {
			return false
		}
	}
	w, d := whole[n-1], damaged[n-1]
	if w.Name != d.Name || len(w.Data) != len(d.Data) {
		return false
	}
	for _, off := range frameOffsets(w.Data) {
		if bytes.Equal(w.Data[:off], d.Data[:off]) && len(bytes.Trim(d.Data[off:], "\x00")) == 0 {
			return true
		}
	}
	return false
}

func clone(f []walframetest.File) []walframetest.File {
	out := make([]walframetest.File, len(f))
	for i := range f {
		out[i] = walframetest.File{Name: f[i].Name, Data: append([]byte(nil), f[i].Data...)}
	}
	return out
}

// TestDamageCorpus damages logs in eight ways. COLDPLANE_DAMAGE is the
// number of logs per class, or full; CI runs a few.
func TestDamageCorpus(t *testing.T) {
	perClass := 60
	switch s := os.Getenv("COLDPLANE_DAMAGE"); s {
	case "":
	case "full":
		perClass = 1500 // 12,000 logs
	default:
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		perClass = n
	}
	w := sample()
	whole, written := w.Files(), w.Written()
	want := content(walframe.Walk(segments(whole)))
	total := 0
	for c, class := range damageClasses {
		r := rand.New(rand.NewPCG(2026, uint64(c)))
		flagged, same, younger := 0, 0, 0
		for i := range perClass {
			files := class.apply(r, clone(whole), written)
			l := walframe.Walk(segments(files))
			total++
			changed := content(l) != want
			switch {
			case !l.Whole() || l.Trimmed:
				flagged++
			case !changed:
				same++
			case earlier(whole, files):
				younger++
			default:
				t.Errorf("%s %d: entries are missing or changed and nothing says so:\n%s", class.name, i, cmp.Diff(want, content(l)))
			}
			if l.Whole() && l.Start != walframe.StartOpens && len(files) > 0 {
				t.Errorf("%s %d: whole, yet start is %v", class.name, i, l.Start)
			}
		}
		t.Logf("%-24s %5d logs: %5d flagged, %d unchanged, %d equal to the log at an earlier time, 0 silently short", class.name, perClass, flagged, same, younger)
	}
	t.Logf("%d damaged logs", total)
}
