package hav

import (
	"time"

	"coldplane/analyze"
	"coldplane/analyze/cri"
	"coldplane/analyze/staticpod"
)

// apiState is what the nodes' containers say of the API servers together.
type apiState int

const (
	apiUnseen apiState = iota // no list of containers shows one
	apiDown                   // known, and none runs
	apiYoung                  // the oldest running one has hardly begun
	apiUp
)

// apiServers tells whether anything was there that writes to the store.
func apiServers(p *analyze.Pass, young time.Duration) apiState {
	state := apiUnseen
	for _, n := range p.Nodes() {
		v, err := cri.OnNode.Try(p, n)
		if err != nil || !v.Listed || v.Newest(staticpod.APIServer) == nil {
			continue
		}
		run := v.Running(staticpod.APIServer)
		if run == nil {
			state = max(state, apiDown)
			continue
		}
		now, ok := p.AsOf(n)
		if ok && !run.Began().IsZero() && now.Sub(run.Began()) < young {
			state = max(state, apiYoung)
			continue
		}
		state = apiUp
	}
	return state
}
