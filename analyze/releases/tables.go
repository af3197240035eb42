package releases

import (
	"embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed data/*.txt
var data embed.FS

// minors is a set of minor numbers.
type minors map[int]bool

func (m minors) last() int {
	n := -1
	for k := range m {
		n = max(n, k)
	}
	return n
}

// rows returns the lines of a table split at spaces.
func rows(name string) [][]string {
	b, err := data.ReadFile("data/" + name)
	if err != nil {
		return nil // the tables are embedded; a test reads each of them
	}
	var out [][]string
	for l := range strings.SplitSeq(string(b), "\n") {
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		out = append(out, strings.Split(l, " "))
	}
	return out
}

// parseMinors reads "22-27,30".
func parseMinors(s string) minors {
	out := minors{}
	for part := range strings.SplitSeq(s, ",") {
		a, b, ok := strings.Cut(part, "-")
		lo, err1 := strconv.Atoi(a)
		hi := lo
		var err2 error
		if ok {
			hi, err2 = strconv.Atoi(b)
		}
		if err1 != nil || err2 != nil {
			continue
		}
		for i := lo; i <= hi && hi-lo < 1000; i++ {
			out[i] = true
		}
	}
	return out
}

// A Presence says how one name stands with one release.
type Presence int

// Presences.
const (
	NoTable Presence = iota // the release is not in the tables
	Present
	Removed // an older release knew it
	NotYet  // only a newer release knows it
	Never   // no release in the tables knows it
)

// presence judges a set of minors against the table's own span.
func presence(have minors, known bool, minor int, span minors) Presence {
	switch {
	case !span[minor]:
		return NoTable
	case !known:
		return Never
	case have[minor]:
		return Present
	}
	for m := range have {
		if m < minor {
			return Removed
		}
	}
	return NotYet
}

type flagTable struct {
	flags map[string]map[string]minors // component -> flag
	span  map[string]minors
}

var loadFlags = sync.OnceValue(func() flagTable {
	t := flagTable{map[string]map[string]minors{}, map[string]minors{}}
	for _, r := range rows("flags.txt") {
		if t.flags[r[0]] == nil {
			t.flags[r[0]], t.span[r[0]] = map[string]minors{}, minors{}
		}
		ms := parseMinors(r[2])
		t.flags[r[0]][r[1]] = ms
		for m := range ms {
			t.span[r[0]][m] = true
		}
	}
	return t
})

// Flag says whether a component of a minor (1.N; etcd 3.N) knows a flag, and
// the newest minor that knows it (-1 when none does). Components are
// kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, etcd.
func Flag(component, name string, minor int) (p Presence, last int) {
	t := loadFlags()
	if component != "etcd" {
		name = strings.ReplaceAll(name, "_", "-")
	}
	ms, known := t.flags[component][name]
	return presence(ms, known, minor, t.span[component]), ms.last()
}

// RemovedIn returns the first minor of the tables at which a flag that an
// older one knew is gone, at or below minor.
func RemovedIn(component, name string, minor int) int {
	t := loadFlags()
	ms := t.flags[component][name]
	for m := minor; m > 0; m-- {
		if ms[m-1] {
			return m
		}
	}
	return 0
}

// Nearest returns a flag the component of that minor knows and that is one
// edit away from name, for a hint; "" when there is none.
func Nearest(component, name string, minor int) string {
	best := ""
	for f, ms := range loadFlags().flags[component] {
		if ms[minor] && editDistance(f, name) <= 2 && (best == "" || f < best) {
			best = f
		}
	}
	return best
}

func editDistance(a, b string) int {
	if d := len(a) - len(b); d > 2 || d < -2 || len(a) > 100 {
		return 3
	}
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			c := 1
			if a[i-1] == b[j-1] {
				c = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+c)
		}
		prev = cur
	}
	return prev[len(b)]
}

// A Gate is a feature gate in one release.
type Gate struct {
	Stage   string // alpha, beta, ga, deprecated
	Default bool
	Locked  bool // only the default is accepted
}

type gateTable struct {
	gates map[string]map[int]Gate
	span  minors
}

var loadGates = sync.OnceValue(func() gateTable {
	t := gateTable{map[string]map[int]Gate{}, minors{}}
	for _, r := range rows("gates.txt") {
		by := map[int]Gate{}
		for _, p := range r[1:] {
			f := strings.Split(p, ":")
			if len(f) < 3 {
				continue
			}
			for m := range parseMinors(f[0]) {
				by[m] = Gate{Stage: f[1], Default: f[2] == "on", Locked: len(f) > 3}
				t.span[m] = true
			}
		}
		t.gates[r[0]] = by
	}
	return t
})

// FeatureGate says whether Kubernetes 1.minor knows a gate, what it is there,
// and the newest minor that knows it.
func FeatureGate(name string, minor int) (p Presence, g Gate, last int) {
	t := loadGates()
	by, known := t.gates[name]
	ms := minors{}
	for m := range by {
		ms[m] = true
	}
	return presence(ms, known, minor, t.span), by[minor], ms.last()
}

type nameTable struct {
	names map[string]minors
	span  minors
}

