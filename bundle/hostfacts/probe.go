package hostfacts

import "time"

// LadderPath is the connectivity ladder: []Target.
const LadderPath = "/probe/ladder.json"

// A Target is one endpoint of the API as the node tried it.
type Target struct {
	Name  string `json:"name"` // "endpoint" for the cluster's own endpoint, "local", or the name of a backend's node
	URL   string `json:"url"`  // "https://10.0.0.100:6443"
	Rungs []Rung `json:"rungs"`
}

// A Rung is one step of the ladder. Steps that were not reached are absent.
type Rung struct {
	Step      string    `json:"step"` // "tcp", "tls", "livez", "readyz", "get" (an authenticated GET of namespace kube-system)
	OK        bool      `json:"ok"`
	Status    int       `json:"status,omitempty"` // HTTP
	LatencyMS int64     `json:"latencyMS"`
	Error     string    `json:"error,omitempty"`
	At        time.Time `json:"at"`
}
