package report

import "io"

// Options of a format. Each uses what it can.
type Options struct {
	Width int    // columns of text; 0 is 100
	Color bool   // ANSI colours in text
	Wide  bool   // everything: all evidence, info findings, results
	Lang  string // "" or "en", "ko"; see package words

	// Rules documents the rules that were asked. A report says only what
	// came of them; formats that print titles, reasons and help of rules
	// without a finding look here and manage without.
	Rules []RuleDoc
}

// A Renderer writes a report in one format. It computes nothing that another
// format would have to compute again, and returns every write error.
type Renderer func(w io.Writer, r *Report, o Options) error

// A RuleDoc is what a rule says about itself.
type RuleDoc struct {
	ID, Name   string
	Title      string
	Why        string
	Fix        string
	Links      []string
	Severities []Severity // gravest first
}

// Rule returns the documentation of a rule; ok is false when there is none.
func (o Options) Rule(id string) (d RuleDoc, ok bool) {
	for _, r := range o.Rules {
		if r.ID == id {
			return r, true
		}
	}
	return RuleDoc{ID: id}, false
}
