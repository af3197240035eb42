package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// APIVersion and Kind of a report.
const (
	APIVersion = "coldplane/v1"
	Kind       = "Report"
)

// A Report is the whole answer of one analysis.
type Report struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Tool       Tool           `json:"tool"`
	AsOf       *time.Time     `json:"asOf"`
	AsOfSource string         `json:"asOfSource,omitempty"` // "given", "collection", "inferred", "now"; empty when unknown
	Target     string         `json:"target,omitempty"`     // Kubernetes version of a pre-upgrade audit
	Inputs     []Input        `json:"inputs"`
	Verdict    Verdict        `json:"verdict"`
	Findings   []Finding      `json:"findings"`
	Results    []Result       `json:"results"`
	Facts      map[string]any `json:"facts"`
	Timeline   []Event        `json:"timeline"`
	Plan       *Plan          `json:"plan,omitempty"`       // of a pre-upgrade audit
	Baseline   *Baseline      `json:"baseline,omitempty"`   // what changed since an earlier report
	Suppressed []Finding      `json:"suppressed,omitempty"` // findings a waiver covers
}

// Tool says what made the report.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Rules   int    `json:"rules"` // number of rules evaluated
}

// An Input is one input of the analysis.
type Input struct {
	ID          string     `json:"id"`
	Path        string     `json:"path"`
	Format      string     `json:"format"`
	Node        string     `json:"node,omitempty"`
	CollectedAt *time.Time `json:"collectedAt,omitempty"`
	SHA256      string     `json:"sha256,omitempty"`
	State       string     `json:"state"`
	Detail      string     `json:"detail,omitempty"`
	Refused     []Refusal  `json:"refused,omitempty"`
}

// A Refusal is an archive entry that was not accepted.
type Refusal struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// States of a verdict.
const (
	StateCause        = "cause"
	StateCandidates   = "candidates"
	StateUndetermined = "undetermined"
	StateHealthy      = "healthy"
)

// States of a plane.
const (
	PlaneUp       = "up"
	PlaneDegraded = "degraded"
	PlaneDown     = "down"
	PlaneUnknown  = "unknown"
)

// A Verdict is the report's answer.
type Verdict struct {
	State      string      `json:"state"`
	Summary    string      `json:"summary"`
	Headline   *string     `json:"headline"` // id of a finding
	Chain      []ChainLink `json:"chain"`
	Candidates []Candidate `json:"candidates"`
	Collect    []Collect   `json:"collect"`
	Control    string      `json:"control"`
	UserPlane  string      `json:"userPlane"`
	ChainName  string      `json:"chainName,omitempty"` // "C-03 bloat to NOSPACE"
	// Contributing are ids of findings that made the cause or its consequences
	// more likely without being enough for them.
	Contributing []string `json:"contributing,omitempty"`
	Do           []Step   `json:"do,omitempty"`    // first actions, in order
	DoNot        []string `json:"doNot,omitempty"` // what would make it worse
}

// Heading is the verdict's state in words.
func (v Verdict) Heading() string {
	switch v.State {
	case StateCause:
		return "Probable cause found"
	case StateCandidates:
		return "More than one possible cause"
	case StateHealthy:
		return "Nothing wrong found"
	}
	return "Undetermined"
}

// A ChainLink is one step of the causal chain.
type ChainLink struct {
	Finding string `json:"finding"`
	Because string `json:"because"`
}

// A Candidate is a possible root cause when one alone cannot be named.
type Candidate struct {
	Finding string  `json:"finding"`
	Score   float64 `json:"score"`
	Decides string  `json:"decides"` // the observation that would decide
}

// Collect is evidence to get, and how.
type Collect struct {
	What    string `json:"what"`
	Command string `json:"command"`
}

// A Finding is a rule's answer that somebody must act on, or know.
type Finding struct {
	ID          string     `json:"id"`
	Rule        string     `json:"rule"`
	Name        string     `json:"name"`
	Severity    Severity   `json:"severity"`
	Confidence  Confidence `json:"confidence"`
	Node        string     `json:"node,omitempty"`
	Subject     string     `json:"subject"`
	Title       string     `json:"title"` // the rule's title
	Message     string     `json:"message"`
	Evidence    []Evidence `json:"evidence"`
	Fix         []Step     `json:"fix"`
	References  []string   `json:"references"`
	Explains    []string   `json:"explains"`
	ExplainedBy []string   `json:"explainedBy"`
	ObservedAt  *time.Time `json:"observedAt,omitempty"`
	Waiver      *Waiver    `json:"waiver,omitempty"` // only in Report.Suppressed
}

// A Waiver says who accepted a finding and why.
type Waiver struct {
	Reason  string `json:"reason"`
	Expires string `json:"expires,omitempty"`
}

// Roles of evidence.
const (
	RoleSubject  = "subject"  // the line to edit, the file at fault
	RoleExpected = "expected" // the other side of a mismatch
	RoleContext  = "context"
)

// Evidence is where something was read and the value seen there.
type Evidence struct {
	Input    string `json:"input"`
	Node     string `json:"node,omitempty"`
	Path     string `json:"path"`
	Line     int    `json:"line,omitempty"`
	Pointer  string `json:"pointer,omitempty"`
	Offset   int64  `json:"offset,omitempty"`
	Key      string `json:"key,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	Excerpt  string `json:"excerpt,omitempty"`
	Role     string `json:"role"`
}

// Place writes where evidence lies, as path:line or path and key, with the
// node in front unless the path names it. It is not made safe to show.
func (e Evidence) Place() string {
	s := e.Path
	if e.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, e.Line)
	}
	if e.Key != "" {
		s += " " + e.Key
		if e.Revision > 0 {
			s += fmt.Sprintf("@%d", e.Revision)
		}
	} else if e.Offset > 0 {
		s += fmt.Sprintf(" +%d", e.Offset)
	}
	if e.Node != "" && !strings.Contains("/"+e.Path+"/", "/nodes/"+e.Node+"/") {
		s = e.Node + ":" + s
	}
	return s
}

// A Step is one thing to do, with the command for it where there is one.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// A Result is what came of one rule for one subject.
type Result struct {
	Rule    string  `json:"rule"`
	Subject string  `json:"subject"` // a node's name, or "cluster"
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"` // why not-applicable, what failed
	Gaps    []Gap   `json:"gaps"`
}

// A Gap is something that could not be looked at.
type Gap struct {
	Evidence string `json:"evidence"`
	Node     string `json:"node,omitempty"`
	Reason   string `json:"reason"`
	Detail   string `json:"detail,omitempty"`
}

// An Event is one entry of the timeline.
type Event struct {
	Time    time.Time `json:"time"`
	Node    string    `json:"node,omitempty"`
	Source  string    `json:"source"`
	Text    string    `json:"text"`
	Ref     *Evidence `json:"ref,omitempty"`
	Finding string    `json:"finding,omitempty"`

	Kind  string     `json:"kind,omitempty"`  // EventMark, EventGap, EventSpan; "" is an ordinary entry
	Until *time.Time `json:"until,omitempty"` // end of a gap or a span
}

// Kinds of timeline entries.
const (
	EventMark = "mark" // one that tells the story: last good write, alarm, leader change, restore
	EventGap  = "gap"  // nothing was logged from Time to Until
	EventSpan = "span" // something lasted from Time to Until
)

// FindingID makes the stable id of a finding: a hash of rule, node and
// subject, never of paths, lines or values, so that it survives a
// re-collection.
func FindingID(rule, node, subject string) string {
	sum := sha256.Sum256([]byte(rule + "\x00" + node + "\x00" + subject))
	return hex.EncodeToString(sum[:8])
}
