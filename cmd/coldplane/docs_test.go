package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"coldplane/report/reporttest"
	"coldplane/rules"
)

// TestDocs makes the generated pages: docs/cli, docs/rules, and man pages. With
// COLDPLANE_DOCS=write (make docs) the pages go into the tree, otherwise into
// a temporary directory, which proves that they can be made.
func TestDocs(t *testing.T) {
	docs, man := t.TempDir(), t.TempDir()
	if os.Getenv("COLDPLANE_DOCS") == "write" {
		docs = "../../docs"
	}
	if m := os.Getenv("COLDPLANE_MAN"); m != "" {
		man = m
	}
	writeCLI(t, filepath.Join(docs, "cli"))
	writeRules(t, filepath.Join(docs, "rules"))
	excerpt(t, "../../README.md", docs == "../../docs")
	root := newRoot(&env{out: new(bytes.Buffer), err: new(bytes.Buffer)})
	root.DisableAutoGenTag = true
	at := reporttest.AsOf()
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "COLDPLANE", Section: "1", Source: "coldplane", Date: &at}, man); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"cli/coldplane_analyze.md", "cli/coldplane_render.md", "rules/README.md", "rules/DIR.md"} {
		if fi, err := os.Stat(filepath.Join(docs, f)); err != nil || fi.Size() < 300 {
			t.Errorf("%s was not made: %v", f, err)
		}
	}
}

// empty makes a directory of generated pages anew, so that a page whose
// subject is gone goes too.
func empty(t *testing.T, dir string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func writeCLI(t *testing.T, dir string) {
	t.Helper()
	empty(t, dir)
	root := newRoot(&env{out: new(bytes.Buffer), err: new(bytes.Buffer)})
	root.DisableAutoGenTag = true
	root.InitDefaultHelpCmd()
	var page func(c *cobra.Command)
	page = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" && c != root {
			return
		}
		var b bytes.Buffer
		if err := doc.GenMarkdown(c, &b); err != nil {
			t.Fatal(err)
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "_") + ".md"
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, s := range c.Commands() {
			page(s)
		}
	}
	page(root)
}

func writeRules(t *testing.T, dir string) {
	t.Helper()
	empty(t, dir)
	for name, text := range rules.Pages(rules.All()) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// excerpt puts the beginning of the demo's report into the README.
func excerpt(t *testing.T, readme string, write bool) {
	t.Helper()
	const begin, end = "<!-- excerpt: written by make docs -->\n", "<!-- end of excerpt -->\n"
	code, out, errs := command(t, "analyze", sampleDir, "--as-of", "2026-05-12T09:30:00Z", "--fail-on", "none")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	out, _, ok := strings.Cut(out, "\nFindings\n")
	if !ok {
		t.Fatal("the report has no findings")
	}
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(b), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("the README has no place for the excerpt")
	}
	if write {
		text := head + begin + "```\n" + strings.TrimRight(out, "\n") + "\n```\n" + end + tail
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