func loadNames(file string, key func([]string) string) nameTable {
	t := nameTable{map[string]minors{}, minors{}}
	for _, r := range rows(file) {
		ms := parseMinors(r[len(r)-1])
		t.names[key(r)] = ms
		for m := range ms {
			t.span[m] = true
		}
	}
	return t
}

var loadPlugins = sync.OnceValue(func() nameTable {
	return loadNames("admission.txt", func(r []string) string { return r[0] })
})

// AdmissionPlugin says whether kube-apiserver 1.minor knows a plugin.
func AdmissionPlugin(name string, minor int) (p Presence, last int) {
	t := loadPlugins()
	ms, known := t.names[name]
	return presence(ms, known, minor, t.span), ms.last()
}

type kindTable struct {
	nameTable
	groups map[string]bool // API groups that hold a built-in kind
}

var loadKinds = sync.OnceValue(func() kindTable {
	t := kindTable{loadNames("kinds.txt", func(r []string) string { return r[0] + " " + r[1] }), map[string]bool{}}
	for k := range t.names {
		gv, _, _ := strings.Cut(k, " ")
		t.groups[groupOf(gv)] = true
	}
	return t
})

func groupOf(apiVersion string) string {
	g, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return g
}

// Decodable says whether the API server of 1.minor can decode a stored value
// of a built-in kind. ok is false when the group is not one of Kubernetes' own.
func Decodable(apiVersion, kind string, minor int) (p Presence, ok bool) {
	t := loadKinds()
	if !t.groups[groupOf(apiVersion)] {
		return Never, false
	}
	ms, known := t.names[apiVersion+" "+kind]
	return presence(ms, known, minor, t.span), true
}

// A Lifecycle is the announced life of one API version of a kind. Versions
// are minors of 1.N; 0 means not announced.
type Lifecycle struct {
	APIVersion, Kind                string
	Introduced, Deprecated, Removed int
	Replacement                     string // "apps/v1 Deployment"; "" when none
}

var loadLives = sync.OnceValue(func() map[string]Lifecycle {
	out := map[string]Lifecycle{}
	minor := func(s string) int {
		_, m, _ := strings.Cut(s, ".")
		n, err := strconv.Atoi(m)
		if err != nil {
			return 0
		}
		return n
	}
	for _, r := range rows("removed.txt") {
		l := Lifecycle{APIVersion: r[0], Kind: r[1], Introduced: minor(r[2]), Deprecated: minor(r[3]), Removed: minor(r[4])}
		if gv, k, ok := strings.Cut(r[5], ":"); ok {
			l.Replacement = gv + " " + k
		}
		out[r[0]+" "+r[1]] = l
	}
	return out
})

// APILife returns the announced life of an API version of a kind that is, or
// will be, no longer served.
func APILife(apiVersion, kind string) (Lifecycle, bool) {
	l, ok := loadLives()[apiVersion+" "+kind]
	return l, ok
}

// Retired are the API versions of a kind that are served after 1.from and no
// longer by 1.to; from is 0 when it is not known.
func Retired(kind string, from, to int) []Lifecycle {
	var out []Lifecycle
	for _, l := range loadLives() {
		if l.Kind == kind && l.Removed > from && l.Removed <= to {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Lifecycle) int { return strings.Compare(a.APIVersion, b.APIVersion) })
	return out
}

// A Kubeadm is what kubeadm of one minor installs and reads.
type Kubeadm struct {
	Version         Version // the release the row was read from
	Etcd            string  // default image tag
	MinExternalEtcd Version
	CoreDNS, Pause  string
	ConfigAPIs      []string // versions of kubeadm.k8s.io it reads
	Gates           []string // its own feature gates
	EtcdFor         map[int]string
}

var loadKubeadm = sync.OnceValue(func() map[int]Kubeadm {
	out := map[int]Kubeadm{}
	for _, r := range rows("kubeadm.txt") {
		v, ok := Parse(r[0])
		if !ok {
			continue
		}
		k := Kubeadm{Version: v, EtcdFor: map[int]string{}}
		for _, f := range r[1:] {
			name, val, _ := strings.Cut(f, "=")
			switch name {
			case "etcd":
				k.Etcd = val
			case "external":
				k.MinExternalEtcd, _ = Parse(val)
			case "coredns":
				k.CoreDNS = val
			case "pause":
				k.Pause = val
			case "config":
				k.ConfigAPIs = strings.Split(val, ",")
			case "gates":
				k.Gates = strings.Split(val, ",")
			case "supported":
				for p := range strings.SplitSeq(val, ",") {
					m, tag, _ := strings.Cut(p, ":")
					if n, err := strconv.Atoi(m); err == nil {
						k.EtcdFor[n] = tag
					}
				}
			}
		}
		out[v.Minor] = k
	}
	return out
})

// KubeadmOf returns the row of kubeadm 1.minor.
func KubeadmOf(minor int) (Kubeadm, bool) {
	k, ok := loadKubeadm()[minor]
	return k, ok
}

// NewestMinor is the newest minor of Kubernetes in the tables.
func NewestMinor() int {
	n := 0
	for m := range loadKubeadm() {
		n = max(n, m)
	}
	return n
}
