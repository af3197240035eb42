package html_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	nethtml "golang.org/x/net/html"

	"coldplane/report"
	"coldplane/report/html"
	"coldplane/report/reporttest"
)

func render(t testing.TB, r *report.Report, o report.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := html.Write(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func reports() map[string]*report.Report {
	return map[string]*report.Report{
		"empty": reporttest.Empty(), "outcomes": reporttest.Outcomes(), "sample": reporttest.Sample(), "hostile": reporttest.Hostile(), "zero": {},
	}
}

// walk calls f for every element.
func walk(n *nethtml.Node, f func(*nethtml.Node)) {
	if n.Type == nethtml.ElementNode {
		f(n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		walk(c, f)
	}
}

func attr(n *nethtml.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// TestSelfContained holds that the page asks for nothing and runs nothing but
// its own two static parts, whatever the evidence says.
func TestSelfContained(t *testing.T) {
	allowed := strings.Fields("html head meta title style body a header nav main footer section article h1 h2 h3 h4 p div span ul ol li dl dt dd table caption thead tbody tr th td code pre time strong details summary label input select option button fieldset legend output script svg defs pattern rect line circle text")
	for name, r := range reports() {
		doc, err := nethtml.Parse(strings.NewReader(render(t, r, report.Options{})))
		if err != nil {
			t.Fatal(err)
		}
		policy, scripts, styles := "", 0, 0
		walk(doc, func(n *nethtml.Node) {
			if !slices.Contains(allowed, n.Data) && !(n.Data == "title" && n.Namespace == "svg") {
				t.Errorf("%s: element %s", name, n.Data)
			}
			for _, a := range n.Attr {
				switch {
				case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "src", a.Key == "srcset", a.Key == "action", a.Key == "formaction", a.Key == "ping":
					t.Errorf("%s: attribute %s=%q on %s", name, a.Key, a.Val, n.Data)
				case a.Key == "href" && !strings.HasPrefix(a.Val, "#") && !regexp.MustCompile(`^https://(kubernetes\.io|etcd\.io|github\.com)/`).MatchString(a.Val):
					t.Errorf("%s: a link to %q", name, a.Val)
				case a.Key == "fill" && !regexp.MustCompile(`^url\(#[a-z0-9]+-hatch\)$`).MatchString(a.Val):
					t.Errorf("%s: fill %q", name, a.Val)
				}
			}
			switch n.Data {
			case "meta":
				if strings.EqualFold(attr(n, "http-equiv"), "Content-Security-Policy") {
					policy = attr(n, "content")
				}
			case "script":
				scripts++
				mustHash(t, policy, "script-src", n)
			case "style":
				styles++
				mustHash(t, policy, "style-src", n)
			}
		})
		if scripts != 1 || styles != 1 || !strings.HasPrefix(policy, "default-src 'none'; ") {
			t.Errorf("%s: %d scripts, %d style sheets, policy %q", name, scripts, styles, policy)
		}
	}
}

func mustHash(t *testing.T, policy, directive string, n *nethtml.Node) {
	t.Helper()
	sum := sha256.Sum256([]byte(n.FirstChild.Data))
	want := fmt.Sprintf("%s 'sha256-%s'", directive, base64.StdEncoding.EncodeToString(sum[:]))
	if !strings.Contains(policy, want) {
		t.Errorf("the policy %q lacks %q: the browser would refuse it", policy, want)
	}
}

// TestReadable holds what a keyboard and a screen reader need: one h1, no
// skipped heading level, unique ids, targets of links, names of controls,
// pictures and scrolling regions, headings of columns.
func TestReadable(t *testing.T) {
	for name, r := range reports() {
		doc, err := nethtml.Parse(strings.NewReader(render(t, r, report.Options{})))
		if err != nil {
			t.Fatal(err)
		}
		ids, links, level, h1 := map[string]bool{}, []string{}, 0, 0
		walk(doc, func(n *nethtml.Node) {
			if id := attr(n, "id"); id != "" {
				if ids[id] {
					t.Errorf("%s: id %q twice", name, id)
				}
				ids[id] = true
			}
			switch n.Data {
			case "h1", "h2", "h3", "h4":
				l := int(n.Data[1] - '0')
				if l > level+1 {
					t.Errorf("%s: h%d after h%d", name, l, level)
				}
				if level = l; l == 1 {
					h1++
				}
			case "a":
				if strings.HasPrefix(attr(n, "href"), "#") {
					links = append(links, attr(n, "href")[1:])
				}
			case "input", "select":
				if n.Parent.Data != "label" {
					t.Errorf("%s: %s without a label", name, n.Data)
				}
			case "svg":
				if attr(n, "role") != "img" || attr(n, "aria-label") == "" {
					t.Errorf("%s: a picture without a name", name)
				}
			case "th":
				if attr(n, "scope") == "" {
					t.Errorf("%s: a th without scope", name)
				}
			}
			if attr(n, "tabindex") != "" && attr(n, "aria-label") == "" {
				t.Errorf("%s: a region without a name", name)
			}
		})
		if h1 != 1 {
			t.Errorf("%s: %d h1", name, h1)
		}
		for _, l := range links {
			if !ids[l] {
				t.Errorf("%s: a link to #%s, which is not there", name, l)
			}
		}
	}
}

// TestContrast computes the contrast of every text colour on the backgrounds it
// is used on, in both themes: at least 4.5 to 1 (WCAG 2.1 AA).
func TestContrast(t *testing.T) {
	page := render(t, reporttest.Empty(), report.Options{})
	themes := regexp.MustCompile(`(?s)\{[^{}]*--bg:.*?\}`).FindAllString(page, -1)
	if len(themes) != 3 {
		t.Fatalf("%d themes, want light, dark by preference, dark by choice", len(themes))
	}
	for i, theme := range themes {
		c := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{6})`).FindAllStringSubmatch(theme, -1) {
			c[m[1]] = m[2]
		}
		pairs := [][2]string{}
		for _, fg := range []string{"ink", "soft", "link", "critical", "high", "medium", "low", "info", "ok"} {
			pairs = append(pairs, [2]string{fg, "bg"}, [2]string{fg, "panel"})
		}
		for t := range 8 {
			pairs = append(pairs, [2]string{"ink", fmt.Sprintf("t%d", t)})
		}
		for _, p := range pairs {
			if got := contrast(c[p[0]], c[p[1]]); got < 4.5 {
				t.Errorf("theme %d: %s on %s: contrast %.2f", i, p[0], p[1], got)
			}
		}
	}
}

func contrast(a, b string) float64 {
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// TestFacts holds that what is not there is not drawn, and what is there is.
func TestFacts(t *testing.T) {
	full, empty := render(t, reporttest.Sample(), report.Options{}), render(t, reporttest.Empty(), report.Options{})
	for _, id := range []string{"matrix", "quorum", "members", "timeline", "lanes", "store", "bars0", "treemap0", "certificates", "gantt"} {
		if !strings.Contains(full, `id="`+id+`"`) {
			t.Errorf("the sample's page has no %s", id)
		}
		if strings.Contains(empty, `id="`+id+`"`) {
			t.Errorf("the empty page has a %s", id)
		}
	}
	for _, want := range []string{"cp1 was restored from a snapshot", "Do not start cp3", "path: /var/lib/etcd-restored", "etc/kubernetes/manifests/etcd.yaml:83", "kubectl -n kube-system edit configmap kubeadm-config", strings.Repeat("1a", 32)} {
		if !strings.Contains(full, want) {
			t.Errorf("the sample's page lacks %q", want)
		}
	}
}

// TestSize holds the budgets: 2 MB for the sample, 6 MB for 500 findings and
// 5,000 timeline entries.
func TestSize(t *testing.T) {
	if n := len(render(t, reporttest.Sample(), report.Options{})); n > 2_000_000 {
		t.Errorf("the sample takes %d bytes", n)
	}
	if n := len(render(t, reporttest.Big(500, 5000), report.Options{})); n > 6_000_000 {
		t.Errorf("500 findings and 5,000 entries take %d bytes", n)
	}
}

func BenchmarkSample(b *testing.B) {
	r := reporttest.Sample()
	for b.Loop() {
		if err := html.Write(io.Discard, r, report.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBig is 500 findings and 5,000 timeline entries; the budget is 1.5 s.
func BenchmarkBig(b *testing.B) {
	r := reporttest.Big(500, 5000)
	for b.Loop() {
		if err := html.Write(io.Discard, r, report.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
