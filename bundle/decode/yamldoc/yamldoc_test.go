package yamldoc

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestLinesAndDuplicates(t *testing.T) {
	f, err := Parse([]byte("# head\na:\n  b: 1\n  c: [x, y]\na:\n  d: 2\n---\nkind: Pod\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Docs) != 2 || len(f.Duplicates) != 1 || f.Duplicates[0].Line != 5 || f.Duplicates[0].First != 2 {
		t.Fatalf("%d docs, duplicates %v", len(f.Docs), f.Duplicates)
	}
	var m map[string]map[string]int
	if err := f.Docs[0].Decode(&m); err != nil || m["a"]["d"] != 2 || m["a"]["b"] != 0 {
		t.Errorf("%v, %v: the last duplicate must win", m, err)
	}
	if got := f.Docs[0].Line("/a/d"); got != 6 {
		t.Errorf("line of /a/d = %d", got)
	}
	if got := f.Docs[0].Line("/a/nothing"); got != 6 {
		t.Errorf("line of a missing value = %d, want its parent's", got)
	}
	var k struct {
		Kind string `json:"kind"`
	}
	if err := f.Docs[1].Decode(&k); err != nil || k.Kind != "Pod" {
		t.Errorf("second document: %v, %v", k, err)
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		class Class
		line  int
	}{
		"tab":       {"a:\n  b: 1\n\tc: 2\n", Syntax, 3},
		"utf8":      {"a: 1\nb: \xff\n", Syntax, 2},
		"unclosed":  {"a: 1\nb: \"x\nc: 2\n", Syntax, 0},
		"alias":     {"a: &x 1\nb: *x\n", Refused, 1},
		"merge":     {"a: 1\n<<: {b: 2}\n", Refused, 2},
		"deep":      {strings.Repeat("[", 200) + strings.Repeat("]", 200), Refused, 1},
		"documents": {strings.Repeat("---\na: 1\n", MaxDocs+1), Refused, 0},
		"size":      {strings.Repeat("x", MaxBytes+1), Refused, 0},
	} {
		_, err := Parse([]byte(c.in))
		var e *Error
		if !errors.As(err, &e) || e.Class != c.class {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.line > 0 && e.Line != c.line {
			t.Errorf("%s: line %d, want %d (%v)", name, e.Line, c.line, err)
		}
	}
	f, err := Parse([]byte("spec:\n  containers:\n  - name: a\n    ports: wrong\n"))
	if err != nil {
		t.Fatal(err)
	}
	var pod struct {
		Spec struct {
			Containers []struct {
				Ports []int `json:"ports"`
			} `json:"containers"`
		} `json:"spec"`
	}
	var e *Error
	if err := f.Docs[0].Decode(&pod); !errors.As(err, &e) || e.Class != Shape || e.Line != 4 {
		t.Errorf("wrong type: %v", err)
	}
}

// FuzzParse: any bytes give documents or an *Error, without a panic, in
// bounded time; every document can be asked for any pointer.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: 1\n", "---\n---\n", "a: &x [*x]\n", "\t", "- - - {a: [", "? a\n: b\n", "%YAML 1.1\n---\na: 0x1\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		start := time.Now()
		file, err := Parse(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T", err)
			}
		}
		for _, d := range file.Docs {
			d.Line("/a/0/b")
			var v any
			_ = d.Decode(&v)
		}
		if time.Since(start) > 5*time.Second {
			t.Fatalf("%d bytes took %v", len(b), time.Since(start))
		}
	})
}
