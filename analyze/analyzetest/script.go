package analyzetest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
)

// A tcase is one case of a script.
type tcase struct {
	name   string
	asOf   time.Time
	target string
	sets   map[string]map[string]float64
	files  map[string][]byte // input path -> content
	dirs   []string
	links  map[string]string
	mtimes map[string]time.Time
	modes  map[string]os.FileMode
	wants  []*want
}

// A want is one expectation.
type want struct {
	src      string // as written, for messages
	rule     string
	severity string // or an outcome
	node     string
	path     string
	line     *regexp.Regexp
	lineNo   int // for inline wants
	message  *regexp.Regexp
	reason   string
	met      bool
}

func (w *want) finding() bool { return w.path != "" }

// DefaultAsOf judges ages in a case that does not say otherwise.
var DefaultAsOf = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// parseScript splits an archive into its cases.
func parseScript(ar *txtar.Archive) ([]*tcase, error) {
	var cases []*tcase
	byName := map[string]*tcase{}
	directives := map[string]string{}
	for _, f := range ar.Files {
		if !strings.Contains(f.Name, "/") {
			if byName[f.Name] != nil {
				return nil, fmt.Errorf("case %s twice", f.Name)
			}
			c := &tcase{name: f.Name, asOf: DefaultAsOf, sets: map[string]map[string]float64{}, files: map[string][]byte{},
				links: map[string]string{}, mtimes: map[string]time.Time{}, modes: map[string]os.FileMode{}}
			cases, byName[f.Name] = append(cases, c), c
			directives[f.Name] = string(f.Data)
		}
	}
	for _, c := range cases {
		// The base first, then the case's own files, then its edits.
		for _, l := range lines(directives[c.name]) {
			if b, ok := strings.CutPrefix(l, "base "); ok {
				base, err := Base(strings.TrimSpace(b))
				if err != nil {
					return nil, fmt.Errorf("case %s: %w", c.name, err)
				}
				for p, data := range base {
					c.files[p] = data
				}
			}
		}
	}
	for _, f := range ar.Files {
		name, p, ok := strings.Cut(f.Name, "/")
		if !ok {
			continue
		}
		c := byName[name]
		if c == nil {
			return nil, fmt.Errorf("file %s belongs to no case", f.Name)
		}
		c.files[p] = f.Data
		if err := c.inline(p, string(f.Data)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	for _, c := range cases {
		for i, l := range lines(directives[c.name]) {
			if err := c.directive(l); err != nil {
				return nil, fmt.Errorf("case %s, line %d: %w", c.name, i+1, err)
			}
		}
	}
	return cases, nil
}

func lines(s string) []string {
	var out []string
	for l := range strings.SplitSeq(s, "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
	}
	return out
}

var (
	inlineWant = regexp.MustCompile(`# want ([A-Z]{3}[0-9]{3})(?: ([a-z]+))?(?: "((?:[^"\\]|\\.)*)")?`)
	editRE     = regexp.MustCompile(`^(\S+) ("(?:[^"\\]|\\.)*") => ("(?:[^"\\]|\\.)*")$`)
	quotedRE   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

func (c *tcase) inline(p, data string) error {
	for i, l := range strings.Split(data, "\n") {
		m := inlineWant.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		w := &want{src: strings.TrimSpace(l[strings.Index(l, "# want"):]), rule: m[1], severity: m[2], path: p, lineNo: i + 1}
		if m[3] != "" {
			re, err := regexp.Compile(m[3])
			if err != nil {
				return err
			}
			w.message = re
		}
		c.wants = append(c.wants, w)
	}
	return nil
}

func (c *tcase) directive(l string) error {
	verb, rest, _ := strings.Cut(l, " ")
	rest = strings.TrimSpace(rest)
	words := strings.Fields(rest)
	switch verb {
	case "base":
		return nil
	case "as-of":
		if rest == "none" {
			c.asOf = time.Time{}
			return nil
		}
		t, err := time.Parse(time.RFC3339, rest)
		c.asOf = t
		return err
	case "target":
		c.target = rest
		return nil
	case "set":
		key, val, ok := strings.Cut(rest, "=")
		rule, name, ok2 := strings.Cut(key, ".")
		v, err := strconv.ParseFloat(val, 64)
		if !ok || !ok2 || err != nil {
			return fmt.Errorf("set %q", rest)
		}
		if c.sets[rule] == nil {
			c.sets[rule] = map[string]float64{}
		}
		c.sets[rule][name] = v
		return nil
	case "edit":
		return c.edit(rest)
	case "rm":
		n := 0
		for p := range c.files {
			if ok, _ := path.Match(rest, p); ok || strings.HasPrefix(p, strings.TrimSuffix(rest, "/")+"/") {
				delete(c.files, p)
				n++
			}
		}
		if n == 0 {
			return fmt.Errorf("rm %s: nothing to remove", rest)
		}
		return nil
	case "mkdir":
		c.dirs = append(c.dirs, rest)
		return nil
	case "symlink":
		if len(words) != 2 {
			return fmt.Errorf("symlink PATH TARGET")
		}
		c.links[words[0]] = words[1]
		return nil
	case "mtime":
		if len(words) != 2 {
			return fmt.Errorf("mtime PATH TIME")
		}
		t, err := time.Parse(time.RFC3339, words[1])
		c.mtimes[words[0]] = t
		return err
	case "mode":
		if len(words) != 2 {
			return fmt.Errorf("mode PATH OCTAL")
		}
		m, err := strconv.ParseUint(words[1], 8, 32)
		c.modes[words[0]] = os.FileMode(m)
		return err
	case "want":
		return c.want(rest)
	}
	return fmt.Errorf("unknown directive %q", verb)
}

func (c *tcase) edit(rest string) error {
	m := editRE.FindStringSubmatch(rest)
	if m == nil {
		return fmt.Errorf(`edit PATH "old" => "new"`)
	}
	from, err1 := strconv.Unquote(m[2])
	to, err2 := strconv.Unquote(m[3])
	if err1 != nil || err2 != nil {
		return fmt.Errorf("edit: bad quoting")
	}
	n := 0
	for p, data := range c.files {
		if ok, _ := path.Match(m[1], p); ok && strings.Contains(string(data), from) {
			c.files[p] = []byte(strings.ReplaceAll(string(data), from, to))
			n++
		}
	}
	if n == 0 {
		return fmt.Errorf("edit %s: %q is not there", m[1], from)
	}
	return nil
}

var outcomes = []string{"pass", "unknown", "not-applicable", "error"}

func (c *tcase) want(rest string) error {
	w := &want{src: "want " + rest}
	var quoted []string
	bare := quotedRE.ReplaceAllStringFunc(rest, func(q string) string {
		s, err := strconv.Unquote(q)
		if err != nil {
			s = strings.Trim(q, `"`)
		}
		quoted = append(quoted, s)
		return ""
	})
	f := strings.Fields(bare)
	if len(f) < 2 {
		return fmt.Errorf("want RULE SEVERITY PATH or want RULE OUTCOME")
	}
	w.rule, w.severity = f[0], f[1]
	if slices.Contains(outcomes, w.severity) {
		if len(f) > 2 {
			w.node = f[2]
		}
		if len(f) > 3 {
			w.reason = f[3]
		}
		if len(f) == 3 && strings.Contains(" not-collected absent unreadable damaged truncated too-large redacted refused not-regular unsupported undecided failed ", " "+f[2]+" ") {
			w.node, w.reason = "", f[2]
		}
		c.wants = append(c.wants, w)
		return nil
	}
	if len(f) != 3 {
		return fmt.Errorf("want RULE SEVERITY PATH")
	}
	w.path = f[2]
	if n, p, ok := strings.Cut(f[2], ":"); ok {
		w.node, w.path = n, p
	}
	var err error
	switch len(quoted) {
	case 2:
		if w.line, err = regexp.Compile(quoted[0]); err != nil {
			return err
		}
		quoted = quoted[1:]
		fallthrough
	case 1:
		w.message, err = regexp.Compile(quoted[0])
	}
	c.wants = append(c.wants, w)
	return err
}

// write lays the case's input out on disk.
func (c *tcase) write(dir string) error {
	for p, data := range c.files {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, data, 0o600); err != nil {
			return err
		}
	}
	for _, d := range c.dirs {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(d)), 0o755); err != nil {
			return err
		}
	}
	for p, target := range c.links {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(target, full); err != nil {
			return err
		}
	}
	for p, m := range c.modes {
		if err := os.Chmod(filepath.Join(dir, p), m); err != nil {
			return err
		}
	}
	for p, t := range c.mtimes {
		if err := os.Chtimes(filepath.Join(dir, p), t, t); err != nil {
			return err
		}
	}
	return nil
}
