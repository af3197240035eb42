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

// RealTimes reports whether the node's files carry the modification times
// they had on the node. Version control and plain copies give all files one
// time, or times after the collection.
func (n *Node) RealTimes(asOf time.Time) bool {
	var first, last time.Time
	seen := 0
	note := func(t time.Time) bool {
		if t.IsZero() {
			return true
		}
		if t.After(asOf.Add(time.Minute)) {
			return false
		}
		if seen == 0 || t.Before(first) {
			first = t
		}
		if seen == 0 || t.After(last) {
			last = t
		}
		seen++
		return true
	}
	for _, c := range n.Credentials {
		if !note(c.Source.ModTime) {
			return false
		}
	}
	for _, a := range n.CAs {
		if !note(a.Source.ModTime) {
			return false
		}
	}
	return seen > 1 && last.Sub(first) >= time.Second
}
