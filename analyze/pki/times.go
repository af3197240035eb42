package pki

import "time"

// Changed is when a credential file last changed, as far as that can be
// known: the certificate's own issue time, or the file's modification time
// when the evidence carries real ones. backed is false when only the issue
// time counts.
func (c *Credential) Changed(asOf time.Time, reliable bool) (t time.Time, backed bool) {
	if x := c.Cert(); x != nil {
		t = x.NotBefore
	}
	if m := c.Source.ModTime; reliable && m.After(t) && !m.After(asOf) {
		return m.UTC(), true
	}
	return t.UTC(), false
}
