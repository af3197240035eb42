package bundle

import (
	"errors"
	"fmt"
)

// A Reason says why something could not be looked at. The codes appear in
// reports and are stable; new ones may be added.
type Reason string

// Reason codes.
const (
	NotCollected Reason = "not-collected" // the input does not contain that part of the node
	Absent       Reason = "absent"        // the directory was collected and the file was not in it
	Unreadable   Reason = "unreadable"    // permission denied or an I/O error
	Damaged      Reason = "damaged"       // there, but not decodable
	Truncated    Reason = "truncated"     // cut off, or read only up to a limit
	TooLarge     Reason = "too-large"     // over the size limit of its kind, not read
	Redacted     Reason = "redacted"      // removed on purpose before the input was made
	Refused      Reason = "refused"       // unsafe entry of an archive: link, device, hostile name, alias bomb
	NotRegular   Reason = "not-regular"   // a directory, FIFO, socket or device where a file is expected
	SpoolFull    Reason = "spool-full"    // no room left in the spool
	Unsupported  Reason = "unsupported"   // a format or version this build does not read
	Undecided    Reason = "undecided"     // evidence is there but does not settle the question
	LimitReached Reason = "limit"         // a named limit of the analysis was reached
	FactFailed   Reason = "failed"        // the analysis of this evidence failed; a defect or a resource problem
)

// A MissingError says that a piece of evidence is not there or not usable. It
// becomes a gap in the report and never ends an analysis.
type MissingError struct {
	Evidence string // what was wanted: an evidence kind or a path on the node
	Node     string
	Reason   Reason
	Detail   string // one line for a human, may be empty
	Ref      Ref    // where it was met; zero if nowhere
}

func (e *MissingError) Error() string {
	s := fmt.Sprintf("%s: %s", e.Evidence, e.Reason)
	if e.Node != "" {
		s = e.Node + ": " + s
	}
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

// ReasonOf returns the reason code of an error made by this package, or ""
// for any other error.
func ReasonOf(err error) Reason {
	var m *MissingError
	if errors.As(err, &m) {
		return m.Reason
	}
	return ""
}

// IsAbsent reports whether err says that a file is known to be absent on its
// node, as opposed to not collected or unreadable.
func IsAbsent(err error) bool { return ReasonOf(err) == Absent }
