package signature

import (
	"bytes"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	table := Table()
	if err := Validate(table); err != nil {
		t.Fatal(err)
	}
	if len(table) < 240 {
		t.Errorf("%d signatures, want at least 240", len(table))
	}
	if _, err := NewMatcher(table); err != nil {
		t.Fatal(err)
	}
}

func TestValidateRefuses(t *testing.T) {
	good := Signature{ID: "T01", Texts: []string{"long enough text"}, By: Etcd, Means: "m", Source: "s"}
	for name, change := range map[string]func(*Signature){
		"short text":    func(s *Signature) { s.Texts = []string{"short"} },
		"short parts":   func(s *Signature) { s.Texts = []string{"short … parts"} },
		"no emitter":    func(s *Signature) { s.By = 0 },
		"no meaning":    func(s *Signature) { s.Means = "" },
		"no source":     func(s *Signature) { s.Source = "" },
		"no ID":         func(s *Signature) { s.ID = "" },
		"no text":       func(s *Signature) { s.Texts = nil },
		"ID used twice": func(s *Signature) {},
	} {
		bad := good
		change(&bad)
		table := []Signature{bad}
		if name == "ID used twice" {
			table = append(table, bad)
		}
		if Validate(table) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// naive finds every literal at every position.
func naive(b []byte, lits []string) []Hit {
	var hits []Hit
	for i, l := range lits {
		for at := 0; ; {
			j := bytes.Index(b[at:], []byte(l))
			if j < 0 {
				break
			}
			hits = append(hits, Hit{i, at + j})
			at += j + 1
		}
	}
	return hits
}

func sorted(h []Hit) []Hit {
	sort.Slice(h, func(i, j int) bool {
		return h[i].Pos < h[j].Pos || h[i].Pos == h[j].Pos && h[i].Index < h[j].Index
	})
	return h
}

// TestFilterFindsAll compares the filter with a plain search, at every
// alignment and with literals at both ends of the input.
func TestFilterFindsAll(t *testing.T) {
	var lits []string
	for _, s := range Table() {
		for _, tx := range s.Texts {
			lits = append(lits, longestPart(tx))
		}
	}
	f := newFilter(lits)
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		var b bytes.Buffer
		for range rnd.IntN(4) + 1 {
			b.WriteString(strings.Repeat("x", rnd.IntN(13)))
			b.WriteString(lits[rnd.IntN(len(lits))])
			if rnd.IntN(3) == 0 { // a near miss
				l := lits[rnd.IntN(len(lits))]
				b.WriteString(l[:len(l)-1])
			}
		}
		got := sorted(f.find(b.Bytes(), nil))
		if diff := cmp.Diff(sorted(naive(b.Bytes(), lits)), got); diff != "" {
			t.Fatalf("round %d, %q (-want +got):\n%s", round, b.String(), diff)
		}
	}
}

// FuzzFilter: on any input the filter finds exactly what a plain search finds,
// and never reads outside the input.
func FuzzFilter(f *testing.F) {
	lits := []string{"lost leader", "lost lease", "slow fdatasync", "Probe failed", "tocommit("}
	flt := newFilter(lits)
	f.Add([]byte("a lost leader\nlost lease slow fdatasync"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if diff := cmp.Diff(sorted(naive(b, lits)), sorted(flt.find(b, nil))); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestInAndSubmatch(t *testing.T) {
	table := []Signature{
		{ID: "T01", Texts: []string{"tocommit(… is out of range [lastIndex("}, By: Etcd, Means: "m", Source: "s",
			Pattern: `tocommit\((?P<commit>\d+)\)`},
		{ID: "T02", Texts: []string{"command failed"}, By: Etcd, Means: "m", Source: "s", Start: true},
	}
	m, err := NewMatcher(table, "a mark of the caller")
	if err != nil {
		t.Fatal(err)
	}
	line := []byte("panic: tocommit(216) is out of range [lastIndex(114)]; command failed; a mark of the caller")
	hits := m.Find(line, nil)
	if len(hits) != 3 {
		t.Fatalf("hits %v, want three", hits)
	}
	for _, h := range hits {
		switch {
		case h.Index >= m.Marks():
		case m.Sig(h) == 0:
			if !m.In(h, line) || m.In(h, []byte("tocommit(1")) {
				t.Error("T01: the parts must follow one another in the line")
			}
		case m.Sig(h) == 1 && m.In(h, line):
			t.Error("T02 must be at the start")
		}
	}
	if g := m.Submatch(0, line); len(g) != 2 || string(g[1]) != "216" {
		t.Errorf("groups %q", g)
	}
	if _, err := NewMatcher(table, "short"); err == nil {
		t.Error("a short mark was accepted")
	}
}

func TestNamed(t *testing.T) {
	for name, want := range map[string]Emitter{"etcd": Etcd, "kubelet.service": Kubelet, "kube-apiserver": APIServer,
		"kernel": Kernel, "keepalived": VIP, "nginx": 0, "": 0} {
		if got := Named(name); got != want {
			t.Errorf("Named(%q) = %v, want %v", name, got, want)
		}
	}
	if s := (Etcd | Kubelet).String(); s != "etcd|kubelet" {
		t.Errorf("String: %q", s)
	}
}
