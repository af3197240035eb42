package hostfacts

import "time"

// LadderPath is the connectivity ladder: []Target.
const LadderPath = "/probe/ladder.json"

// A Target is one address as the node tried it: the API's endpoint, an API
// server, or an etcd member.
type Target struct {
	Name  string `json:"name"` // "endpoint" for the cluster's own endpoint, "local" for this node's API server, "apiserver" for another, "etcd" for a member
	URL   string `json:"url"`  // "https://10.0.0.100:6443"
	Rungs []Rung `json:"rungs"`
}

// A Rung is one step of the ladder. Each is tried by itself; above a port that
// does not answer none is.
type Rung struct {
	Step      string    `json:"step"` // "tcp", "tls", "livez", "readyz", "get" (an authenticated GET of namespace kube-system), "health" (of etcd)
	OK        bool      `json:"ok"`
	Status    int       `json:"status,omitempty"` // HTTP
	LatencyMS int64     `json:"latencyMS"`
	Error     string    `json:"error,omitempty"`
	At        time.Time `json:"at"`             // by the node's clock
	Date      string    `json:"date,omitempty"` // the server's Date header
	Body      string    `json:"body,omitempty"` // first lines of a health answer
	Cert      *Shown    `json:"certificate,omitempty"`
}

// Shown is the certificate that a server showed, trusted or not.
type Shown struct {
	Subject  string    `json:"subject"`
	Issuer   string    `json:"issuer"`
	Serial   string    `json:"serial"` // decimal
	NotAfter time.Time `json:"notAfter"`
}
