package markdown_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gmtext "github.com/yuin/goldmark/text"

	"coldplane/report"
	"coldplane/report/markdown"
	"coldplane/report/reporttest"
)

func write(t *testing.T, r *report.Report, o report.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := markdown.Write(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestNothingActive renders hostile reports with CommonMark and GitHub's
// extensions: no link, image, raw HTML, table, task or strike-through comes of
// evidence, and every heading is ours.
func TestNothingActive(t *testing.T) {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM))
	for _, o := range []report.Options{{}, {Wide: true}, {Lang: "ko", Wide: true}} {
		for name, r := range map[string]*report.Report{"hostile": reporttest.Hostile(), "sample": reporttest.Sample(), "outcomes": reporttest.Outcomes()} {
			src := write(t, r, o)
			headings := 0
			err := ast.Walk(md.Parser().Parse(gmtext.NewReader(src)), func(n ast.Node, in bool) (ast.WalkStatus, error) {
				if !in {
					return ast.WalkContinue, nil
				}
				switch n.Kind() {
				case ast.KindLink, ast.KindImage, ast.KindAutoLink, ast.KindRawHTML, ast.KindHTMLBlock, ast.KindThematicBreak, ast.KindBlockquote:
					t.Errorf("%s: %s in the document", name, n.Kind())
				case ast.KindHeading:
					headings++
				}
				if k := n.Kind().String(); k == "Table" || k == "Strikethrough" || k == "TaskCheckBox" {
					t.Errorf("%s: %s in the document", name, k)
				}
				return ast.WalkContinue, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if headings != 1 {
				t.Errorf("%s: %d headings, want 1", name, headings)
			}
		}
	}
}

// TestCode holds that a code span shows exactly the visible form of a string.
func TestCode(t *testing.T) {
	for _, s := range append(reporttest.HostileStrings(), "`", "``", "a`", " x ", "`` ` ``") {
		if strings.TrimSpace(s) == "" {
			continue
		}
		src := []byte(markdown.Code(s, 0))
		p := goldmark.New().Parser().Parse(gmtext.NewReader(src)).FirstChild()
		span, ok := p.FirstChild().(*ast.CodeSpan)
		if !ok || span.NextSibling() != nil {
			t.Errorf("%q is not one code span: %s", s, src)
			continue
		}
		got := string(span.Text(src)) //nolint:staticcheck // the plain text is what is shown
		if want := report.Visible(s, 0); got != want {
			t.Errorf("code span shows %q, want %q", got, want)
		}
	}
}

// TestTicket holds what the block must say, in that order.
func TestTicket(t *testing.T) {
	out := string(write(t, reporttest.Sample(), report.Options{}))
	at := 0
	for _, want := range []string{"CRITICAL", "cp1 was restored from a snapshot", "**How it hangs together**", "**Do, in this order**", "**Do not**", "**State**", "control plane: `down`", "**Findings**", "where:", "fix:", "**Could not be judged**", "**To judge more, collect**", "sha256"} {
		i := strings.Index(out[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing or out of order in:\n%s", want, out)
		}
		at += i
	}
}
