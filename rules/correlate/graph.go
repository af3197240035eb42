package correlate

import (
	"cmp"
	"slices"

	"coldplane/report"
)

// severityWeight is what a finding is worth in a candidate's score.
func severityWeight(s report.Severity) float64 {
	switch s {
	case report.Critical:
		return 8
	case report.High:
		return 4
	case report.Medium:
		return 2
	case report.Low:
		return 0.5
	}
	return 0
}

func confidenceWeight(c report.Confidence) float64 {
	switch c {
	case report.Certain:
		return 1
	case report.Probable:
		return 0.7
	}
	return 0.4
}

// A graph is which finding can explain which.
type graph struct {
	fs  []*report.Finding
	out [][]arrow // by cause
	in  []int     // holding edges into each

	helped [][]int // by finding: what contributed to it
}

type arrow struct {
	to     int
	weight float64
}

// build finds every edge that holds between findings.
func build(fs []*report.Finding, es []compiled) *graph {
	g := &graph{fs: fs, out: make([][]arrow, len(fs)), in: make([]int, len(fs)), helped: make([][]int, len(fs))}
	texts := make([]string, len(fs))
	for i, f := range fs {
		texts[i] = text(f)
	}
	for i, a := range fs {
		best := map[int]float64{}
		for k := range es {
			e := &es[k]
			if !matches(e.cause, a) || !a.Severity.AtLeast(report.Medium) {
				continue // hygiene explains no symptom
			}
			for j, b := range fs {
				if i == j || !matches(e.effect, b) || !joined(e.join, a, b) || !inTime(e.edge, a, b) || layerOf(a) > layerOf(b) {
					continue
				}
				w := e.weight
				if e.token != nil && e.token.MatchString(texts[j]) {
					w = 1
				}
				if e.join != cluster && elsewhere(fs, e, b) {
					w /= 2 // the same symptom stands on a node without the cause: not sufficient
				}
				best[j] = max(best[j], w)
			}
		}
		for j := range fs {
			if w, ok := best[j]; ok {
				g.out[i] = append(g.out[i], arrow{j, w})
			}
		}
	}
	g.breakCycles()
	for _, as := range g.out {
		for _, a := range as {
			g.in[a.to]++
		}
	}
	return g
}

// contribute finds the contributions that hold.
func (g *graph) contribute(es []compiled) {
	for i, a := range g.fs {
		for k := range es {
			if !matches(es[k].cause, a) || !a.Severity.AtLeast(report.Medium) {
				continue
			}
			for j, b := range g.fs {
				if i != j && matches(es[k].effect, b) && joined(es[k].join, a, b) && !slices.Contains(g.helped[j], i) {
					g.helped[j] = append(g.helped[j], i)
				}
			}
		}
	}
}

// elsewhere reports whether the effect's rule also fires on a node where no
// cause of the edge does.
func elsewhere(fs []*report.Finding, e *compiled, effect *report.Finding) bool {
	for _, f := range fs {
		if f.Rule != effect.Rule || f.Node == effect.Node || f.Node == "" || componentOf(f) != componentOf(effect) {
			continue
		}
		if !slices.ContainsFunc(fs, func(c *report.Finding) bool { return matches(e.cause, c) && joined(e.join, c, f) }) {
			return true
		}
	}
	return false
}

// breakCycles keeps, of two findings that can explain each other, the arrow
// from the lower layer, then the stronger, then the earlier one.
func (g *graph) breakCycles() {
	weight := func(i, j int) float64 {
		for _, a := range g.out[i] {
			if a.to == j {
				return a.weight
			}
		}
		return 0
	}
	for i := range g.out {
		g.out[i] = slices.DeleteFunc(g.out[i], func(a arrow) bool {
			back := weight(a.to, i)
			if back == 0 {
				return false
			}
			li, lj := layerOf(g.fs[i]), layerOf(g.fs[a.to])
			c := cmp.Or(cmp.Compare(li, lj), cmp.Compare(back, a.weight), cmp.Compare(g.fs[i].Rule, g.fs[a.to].Rule), cmp.Compare(i, a.to))
			return c > 0
		})
	}
}

// reach is every finding a root explains, with the product of the weights on
// its best path and the finding before it.
func (g *graph) reach(root int) (weight map[int]float64, from map[int]int) {
	weight, from = map[int]float64{root: 1}, map[int]int{root: -1}
	todo := []int{root}
	for len(todo) > 0 {
		i := todo[0]
		todo = todo[1:]
		for _, a := range g.out[i] {
			if w := weight[i] * a.weight; w > weight[a.to]+1e-9 && a.to != root {
				weight[a.to], from[a.to] = w, i
				todo = append(todo, a.to)
			}
		}
	}
	return weight, from
}
