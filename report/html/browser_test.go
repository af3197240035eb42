package html_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"coldplane/report"
	"coldplane/report/reporttest"
)

// browser finds a headless Chromium; without one the test is skipped.
func browser(t *testing.T) string {
	t.Helper()
	if os.Getenv("COLDPLANE_BROWSER") == "" {
		t.Skip("starts a browser several times; set COLDPLANE_BROWSER=1 to run it")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	t.Skip("no Chromium on this machine (Debian: apt-get install chromium)")
	return ""
}

// load opens a page and returns the document after its script ran, and what
// the browser complained about.
func load(t *testing.T, chromium, file, hash string, flags ...string) (dom, complaints string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, append(flags, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--user-data-dir="+t.TempDir(), "--enable-logging=stderr", "--dump-dom", "file://"+file+hash)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "<main") {
		t.Skipf("Chromium does not run here: %v %.300s", err, errs.String())
	}
	for l := range strings.Lines(errs.String()) {
		if strings.Contains(l, "CONSOLE") {
			complaints += l
		}
	}
	return out.String(), complaints
}

// measure writes into the page's title which words of the state's row headings
// stand on two lines, and whether the whole page has to be scrolled sideways.
const measure = `<script>
const out = [];
for (const th of document.querySelectorAll(".matrix tbody th")) {
  const walk = document.createTreeWalker(th, NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode());) for (const w of n.data.matchAll(/[^\s-]+/g)) {
    const r = document.createRange();
    r.setStart(n, w.index); r.setEnd(n, w.index + w[0].length);
    if (new Set([...r.getClientRects()].map(b => Math.round(b.top))).size > 1) out.push(w[0]);
  }
}
if (!document.querySelector(".matrix tbody th")) out.push("no row heading");
if (document.documentElement.scrollWidth > innerWidth) out.push("page " + document.documentElement.scrollWidth + " > " + innerWidth);
document.title = "measured:" + out.join(" ") + ";";
</script>`

var (
	policy   = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`)
	measured = regexp.MustCompile(`<title>measured:([^;]*);</title>`)
)

// brokenHeads measures the page in a window of a size, "WIDTH,HEIGHT".
func brokenHeads(t *testing.T, chromium, file, size string) string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copied := file + ".measured.html"
	if err := os.WriteFile(copied, append(policy.ReplaceAll(page, nil), measure...), 0o600); err != nil {
		t.Fatal(err)
	}
	dom, _ := load(t, chromium, copied, "", "--window-size="+size)
	m := measured.FindStringSubmatch(dom)
	if m == nil {
		t.Fatal("the page was not measured")
	}
	return m[1]
}

var hiddenFinding = regexp.MustCompile(`<article class="finding[^>]* hidden=""`)

// TestBrowser opens the pages in a real browser: no console message (a refused
// style, script or load would be one), the script runs, and search and filters
// from the address hide what they should.
func TestBrowser(t *testing.T) {
	chromium := browser(t)
	dir := t.TempDir()
	for name, r := range map[string]*report.Report{"sample": reporttest.Sample(), "hostile": reporttest.Hostile(), "big": reporttest.Big(500, 5000)} {
		file := filepath.Join(dir, name+".html")
		if err := os.WriteFile(file, []byte(render(t, r, report.Options{})), 0o600); err != nil {
			t.Fatal(err)
		}
		dom, complaints := load(t, chromium, file, "")
		if complaints != "" {
			t.Errorf("%s: the browser says\n%.2000s", name, complaints)
		}
		if !strings.Contains(dom, ">copy</button>") {
			t.Errorf("%s: the script did not run", name)
		}
		if name != "sample" {
			continue
		}
		for _, width := range []string{"500,900", "1180,900"} {
			if broken := brokenHeads(t, chromium, file, width); broken != "" {
				t.Errorf("in a window of %s words of row headings are broken, or the page is wider than the window: %s", width, broken)
			}
		}
		total := len(r.Findings)
		for hash, want := range map[string]int{
			"#q=nowhere": 0, "#severity=critical&q=kubeadm-config": 1, "#family=QRM&node=": 2,
		} {
			dom, _ := load(t, chromium, file, hash)
			if got := total - len(hiddenFinding.FindAllString(dom, -1)); got != want {
				t.Errorf("%s: %d of %d findings are shown, want %d", hash, got, total, want)
			}
		}
	}
}
