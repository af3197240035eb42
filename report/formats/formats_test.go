package formats_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	encsv "encoding/csv"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"coldplane/report"
	"coldplane/report/formats"
	"coldplane/report/jsonfmt"
	"coldplane/report/reporttest"
)

func reports() map[string]*report.Report {
	return map[string]*report.Report{
		"empty": reporttest.Empty(), "outcomes": reporttest.Outcomes(), "hostile": reporttest.Hostile(), "sample": reporttest.Sample(), "zero": {},
	}
}

func options() []report.Options {
	docs := []report.RuleDoc{{ID: "DIR102", Name: "etcd-data-dir", Title: "What rule DIR102 is about", Why: "Because.", Fix: "Do it.", Severities: []report.Severity{report.Critical}}}
	return []report.Options{{}, {Width: 80}, {Wide: true, Width: 200, Rules: docs}, {Lang: "ko", Rules: docs}}
}

// TestEveryFormat renders every report in every format and language. Whatever
// the evidence holds, nothing comes out that acts on a terminal or that a CI
// system takes for a command, the same report gives the same bytes, and the
// machine forms can be read back.
func TestEveryFormat(t *testing.T) {
	for name, render := range formats.All() {
		for rname, r := range reports() {
			for _, o := range options() {
				var b bytes.Buffer
				if err := render(&b, r, o); err != nil {
					t.Errorf("%s of %s: %v", name, rname, err)
					continue
				}
				if b.Len() == 0 && !strings.HasPrefix(name, "csv") {
					t.Errorf("%s of %s: nothing written", name, rname)
				}
				check(t, name+" of "+rname, name, b.String())
				var again bytes.Buffer
				if err := render(&again, r, o); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
					t.Errorf("%s of %s: a second run differs (%v)", name, rname, err)
				}
			}
		}
	}
}

func check(t *testing.T, what, format, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Errorf("%s: invalid UTF-8", what)
	}
	for i, r := range out {
		if r >= ' ' && r < 0x7f || r >= '가' && r <= '힣' || r == '\n' || r == '\r' && strings.HasPrefix(format, "csv") && strings.HasPrefix(out[i:], "\r\n") {
			continue
		}
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) {
			t.Errorf("%s: raw %U in %q", what, r, out[max(0, i-40):min(len(out), i+40)])
			break
		}
	}
	for l := range strings.Lines(out) {
		trimmed := strings.TrimSpace(l)
		if strings.HasPrefix(trimmed, "::") && strings.Contains(trimmed[2:], "::") || strings.Contains(l, "##vso[") || strings.Contains(l, "##[") {
			t.Errorf("%s: a CI system would obey %q", what, l)
			break
		}
	}
	switch {
	case format == "json" || format == "sarif":
		if !json.Valid([]byte(out)) {
			t.Errorf("%s: no valid JSON", what)
		}
	case format == "junit":
		if err := xml.Unmarshal([]byte(out), new(any)); err != nil && !errors.Is(err, io.EOF) {
			dec := xml.NewDecoder(strings.NewReader(out))
			for {
				if _, err := dec.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Errorf("%s: %v", what, err)
					break
				}
			}
		}
	case strings.HasPrefix(format, "csv"):
		rows, err := encsv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for _, row := range rows {
			for _, c := range row {
				if c != "" && strings.ContainsRune("=+-@\t\r%|＝＋－＠", []rune(strings.TrimLeft(c, " "))[0]) && !isNumber(c) {
					t.Errorf("%s: a spreadsheet would compute %q", what, c)
				}
			}
		}
	}
}

func isNumber(s string) bool {
	return strings.Trim(s, "-0123456789") == "" && strings.LastIndexByte(s, '-') <= 0
}

// TestReadBack holds that JSON and YAML lose nothing.
func TestReadBack(t *testing.T) {
	for name, r := range reports() {
		if name == "zero" {
			continue
		}
		var j, y bytes.Buffer
		if err := jsonfmt.JSON(&j, r); err != nil {
			t.Fatal(err)
		}
		if err := jsonfmt.YAML(&y, r); err != nil {
			t.Fatal(err)
		}
		back, err := jsonfmt.Read(bytes.NewReader(j.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		if err := jsonfmt.JSON(&again, back); err != nil {
			t.Fatal(err)
		}
		var a, b, c any
		for doc, v := range map[*bytes.Buffer]*any{&j: &a, &again: &b} {
			if err := json.Unmarshal(doc.Bytes(), v); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("%s: JSON read back differs:\n%.2000s", name, d)
		}
		yj, err := yaml.YAMLToJSON(y.Bytes())
		if err != nil {
			t.Fatalf("%s: %v\n", name, err)
		}
		if err := json.Unmarshal(yj, &c); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, c) {
			t.Errorf("%s: YAML read back differs:\n%.2000s", name, cmp.Diff(a, c))
		}
	}
}

// TestRenderedElsewhere holds that a report read from JSON renders to the same
// bytes as the report itself.
func TestRenderedElsewhere(t *testing.T) {
	r := reporttest.Sample()
	var j bytes.Buffer
	if err := jsonfmt.JSON(&j, r); err != nil {
		t.Fatal(err)
	}
	back, err := jsonfmt.Read(&j)
	if err != nil {
		t.Fatal(err)
	}
	for name, render := range formats.All() {
		var a, b bytes.Buffer
		if err := errors.Join(render(&a, r, report.Options{}), render(&b, back, report.Options{})); err != nil {
			t.Fatal(err)
		}
		if name == "json" || name == "yaml" { // facts' fields are sorted when read back
			continue
		}
		if d := cmp.Diff(a.String(), b.String()); d != "" {
			t.Errorf("%s differs:\n%.1000s", name, d)
		}
	}
}

// broken fails after n bytes.
type broken struct{ n int }

var errBroken = errors.New("disk full")

func (b *broken) Write(p []byte) (int, error) {
	if b.n -= len(p); b.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

// TestWriteErrors holds that no format swallows a write error.
func TestWriteErrors(t *testing.T) {
	r := reporttest.Sample()
	for name, render := range formats.All() {
		for _, n := range []int{0, 100} {
			if err := render(&broken{n}, r, report.Options{}); !errors.Is(err, errBroken) {
				t.Errorf("%s: write error after %d bytes gave %v", name, n, err)
			}
		}
	}
}
