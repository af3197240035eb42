package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tables is what is collected over all releases.
type tables struct {
	flag     map[[2]string][]int // component, flag
	gate     map[string]map[int]gateSpec
	plugin   map[string][]int
	kind     map[string][]int // "group/version kind"
	life     map[string]string
	kubeadms []string
}

type gateSpec struct {
	stage  string
	on     bool
	locked bool
}

func (g gateSpec) String() string {
	s := g.stage + ":off"
	if g.on {
		s = g.stage + ":on"
	}
	if g.locked {
		s += ":locked"
	}
	return s
}

func newTables() *tables {
	return &tables{flag: map[[2]string][]int{}, gate: map[string]map[int]gateSpec{}, plugin: map[string][]int{}, kind: map[string][]int{}, life: map[string]string{}}
}

func (t *tables) lines(name string) []string {
	var out []string
	switch name {
	case "flags.txt":
		for k, ms := range t.flag {
			out = append(out, fmt.Sprintf("%s %s %s", k[0], k[1], ranges(ms)))
		}
	case "admission.txt":
		for k, ms := range t.plugin {
			out = append(out, k+" "+ranges(ms))
		}
	case "kinds.txt":
		for k, ms := range t.kind {
			out = append(out, k+" "+ranges(ms))
		}
	case "removed.txt":
		for k, v := range t.life {
			out = append(out, k+" "+v)
		}
	case "kubeadm.txt":
		out = slices.Clone(t.kubeadms)
	case "gates.txt":
		for name, by := range t.gate {
			ms := slices.Sorted(maps.Keys(by))
			var parts []string
			for i := 0; i < len(ms); {
				j := i
				for j+1 < len(ms) && ms[j+1] == ms[j]+1 && by[ms[j+1]] == by[ms[i]] {
					j++
				}
				parts = append(parts, ranges(ms[i:j+1])+":"+by[ms[i]].String())
				i = j + 1
			}
			out = append(out, name+" "+strings.Join(parts, " "))
		}
	}
	return out
}
