// Package junit writes a report as JUnit XML: a suite per rule family, a test
// case per rule and subject, so that a CI system shows what failed and what
// was skipped and why.
//
// Failures are findings at or above medium; lower ones pass with their text in
// system-out, because most CI systems turn any failure into a red build.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"coldplane/report"
	"coldplane/report/words"
)

type suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Suites   []*suite `xml:"testsuite"`
}

type suite struct {
	Name      string  `xml:"name,attr"`
	Tests     int     `xml:"tests,attr"`
	Failures  int     `xml:"failures,attr"`
	Errors    int     `xml:"errors,attr"`
	Skipped   int     `xml:"skipped,attr"`
	Timestamp string  `xml:"timestamp,attr,omitempty"`
	Cases     []tcase `xml:"testcase"`
}

type tcase struct {
	Name    string  `xml:"name,attr"`
	Class   string  `xml:"classname,attr"`
	Failure *detail `xml:"failure,omitempty"`
	Error   *detail `xml:"error,omitempty"`
	Skipped *detail `xml:"skipped,omitempty"`
	Out     string  `xml:"system-out,omitempty"`
}

type detail struct {
	Message string `xml:"message,attr,omitempty"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

const maxText = 1000 // runes of a message

// Write writes the report.
func Write(w io.Writer, r *report.Report, o report.Options) error {
	say := words.For(o.Lang)
	all := suites{Name: "coldplane"}
	byName := map[string]*suite{}
	findings := map[string][]report.Finding{} // by rule and subject
	key := func(rule, subject string) string { return rule + "\x00" + subject }
	for _, f := range r.Findings {
		s := f.Node
		if s == "" {
			s = report.SubjectAll
		}
		findings[key(f.Rule, s)] = append(findings[key(f.Rule, s)], f)
	}
	for _, x := range r.Results {
		fam := report.Visible(x.Rule, 60)
		fam = fam[:min(3, len(fam))]
		s := byName[fam]
		if s == nil {
			s = &suite{Name: fam}
			if r.AsOf != nil {
				s.Timestamp = r.AsOf.UTC().Format("2006-01-02T15:04:05Z")
			}
			byName[fam] = s
			all.Suites = append(all.Suites, s)
		}
		title := x.Rule
		if d, ok := o.Rule(x.Rule); ok {
			t, _ := say.Rule(d.ID, d.Title, d.Why, d.Fix)
			title += " " + t.Title
		}
		c := tcase{Name: report.Visible(title, 200), Class: report.Visible("coldplane."+x.Subject, 200)}
		fs := findings[key(x.Rule, x.Subject)]
		delete(findings, key(x.Rule, x.Subject))
		s.add(c, x, fs)
	}
	// Findings of a cluster rule may name a node; their result is the cluster's.
	for _, f := range r.Findings {
		s := f.Node
		if s == "" {
			s = report.SubjectAll
		}
		k := key(f.Rule, s)
		fs := findings[k]
		if len(fs) == 0 {
			continue
		}
		delete(findings, k)
		fam := report.Visible(f.Rule, 60)
		fam = fam[:min(3, len(fam))]
		if byName[fam] == nil {
			byName[fam] = &suite{Name: fam}
			all.Suites = append(all.Suites, byName[fam])
		}
		c := tcase{Name: report.Visible(f.Rule+" "+f.Title, 200), Class: report.Visible("coldplane."+s, 200)}
		byName[fam].add(c, report.Result{Rule: f.Rule, Outcome: report.Fail}, fs)
	}
	for _, s := range all.Suites {
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// add settles a case by its result and the findings it stands for.
func (s *suite) add(c tcase, x report.Result, fs []report.Finding) {
	s.Tests++
	switch x.Outcome {
	case report.Fail:
		worst, text := report.Severity(""), describe(fs)
		first := ""
		for _, f := range fs {
			if f.Severity.Rank() > worst.Rank() || worst == "" {
				worst, first = f.Severity, f.Message
			}
		}
		if worst != "" && !worst.AtLeast(report.Medium) {
			c.Out = text
			break
		}
		if worst == "" {
			break // the findings stand under their nodes
		}
		s.Failures++
		c.Failure = &detail{Message: report.Visible(first, maxText), Type: report.Visible(string(worst), 20), Text: text}
	case report.Errored:
		s.Errors++
		c.Error = &detail{Message: report.Visible(x.Detail, maxText), Type: "defect"}
	case report.Unknown, report.NotApplicable, report.Suppressed:
		s.Skipped++
		why := x.Detail
		for _, g := range x.Gaps {
			why += fmt.Sprintf("; %s %s is %s: %s", g.Node, g.Evidence, g.Reason, g.Detail)
		}
		c.Skipped = &detail{Message: report.Visible(string(x.Outcome)+": "+strings.Trim(why, "; "), maxText)}
	}
	s.Cases = append(s.Cases, c)
}

func describe(fs []report.Finding) string {
	var b strings.Builder
	for _, f := range fs {
		fmt.Fprintf(&b, "\n  %s %s: %s\n", report.Visible(string(f.Severity), 20), report.Visible(f.Subject, 200), report.Visible(f.Message, maxText))
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "    %s  %s\n", report.Visible(e.Place(), maxText), report.Visible(e.Excerpt, maxText))
		}
		for _, st := range f.Fix {
			fmt.Fprintf(&b, "    fix: %s\n", report.Visible(st.Text, maxText))
			if st.Command != "" {
				fmt.Fprintf(&b, "      $ %s\n", report.Visible(st.Command, maxText))
			}
		}
	}
	return b.String()
}
