package report

import "fmt"

// A Severity says how bad a finding is.
type Severity string

// Severities, gravest first.
const (
	Critical Severity = "critical" // writes refused, data loss, control plane down now or certainly at the next routine action
	High     Severity = "high"     // outage at the next restart, upgrade or lost node, or within days
	Medium   Severity = "medium"   // redundancy or truthfulness reduced
	Low      Severity = "low"      // hygiene
	Info     Severity = "info"     // a fact
)

// Severities lists all severities, gravest first.
var severities = [...]Severity{Critical, High, Medium, Low, Info}

// Severities returns all severities, gravest first.
func Severities() []Severity { return severities[:] }

// Rank orders severities: 4 is critical, 0 is info, -1 is none of them.
func (s Severity) Rank() int {
	for i, v := range severities {
		if v == s {
			return len(severities) - 1 - i
		}
	}
	return -1
}

// AtLeast reports whether s is as grave as t or graver.
func (s Severity) AtLeast(t Severity) bool { return s.Rank() >= t.Rank() }

// ParseSeverity reads a severity's name.
func ParseSeverity(s string) (Severity, error) {
	if v := Severity(s); v.Rank() >= 0 {
		return v, nil
	}
	return "", fmt.Errorf("%q is no severity; one of critical, high, medium, low, info", s)
}

// Up returns the next graver severity; critical stays.
func (s Severity) Up() Severity { return s.step(1) }

// Down returns the next milder severity; info stays.
func (s Severity) Down() Severity { return s.step(-1) }

func (s Severity) step(d int) Severity {
	r := min(max(s.Rank()+d, 0), len(severities)-1)
	return severities[len(severities)-1-r]
}

// A Confidence says how sure a finding is.
type Confidence string

// Confidences.
const (
	Certain  Confidence = "certain"  // file or database content proves it
	Probable Confidence = "probable" // two independent hints
	Possible Confidence = "possible" // one hint
)

// An Outcome is what came of one rule for one subject.
type Outcome string

// Outcomes.
const (
	Pass          Outcome = "pass"
	Fail          Outcome = "fail"
	Unknown       Outcome = "unknown"
	NotApplicable Outcome = "not-applicable"
	Suppressed    Outcome = "suppressed"
	Errored       Outcome = "error"
)
