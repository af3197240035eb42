package correlate

import (
	"regexp"
	"strings"
	"time"

	"coldplane/report"
)

// A join says what two findings must have in common for one to explain the other.
type join int

const (
	cluster   join = iota // nothing: the cause acts on the whole cluster
	node                  // the node; a finding about the cluster joins any
	component             // the node and the component both subjects name
)

// An edge says that findings of one rule can explain findings of another.
// Selectors are rule ids, several separated by blanks; "STA302:etcd" asks for
// a subject or message that contains "etcd", "QRM107:!silent" for one that does
// not.
type edge struct {
	cause, effect string
	join          join
	lag           time.Duration // the effect begins at most this long after the cause; 0 is any
	token         string        // regular expression over the effect's text that proves it; raises the weight to 1
	weight        float64
}

// edges are the causal steps coldplane knows.
var edges = []edge{
	{"NOD111 NOD102", "QRM106", node, 0, `(?i)i/o error|fdatasync`, 0.6},
	{"NOD101", "STA302:etcd", node, time.Hour, `(?i)no space left`, 0.8},
	{"NOD101", "DIR105", node, 0, ``, 0.6},
	{"NOD108", "STA302", node, 5 * time.Second, `(?i)oom`, 0.7},
	{"NOD103", "PKI101 QRM108", node, 0, `(?i)current time`, 0.8},
	{"NOD106 NOD107 NOD105 NOD104", "HAV202 STA301", node, 0, ``, 0.8},
	{"NOD107", "NOD106", node, 0, `(?i)runtime`, 0.8},
	{"NOD106", "STA302:signal", node, 0, `(?i)killed by a signal`, 0.6},
	{"NOD104 NOD105", "NOD106", node, 0, `(?i)swap|cgroup`, 0.7},
	{"NOD105", "STA302", node, 0, `(?i)sandbox|SIGTERM|terminat`, 0.7},
	{"STA203 UPG301 PKI302", "NOD106", node, 0, `(?i)unknown flag|feature gate|expired|bootstrap`, 0.7},
	{"NOD110", "QRM107 STA302", node, 0, `(?i)address already in use|bind`, 0.6},
	{"NOD112 NOD113", "STA302:etcd STA302:apiserver PKI205", node, 0, `(?i)cannot assign requested address`, 0.8},
	{"NOD113", "QRM107 QRM103", cluster, 0, ``, 0.5},
	{"STA101", "STA301 STA302", node, 0, `(?i)already in use|lock`, 0.7},
	{"STA102", "STA302 HAV103 HAV104", node, 0, ``, 0.7},
	{"STA102:etcd", "QRM101", cluster, 0, ``, 0.6},
	{"STA201 STA202 STA203 STA204 STA207 STA208", "STA302", component, 0, `(?i)frame header|no such file|unknown flag|liveness|feature gate|connection refused`, 0.8},
	{"STA201 EXT101", "STA302:apiserver HAV103 HAV104 HAV301 HAV201 STA201", node, 0, `(?i)frame header|connection refused|2380`, 0.7},
	{"EXT101", "STA201 STA205 EXT102", cluster, 0, ``, 0.8},
	{"STA302:apiserver", "HAV104 HAV103 HAV301", node, 0, ``, 0.7},
	{"STA302:etcd", "QRM101 QRM107", cluster, 0, ``, 0.7},
	{"STA302:etcd", "STA302:apiserver", node, 0, `(?i)2379|etcd`, 0.7},
	{"STA302:etcd STA302:apiserver", "STA302:controller-manager STA302:scheduler", node, 0, `(?i)lease|leader|connection refused`, 0.6},
	{"STA302:controller-manager STA302:scheduler", "HAV301", component, 0, ``, 0.8},
	{"STA201", "STA206", component, 0, ``, 0.8},
	{"DIR101", "DIR103", node, 0, ``, 0.8},
	{"DIR101 DIR103 DIR104", "RST102 QRM112 QRM109", cluster, 0, `(?i)data-dir|member-initialized`, 0.6},
	{"DIR102", "RST102 QRM109", cluster, 0, `(?i)data-dir|member-initialized`, 0.6},
	{"DIR104", "DIR102 DIR103", node, 0, ``, 0.5},
	{"DIR105 QRM116", "STA302:etcd", node, 0, `(?i)crc|wal|snap|panic|page|lastIndex|corrupt`, 0.9},
	{"DIR105 QRM116", "QRM101 QRM107 RST105", cluster, 0, ``, 0.6},
	{"PKI101 PKI201 PKI202 PKI205", "QRM108", cluster, 0, `(?i)expired|x509|certificate`, 0.8},
	{"QRM108", "QRM107 QRM101", cluster, 0, ``, 0.7},
	{"PKI101 PKI102", "HAV103 HAV301 HAV202 STA302 PKI302 PKI304 PKI401", cluster, 0, `(?i)expired|x509`, 0.7},
	{"PKI103", "PKI101 PKI102", cluster, 0, ``, 0.6},
	{"PKI201 PKI202 PKI205", "STA302 HAV103 HAV301", node, 0, `(?i)x509|tls|private key`, 0.7},
	{"PKI202", "PKI203", cluster, 0, ``, 0.4},
	{"PKI203", "PKI202 PKI303 RST107 PKI204 STA205", cluster, 0, `(?i)content of|-ca-file`, 0.7},
	{"PKI203 PKI204 STA205", "ADM201 HAV301 HAV103", cluster, 0, `(?i)unauthorized|invalid bearer`, 0.6},
	{"STA205:service-cluster-ip-range", "PKI205", cluster, 0, `(?i)Service kubernetes`, 0.7},
	{"PKI204", "STA205", cluster, 0, `(?i)service-account`, 0.9},
	{"PKI302", "HAV202", node, 0, `(?i)expired`, 0.8},
	{"PKI304 HAV102", "HAV103", cluster, 0, ``, 0.7},
	{"PKI401", "HAV301 STA302", node, 0, `(?i)unauthorized|expired`, 0.8},
	{"PKI101", "PKI301", node, 0, ``, 0.4},
	{"CAP106 CAP107 CAP109 CAP111 CAP113", "CAP105", cluster, 0, ``, 0.6},
	{"CAP101", "CAP104 HAV201 HAV301 ADM202 CAP102 CAP103 HAV103 UPG501 RST104", cluster, 0, `(?i)space exceeded|NOSPACE`, 0.8},
	{"CAP105 CAP113 ADM403", "NOD108", cluster, 0, ``, 0.4},
	{"QRM106", "QRM105", cluster, 5 * time.Second, `(?i)disk|fdatasync|took`, 0.8},
	{"QRM106", "STA302 HAV302 HAV301 STA208", cluster, 0, `(?i)slow|took|timed out|lease`, 0.6},
	{"QRM107:!silent", "QRM105 QRM101 QRM111", cluster, 0, ``, 0.7},
	{"QRM101", "QRM107:silent QRM105", cluster, 0, ``, 0.7},
	{"QRM105", "STA302:controller-manager STA302:scheduler HAV302", cluster, 15 * time.Second, `(?i)lease|leader`, 0.7},
	{"QRM102 QRM103", "QRM101 UPG501 HAV402 QRM107", cluster, 0, ``, 0.7},
	{"QRM103", "QRM102", cluster, 0, ``, 0.5},
	{"QRM101", "HAV103 HAV201 HAV301 HAV104 STA302:apiserver UPG501", cluster, 0, `(?i)no leader|timed out|request timed out`, 0.8},
	{"QRM109 QRM110", "QRM111 QRM110", cluster, 0, ``, 0.7},
	{"QRM109 QRM110", "STA302:etcd RST102", cluster, 0, `(?i)corrupt|hash`, 0.7},
	{"RST101", "QRM102 QRM112 QRM101 RST104 HAV402 RST102 QRM103", cluster, 0, `(?i)8e9e05c52164694d|cdf818194e3a8c32|localhost|default|cluster`, 0.8},
	{"RST101 RST103 RST104", "DIR102 DIR104", node, 0, `(?i)restor|still holds a member`, 0.6},
	{"QRM112", "QRM107 QRM101 HAV402 QRM109 QRM111 RST102 QRM103", cluster, 0, `(?i)cluster id`, 0.7},
	{"RST103", "RST102", cluster, 0, ``, 0.7},
	{"RST104", "CAP101 HAV201 HAV301", cluster, 0, ``, 0.8},
	{"RST102", "HAV301 HAV201", cluster, 0, ``, 0.4},
	{"RST107", "ADM301 PKI203 PKI303", cluster, 0, ``, 0.6},
	{"UPG301", "STA203", node, 0, ``, 0.8},
	{"UPG401 UPG402 UPG403 UPG404", "STA302:etcd QRM101", cluster, 0, `(?i)unknown flag|learner|member|downgrade`, 0.6},
	{"UPG402", "QRM102 QRM103 QRM101 HAV402", cluster, 0, ``, 0.8},
	{"UPG201", "ADM202", cluster, 0, `(?i)no kind`, 0.6},
	{"STA203", "STA202", component, 0, ``, 0.6}, // flags are read before the files they name
	{"STA203", "STA207 ADM401", component, 0, `(?i)plugin|listens on`, 0.9},
	{"STA203", "STA302", component, 0, `(?i)unknown flag|feature gate|unknown admission`, 0.9},
	{"ADM401", "STA302:apiserver", node, 0, `(?i)admission`, 0.8},
	{"ADM101 ADM102 ADM103", "HAV401 NOD107 HAV301 HAV202 UPG501 ADM202", cluster, 0, `(?i)webhook`, 0.6},
	{"ADM102 ADM104", "ADM101", cluster, 0, ``, 0.6},
	{"ADM201", "ADM202", cluster, 0, `(?i)discovery|unable to retrieve`, 0.8},
	{"ADM302", "ADM301", cluster, 0, ``, 0.8},
	{"ADM301", "ADM202 STA302:apiserver HAV103", cluster, 0, `(?i)prefix|decrypt|encrypt`, 0.7},
	{"HAV301", "ADM202 CAP112", cluster, 0, ``, 0.6},
	{"HAV101", "PKI205 PKI303", cluster, 0, ``, 0.3},
}

