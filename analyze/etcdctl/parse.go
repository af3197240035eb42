package etcdctl

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"coldplane/bundle"
)

const (
	maxBytes = 4 << 20 // of one saved output
	maxRows  = 4096    // of one kind, per node
	maxText  = 400     // bytes of one cell or excerpt
)

// A parser reads the outputs of one file.
type parser struct {
	out      *Saved
	ref      bundle.Ref
	endpoint string // of the command line above
	batch    *int
	found    bool
}

// line is one line with its number.
type line struct {
	n int
	s string
}

// parse reads all outputs of a file. A file may hold several, one after
// another, each below the command that made it; log lines and errors of
// etcdctl stand between them.
func (p *parser) parse(text []byte) {
	text = text[:min(len(text), maxBytes)]
	if p.json(text, 1) {
		return
	}
	var block []line
	n := 0
	flush := func() {
		p.block(block)
		block = nil
	}
	for s := range strings.SplitSeq(string(text), "\n") {
		n++
		s = strings.TrimRight(s, "\r \t")
		switch {
		case isCommand(s):
			flush()
			p.endpoint = commandEndpoint(s)
		case strings.HasPrefix(s, `{"level":`), strings.HasPrefix(s, "Error: "), failedStatus.MatchString(s):
			flush()
			p.failure(n, s)
		default:
			block = append(block, line{n, s})
		}
	}
	flush()
}

// block reads one output.
func (p *parser) block(b []line) {
	for len(b) > 0 && strings.TrimSpace(b[0].s) == "" {
		b = b[1:]
	}
	if len(b) == 0 {
		return
	}
	*p.batch++
	first := strings.TrimSpace(b[0].s)
	switch {
	case strings.HasPrefix(first, "{") || strings.HasPrefix(first, "["):
		var sb strings.Builder
		for _, l := range b {
			sb.WriteString(l.s)
			sb.WriteByte('\n')
		}
		p.json([]byte(sb.String()), b[0].n)
	case isTable(first):
		p.table(b)
	case fieldLine.MatchString(first):
		p.fields(b)
	default:
		p.simple(b)
	}
}

var (
	failedStatus = regexp.MustCompile(`^Failed to get the (?:status|hash) of endpoint (\S+) \((.*)\)$`)
	commandFlag  = regexp.MustCompile(`--endpoints?[= ]"?'?([^\s"']+)`)
	fieldLine    = regexp.MustCompile(`^"[A-Za-z]+" : `)
)

// isCommand tells a recorded command line from output.
func isCommand(s string) bool {
	s = strings.TrimLeft(s, "$#> ")
	return strings.HasPrefix(s, "etcdctl ") || strings.HasPrefix(s, "ETCDCTL_API=") || strings.Contains(s, " etcdctl --") && !strings.Contains(s, ", ")
}

func commandEndpoint(s string) string {
	if m := commandFlag.FindStringSubmatch(s); m != nil && !strings.Contains(m[1], ",") {
		return cut(m[1])
	}
	return ""
}

// failure keeps an error etcdctl printed, with the endpoint it is about.
func (p *parser) failure(n int, s string) {
	f := Failure{Ref: p.ref.At(n, "")}
	switch {
	case strings.HasPrefix(s, "{"):
		var z struct {
			Level, Error, Target string
		}
		if json.Unmarshal([]byte(s), &z) != nil || z.Error == "" {
			return
		}
		f.Error = cut(z.Error)
		if i := strings.LastIndex(z.Target, "/"); i >= 0 {
			f.Endpoint = cut(z.Target[i+1:])
		}
	case strings.HasPrefix(s, "Error: "):
		f.Error = cut(strings.TrimPrefix(s, "Error: "))
	default:
		if m := failedStatus.FindStringSubmatch(s); m != nil {
			f.Endpoint, f.Error = cut(m[1]), cut(m[2])
		}
	}
	p.found = true
	if len(p.out.Failures) < maxRows {
		p.out.Failures = append(p.out.Failures, f)
	}
}

func cut(s string) string {
	if len(s) <= maxText {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	s = s[:maxText]
	for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// hexID reads a member id as etcdctl prints it.
func hexID(s string) (uint64, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 16, 64)
	return n, err == nil && n != 0
}

// list splits a cell of several URLs.
func list(s string) []string {
	var out []string
	for u := range strings.SplitSeq(s, ",") {
		if u = strings.TrimSpace(u); u != "" && len(out) < 64 {
			out = append(out, cut(u))
		}
	}
	return out
}

// bytesOf reads a size as etcdctl prints it ("3.2 MB", decimal units).
func bytesOf(s string) int64 {
	num, unit, _ := strings.Cut(strings.TrimSpace(s), " ")
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || v < 0 {
		return -1
	}
	mult := map[string]float64{"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
	if mult == 0 || v*mult > 1<<60 {
		return -1
	}
	return int64(v * mult)
}

func uintOf(s string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func isTrue(s string) bool { return strings.TrimSpace(s) == "true" }
