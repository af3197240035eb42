package certtable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"sigs.k8s.io/yaml"

	"coldplane/report"
	"coldplane/report/certtable"
	"coldplane/report/reporttest"
)

func table(certs ...report.Certificate) *certtable.Table {
	return certtable.New(&report.Report{Facts: map[string]any{report.FactCertificates: certs}})
}

func cert(name string, asOf time.Time, from, days int) report.Certificate {
	left := days
	return report.Certificate{Node: "cp1", Path: name, Origin: "/" + name, NotBefore: asOf.AddDate(0, 0, from), NotAfter: asOf.AddDate(0, 0, days), DaysLeft: &left, AsOf: &asOf, Chain: report.Good, KeyMatch: report.Good}
}

var asOf = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// Every format must take the empty table, the sample and hostile strings, and
// let no control character, live markup or formula through.
func TestFormats(t *testing.T) {
	for name, r := range map[string]*report.Report{"empty": reporttest.Empty(), "sample": reporttest.Sample(), "hostile": reporttest.Hostile(), "zero": {}} {
		for format, write := range certtable.Formats() {
			var a, b bytes.Buffer
			if err := write(&a, certtable.New(r), report.Options{}); err != nil {
				t.Errorf("%s %s: %v", name, format, err)
			}
			if err := write(&b, certtable.New(r), report.Options{}); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Errorf("%s %s: not the same twice", name, format)
			}
			for _, r := range a.String() {
				if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) && !(r == '\r' && format == "csv") {
					t.Errorf("%s %s: raw %U", name, format, r)
					break
				}
			}
			low := strings.ToLower(a.String())
			if format == "html" && (strings.Contains(low, "<script") || strings.Contains(low, "<img") || strings.Contains(low, "onerror=\"")) {
				t.Errorf("%s: live markup", name)
			}
			switch format {
			case "json":
				if !json.Valid(a.Bytes()) {
					t.Errorf("%s: invalid JSON", name)
				}
			case "yaml":
				var x any
				if err := yaml.Unmarshal(a.Bytes(), &x); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := write(broken{}, certtable.New(r), report.Options{}); err == nil {
				t.Errorf("%s %s: a write error is lost", name, format)
			}
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestText(t *testing.T) {
	bad := cert("e.crt", asOf, -10, 300)
	bad.Chain, bad.ChainWhy, bad.UsedBy = report.Bad, "not accepted by etcd", []string{"etcd --cert-file=/e.crt (etcd.yaml:3)", "x"}
	tab := table(cert("b.crt", asOf, -60, 305), cert("a.crt", asOf, -400, -35), cert("c.crt", asOf, -10, 3650), cert("d.crt", asOf, 5, 370), bad,
		report.Certificate{Node: "cp1", Origin: "/f.crt", Missing: true, Chain: report.NotKnown, KeyMatch: report.NotKnown},
		report.Certificate{Node: "cp1", Origin: "/g.crt", Chain: report.Bad, KeyMatch: report.NotKnown})
	if err := tab.Sort("expires"); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := certtable.Text(&b, tab, report.Options{}); err != nil {
		t.Fatal(err)
	}
	want := `NODE  FILE    ROLE  EXPIRES            LEFT        CHAIN  KEY  VALIDITY                   USED BY
cp1   /f.crt        -                  missing     ?      ?                               -
cp1   /g.crt        -                  unreadable  BAD    ?                               -
cp1   /a.crt        2026-04-27 00:00Z  expired     ok     ok   -----------.|............  -
cp1   /e.crt        2027-03-28 00:00Z  300d        BAD    ok   ............|==========..  etcd +1
cp1   /b.crt        2027-04-02 00:00Z  305d        ok     ok   ..........--|==========..  -
cp1   /d.crt        2027-06-06 00:00Z  not yet     ok     ok   ............|===========>  -
cp1   /c.crt        2036-05-29 00:00Z  3650d       ok     ok   ............|===========>  -
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := certtable.Text(&b, tab, report.Options{Wide: true}); err != nil || !strings.Contains(b.String(), "    used by  etcd --cert-file=/e.crt (etcd.yaml:3)\n") || !strings.Contains(b.String(), "    chain    not accepted by etcd\n") {
		t.Errorf("wide:\n%s", b.String())
	}
}

func TestSort(t *testing.T) {
	tab := table(cert("b.crt", asOf, 0, 2), cert("a.crt", asOf, 0, 3), cert("c.crt", asOf, 0, 1))
	for by, want := range map[string]string{"expires": "cba", "file": "abc"} {
		if err := tab.Sort(by); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range tab.Certificates {
			got += c.Path[:1]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", by, got, want)
		}
	}
	for _, by := range certtable.Sorts() {
		if err := tab.Sort(by); err != nil {
			t.Error(err)
		}
	}
	if err := tab.Sort("colour"); err == nil {
		t.Error("an unknown order is accepted")
	}
}

// A finding belongs to the row its subject points at.
func TestFindingsOfRows(t *testing.T) {
	a, b := cert("a.crt", asOf, 0, 2), cert("b.crt", asOf, 0, 2)
	f := report.Finding{ID: "x1", Rule: "PKI102", Node: "cp1", Evidence: []report.Evidence{{Path: "a.crt", Line: 1, Role: report.RoleSubject}, {Path: "b.crt", Role: report.RoleContext}}}
	tab := certtable.New(&report.Report{Findings: []report.Finding{f}, Facts: map[string]any{report.FactCertificates: []report.Certificate{a, b}}})
	if got := tab.Certificates; len(got[0].Findings) != 1 || len(got[1].Findings) != 0 {
		t.Errorf("%v %v", got[0].Findings, got[1].Findings)
	}
}