// contributions are conditions that made a finding more likely without being
// enough for it: they are named beside the cause and never take its place.
var contributions = []edge{
	{"CAP103 CAP104 CAP105 CAP106 CAP107 CAP108 CAP109 CAP111 CAP113", "CAP102 CAP101", cluster, 0, ``, 0.6},
	{"CAP102", "CAP101", cluster, 0, ``, 0.9},
	{"CAP103", "CAP115", cluster, 0, ``, 0.6},
	{"QRM114", "QRM109 QRM110 UPG402 QRM102", cluster, 0, ``, 0.4},
	{"QRM104 HAV403", "QRM101", cluster, 0, ``, 0.4},
}

// A selector matches findings by rule id and, optionally, a word.
type selector struct{ rule, word string }

func parse(s string) []selector {
	var out []selector
	for f := range strings.FieldsSeq(s) {
		rule, word, _ := strings.Cut(f, ":")
		out = append(out, selector{rule, word})
	}
	return out
}

func matches(sels []selector, f *report.Finding) bool {
	for _, s := range sels {
		word, not := strings.CutPrefix(s.word, "!")
		if s.rule == f.Rule && (word == "" || strings.Contains(strings.ToLower(f.Subject+" "+f.Message), word) != not) {
			return true
		}
	}
	return false
}

