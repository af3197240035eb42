package report

// States of a Plan.
const (
	PlanReady    = "ready"    // nothing at medium or above, every upgrade question answered
	PlanWarnings = "warnings" // nothing that stops it; something to settle first
	PlanBlocked  = "blocked"  // a critical finding
	PlanUnknown  = "unknown"  // nothing found, but questions are open
)

// A Plan is the ordered checklist of an upgrade to a target.
type Plan struct {
	From     string      `json:"from"` // Kubernetes version that runs; "" when unknown
	Target   string      `json:"target"`
	State    string      `json:"state"`
	Summary  string      `json:"summary"`
	Blockers []string    `json:"blockers"` // ids of findings
	Warnings []string    `json:"warnings"`
	Open     []string    `json:"open"`  // ids of upgrade rules that could not be answered
	First    []Step      `json:"first"` // before anything is touched
	Stages   []PlanStage `json:"stages"`
	Rewrites []Rewrite   `json:"rewrites"`
}

// A PlanStage is one minor of the way.
type PlanStage struct {
	Version string     `json:"version"`
	Etcd    string     `json:"etcd,omitempty"` // image tag the stage brings; "" when unknown or external
	Steps   []PlanStep `json:"steps"`
}

// A PlanStep is one thing to do on one node, in order.
type PlanStep struct {
	Node    string `json:"node,omitempty"`
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// A Rewrite is one change kubeadm makes to a manifest.
type Rewrite struct {
	Node      string `json:"node"`
	Component string `json:"component"`
	Item      string `json:"item"`
	Have      string `json:"have,omitempty"`
	Want      string `json:"want,omitempty"`
	HandEdit  bool   `json:"handEdit"` // made by hand, not a default of the running minor
	Loses     string `json:"loses,omitempty"`
}

// A Baseline is what changed since an earlier report.
type Baseline struct {
	Version    string    `json:"version,omitempty"` // of the tool that made it
	New        []string  `json:"new"`               // ids of findings that were not there
	Fixed      []Finding `json:"fixed"`             // findings that are gone
	Unanswered []Finding `json:"unanswered"`        // gone because the question can no longer be answered
	Unchanged  int       `json:"unchanged"`
}

// Against compares the report with an earlier one. A finding whose rule is
// unknown now is not fixed: it could not be looked for.
func (r *Report) Against(old *Report) *Baseline {
	b := &Baseline{Version: old.Tool.Version, New: []string{}, Fixed: []Finding{}, Unanswered: []Finding{}}
	had := map[string]bool{}
	for _, f := range old.Findings {
		had[f.ID] = true
	}
	for _, f := range r.Findings {
		if had[f.ID] {
			b.Unchanged++
		} else {
			b.New = append(b.New, f.ID)
		}
	}
	outcome, cluster := map[string]Outcome{}, map[string]bool{}
	for _, x := range r.Results {
		outcome[x.Rule+"\x00"+x.Subject] = x.Outcome
		cluster[x.Rule] = cluster[x.Rule] || x.Subject == "cluster"
		if o, ok := outcome[x.Rule]; !ok || x.Outcome == Unknown && o != Unknown {
			outcome[x.Rule] = x.Outcome
		}
	}
	for _, f := range old.Findings {
		if r.Find(f.ID) != nil {
			continue
		}
		waived := false
		for _, s := range r.Suppressed {
			waived = waived || s.ID == f.ID
		}
		if waived {
			continue
		}
		key := f.Rule
		if f.Node != "" {
			key += "\x00" + f.Node
			if _, ok := outcome[key]; !ok && cluster[f.Rule] {
				key = f.Rule // a cluster rule's finding about one node
			}
		}
		o, ok := outcome[key]
		if !ok || o == Unknown || o == Errored {
			b.Unanswered = append(b.Unanswered, f)
		} else {
			b.Fixed = append(b.Fixed, f)
		}
	}
	return b
}
