// Package sarif writes a report as SARIF 2.1.0, for code-scanning pages and
// upgrade gates.
//
// Rule ids and the findings' ids stay the same over runs, so a page can tell
// new from known. A place in a file is a physical location with a path inside
// its input; an etcd key is no file and becomes a logical location. Questions
// without an answer are notifications: a gate sees that they were asked.
package sarif

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"coldplane/report"
	"coldplane/report/jsonfmt"
	"coldplane/report/words"
)

const (
	schema  = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	maxText = 1000 // runes
)

// Write writes the report.
func Write(w io.Writer, r *report.Report, o report.Options) error {
	say := words.For(o.Lang)
	rules, index := descriptors(r, o, say)
	out := run{
		Tool:       tool{driver{Name: "coldplane", Version: visible(r.Tool.Version), Rules: rules, Notifications: notices()}},
		Results:    []result{},
		ColumnKind: "unicodeCodePoints",
		Artifacts:  artifacts(r),
		Properties: map[string]any{
			"verdict": visible(r.Verdict.State), "summary": visible(r.Verdict.Summary),
			"control": visible(r.Verdict.Control), "userPlane": visible(r.Verdict.UserPlane),
		},
	}
	for i := range r.Findings {
		out.Results = append(out.Results, toResult(&r.Findings[i], index))
	}
	for i := range r.Suppressed {
		f := &r.Suppressed[i]
		x := toResult(f, index)
		s := suppression{Kind: "external", Status: "accepted"}
		if f.Waiver != nil {
			s.Justification = visible(f.Waiver.Reason)
		}
		x.Suppressions = []suppression{s}
		out.Results = append(out.Results, x)
	}
	out.Invocations = []invocation{{Successful: true, Notifications: notifications(r, index)}}
	b, err := json.MarshalIndent(log{Schema: schema, Version: "2.1.0", Runs: []run{out}}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(jsonfmt.Escape(b), '\n'))
	return err
}

func visible(s string) string { return report.Visible(s, maxText) }

// text is a message, which SARIF does not allow to be empty.
func text(s string) message {
	if s = visible(s); s == "" {
		s = "-"
	}
	return message{s}
}

func textp(s string) *message { m := text(s); return &m }

func notices() []descriptor {
	return []descriptor{
		{ID: "unanswered", ShortDescription: textp("A question could not be answered from the evidence")},
		{ID: "defect", ShortDescription: textp("A rule failed; this is a defect of coldplane")},
		{ID: "input", ShortDescription: textp("An input is damaged, incomplete or of no use")},
	}
}

// descriptors lists every rule that was asked or has a finding, by id.
func descriptors(r *report.Report, o report.Options, say *words.Words) ([]descriptor, map[string]int) {
	found := map[string]*report.Finding{}
	ids := map[string]bool{}
	for _, fs := range [][]report.Finding{r.Findings, r.Suppressed} {
		for i := range fs {
			ids[fs[i].Rule] = true
			if found[fs[i].Rule] == nil {
				found[fs[i].Rule] = &fs[i]
			}
		}
	}
	for _, x := range r.Results {
		ids[x.Rule] = true
	}
	var sorted []string
	for id := range ids {
		sorted = append(sorted, id)
	}
	slices.Sort(sorted)
	index := map[string]int{}
	out := []descriptor{}
	for i, id := range sorted {
		index[id] = i
		d := descriptor{ID: visible(id)}
		if d.ID == "" {
			d.ID = "-"
		}
		if doc, ok := o.Rule(id); ok {
			t, _ := say.Rule(id, doc.Title, doc.Why, doc.Fix)
			d.Name, d.ShortDescription, d.FullDescription = doc.Name, textp(t.Title), textp(t.Why)
			d.Help = &message{t.Why + "\n\n" + say.T("What to do:") + " " + t.Fix}
			if len(doc.Links) > 0 {
				d.HelpURI = doc.Links[0]
			}
			if len(doc.Severities) > 0 {
				d.Configuration = &configuration{level(doc.Severities[0])}
				d.Properties = map[string]any{"security-severity": score(doc.Severities[0]), "tags": []string{family(id)}}
			}
		} else if f := found[id]; f != nil {
			d.Name, d.ShortDescription = visible(f.Name), textp(f.Title)
		}
		out = append(out, d)
	}
	return out, index
}

func family(id string) string { return id[:min(3, len(id))] }

func level(s report.Severity) string {
	switch s {
	case report.Critical, report.High:
		return "error"
	case report.Medium:
		return "warning"
	}
	return "note"
}

// score is what code-scanning pages sort by: over 9 is critical, 7 high,
// 4 medium.
func score(s report.Severity) string {
	switch s {
	case report.Critical:
		return "9.5"
	case report.High:
		return "8.0"
	case report.Medium:
		return "5.5"
	case report.Low:
		return "3.0"
	}
	return "0.0"
}