// joined reports whether two findings have in common what the edge asks for.
func joined(j join, a, b *report.Finding) bool {
	switch j {
	case node:
		return a.Node == "" || b.Node == "" || a.Node == b.Node
	case component:
		if a.Node != "" && b.Node != "" && a.Node != b.Node {
			return false
		}
		ca, cb := componentOf(a), componentOf(b)
		return ca == "" || cb == "" || ca == cb
	}
	return true
}

var components = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "etcd"}

// componentOf names the component a finding's subject begins with or, failing
// that, contains.
func componentOf(f *report.Finding) string {
	for _, c := range components {
		if strings.HasPrefix(f.Subject, c) {
			return c
		}
	}
	for _, c := range components {
		if strings.Contains(f.Subject, c) {
			return c
		}
	}
	return ""
}

// clockSlack is how much later than its effect a cause may seem to begin:
// clocks of nodes and the graining of logs.
const clockSlack = 5 * time.Minute

// inTime checks the edge's time rule; findings without a time pass.
func inTime(e *edge, a, b *report.Finding) bool {
	if a.ObservedAt == nil || b.ObservedAt == nil {
		return true
	}
	d := b.ObservedAt.Sub(*a.ObservedAt)
	return d >= -clockSlack && (e.lag == 0 || d <= e.lag+clockSlack)
}

// compiled is an edge ready for use.
type compiled struct {
	*edge
	cause, effect []selector
	token         *regexp.Regexp
}

func compile(es []edge) []compiled {
	out := make([]compiled, len(es))
	for i := range es {
		out[i] = compiled{edge: &es[i], cause: parse(es[i].cause), effect: parse(es[i].effect)}
		if es[i].token != "" {
			out[i].token = regexp.MustCompile(es[i].token)
		}
	}
	return out
}

// text is what a token is looked for in.
func text(f *report.Finding) string {
	var b strings.Builder
	b.WriteString(f.Message)
	for _, e := range f.Evidence {
		b.WriteByte('\n')
		b.WriteString(e.Excerpt)
	}
	return b.String()
}
