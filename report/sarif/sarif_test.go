package sarif_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	gosarif "github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"coldplane/report"
	"coldplane/report/reporttest"
	"coldplane/report/sarif"
)

func write(t *testing.T, r *report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	docs := []report.RuleDoc{{ID: "DIR102", Name: "n", Title: "Title", Why: "Why.", Fix: "Fix.", Links: []string{"https://kubernetes.io/"}, Severities: []report.Severity{report.High}}}
	if err := sarif.Write(&b, r, report.Options{Rules: docs}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSchema validates what is written against the 2.1.0 schema that the
// library carries. Names it does not know are caught by the strict decoder.
func TestSchema(t *testing.T) {
	for name, r := range map[string]*report.Report{
		"empty": reporttest.Empty(), "zero": {}, "outcomes": reporttest.Outcomes(), "sample": reporttest.Sample(), "hostile": reporttest.Hostile(),
	} {
		out := write(t, r)
		dec := json.NewDecoder(bytes.NewReader(out))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&gosarif.Report{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		doc, err := gosarif.FromBytes(out)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// The library's own defaults for what we leave out do not pass.
		run := doc.Runs[0]
		run.Language, run.Tool.Driver.Language, run.NewlineSequences = "en-US", "en-US", []string{"\n"}
		if err := doc.Validate(); err != nil {
			t.Errorf("%s: %.2000s", name, err)
		}
	}
}

// TestStable holds what a code-scanning page needs to tell new from known, and
// that unanswered questions are notifications, never results.
func TestStable(t *testing.T) {
	r := reporttest.Outcomes()
	doc, err := gosarif.FromBytes(write(t, r))
	if err != nil {
		t.Fatal(err)
	}
	run := doc.Runs[0]
	if got, want := len(run.Results), len(r.Findings)+len(r.Suppressed); got != want {
		t.Errorf("%d results, want %d", got, want)
	}
	for i, f := range r.Findings {
		x := run.Results[i]
		if *x.RuleID != f.Rule || x.PartialFingerprints["coldplane/v1"] != f.ID || *run.Tool.Driver.Rules[x.RuleIndex].ID != f.Rule {
			t.Errorf("result %d: %s %v, want %s %s", i, *x.RuleID, x.PartialFingerprints, f.Rule, f.ID)
		}
	}
	var notes []string
	for _, n := range run.Invocations[0].ToolExecutionNotifications {
		notes = append(notes, *n.Descriptor.ID+" "+*n.Message.Text)
	}
	all := strings.Join(notes, "\n")
	for _, want := range []string{"unanswered QRM112 for cp1: etcd.wal is not-collected", "defect CAP114"} {
		if !strings.Contains(all, want) {
			t.Errorf("no notification %q in:\n%s", want, all)
		}
	}
	last := run.Results[len(run.Results)-1]
	if len(last.Suppressions) != 1 || *last.Suppressions[0].Justification == "" {
		t.Errorf("the waived finding is not suppressed: %+v", last)
	}
}

// TestPlaces holds that a path cannot leave the base of the run and that an
// etcd key is a logical location.
func TestPlaces(t *testing.T) {
	doc, err := gosarif.FromBytes(write(t, reporttest.Hostile()))
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	for _, x := range doc.Runs[0].Results {
		for _, l := range append(x.Locations, x.RelatedLocations...) {
			raw := *l.PhysicalLocation.ArtifactLocation.URI
			u, err := url.Parse(raw)
			if err != nil || u.IsAbs() || u.Host != "" || strings.HasPrefix(raw, "/") || strings.Contains("/"+u.Path+"/", "/../") {
				t.Errorf("uri %q leaves the run's base (%v)", raw, err)
			}
			for _, ll := range l.LogicalLocations {
				if ll.Kind != nil && *ll.Kind == "object" {
					keys++
				}
			}
		}
	}
	if keys == 0 {
		t.Error("no etcd key became a logical location")
	}
}