func toResult(f *report.Finding, index map[string]int) result {
	i := index[f.Rule]
	x := result{
		RuleID: visible(f.Rule), RuleIndex: &i, Kind: "fail", Level: level(f.Severity), Message: text(f.Message),
		PartialFingerprints: map[string]string{"coldplane/v1": visible(f.ID)},
		Properties: map[string]any{
			"severity": visible(string(f.Severity)), "confidence": visible(string(f.Confidence)), "subject": visible(f.Subject),
		},
	}
	if x.RuleID == "" {
		x.RuleID = "-"
	}
	if f.Node != "" {
		x.Properties["node"] = visible(f.Node)
	}
	if f.Severity == report.Info {
		x.Kind, x.Level = "informational", "none"
	}
	var fix []string
	for n, s := range f.Fix {
		t := fmt.Sprintf("%d. %s", n+1, visible(s.Text))
		if s.Command != "" {
			t += "\n   $ " + visible(s.Command)
		}
		fix = append(fix, t)
	}
	if len(fix) > 0 {
		x.Properties["fix"] = strings.Join(fix, "\n")
	}
	for n, e := range f.Evidence {
		l := place(e)
		if n == 0 {
			x.Locations = []location{l}
			continue
		}
		id := n
		l.ID, l.Message = &id, textp(e.Role+": "+e.Excerpt)
		x.RelatedLocations = append(x.RelatedLocations, l)
	}
	return x
}

// place turns evidence into a location.
func place(e report.Evidence) location {
	l := location{Physical: &physical{Artifact: artifactLocation{URI: uri(e)}}}
	if e.Line > 0 || e.Offset > 0 {
		l.Physical.Region = &region{StartLine: e.Line}
		if e.Line <= 0 {
			l.Physical.Region.ByteOffset = &e.Offset
		} else if e.Excerpt != "" {
			l.Physical.Region.Snippet = textp(e.Excerpt)
		}
	}
	if e.Key != "" {
		name := visible(e.Key)
		if e.Revision > 0 {
			name += fmt.Sprintf("@%d", e.Revision)
		}
		l.Logical = append(l.Logical, logicalLocation{Name: visible(path.Base(e.Key)), FullyQualifiedName: name, Kind: "object"})
	}
	if e.Pointer != "" {
		l.Logical = append(l.Logical, logicalLocation{FullyQualifiedName: visible(e.Pointer), Kind: "member"})
	}
	return l
}

// uri is a relative reference: the input's ordinal id, then the path inside
// it. Nothing in a hostile path can climb out or name a scheme.
func uri(e report.Evidence) string {
	parts := []string{}
	for p := range strings.SplitSeq(e.Input+"/"+e.Path, "/") {
		if p != "" && p != "." && p != ".." {
			parts = append(parts, p)
		}
	}
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(report.Visible(p, 255)), ":", "%3A")
	}
	if len(parts) == 0 {
		return "evidence"
	}
	return strings.Join(parts, "/")
}

// artifacts are the inputs with their digests.
func artifacts(r *report.Report) []artifact {
	var out []artifact
	for _, in := range r.Inputs {
		a := artifact{Location: &artifactLocation{URI: uri(report.Evidence{Input: in.ID})}, Description: textp(in.Path + ": " + in.Format + ", " + in.State), Roles: []string{"analysisTarget"}}
		if in.SHA256 != "" {
			a.Hashes = map[string]string{"sha-256": visible(in.SHA256)}
		}
		out = append(out, a)
	}
	return out
}

func notifications(r *report.Report, index map[string]int) []notification {
	var out []notification
	for _, in := range r.Inputs {
		if in.State != "read" && in.State != "intact" {
			out = append(out, notification{Descriptor: &reference{"input"}, Level: "warning", Message: text(in.Path + ": " + in.State + " " + in.Detail)})
		}
		for _, x := range in.Refused {
			out = append(out, notification{Descriptor: &reference{"input"}, Level: "warning", Message: text(in.Path + ": refused " + x.Name + ": " + x.Why)})
		}
	}
	for _, x := range r.Results {
		ref := &reference{visible(x.Rule)}
		switch x.Outcome {
		case report.Unknown:
			for _, g := range x.Gaps {
				m := fmt.Sprintf("%s for %s: %s is %s", x.Rule, x.Subject, g.Evidence, g.Reason)
				if g.Detail != "" {
					m += ": " + g.Detail
				}
				out = append(out, notification{Descriptor: &reference{"unanswered"}, Rule: ref, Level: "note", Message: text(m)})
			}
		case report.Errored:
			out = append(out, notification{Descriptor: &reference{"defect"}, Rule: ref, Level: "error", Message: text(x.Rule + " for " + x.Subject + ": " + x.Detail)})
		}
	}
	return out
}
