package words

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"coldplane/report"
)

// A saying is a sentence of reports whose gaps (in the catalogue %s, and %d for
// digits) hold what the evidence names. It is recognised in a finished report, so that a report
// rendered elsewhere from its JSON is translated as well.
type saying struct {
	english string
	parts   []string // the English text between the gaps
	digits  []bool   // per gap: it holds digits only
	said    string   // the translation, with the same gaps in the same order
}

var gap = regexp.MustCompile(`%[sd]`)

// sayings splits the catalogue's keys; those that say most come first.
func sayings(said map[string]string) []saying {
	var out []saying
	for k, v := range said {
		s := saying{english: k, parts: gap.Split(k, -1), said: v}
		for _, verb := range gap.FindAllString(k, -1) {
			s.digits = append(s.digits, verb == "%d")
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b saying) int {
		return cmp.Or(len(b.english)-len(a.english), strings.Compare(a.english, b.english))
	})
	return out
}

// match returns what stands in the gaps of a text; no gap is empty.
func (s saying) match(text string) (gaps []string, ok bool) {
	text, ok = strings.CutPrefix(text, s.parts[0])
	if !ok || len(s.parts) == 1 {
		return nil, ok && text == ""
	}
	text, ok = strings.CutSuffix(text, s.parts[len(s.parts)-1])
	if !ok {
		return nil, false
	}
	for _, p := range s.parts[1 : len(s.parts)-1] {
		before, after, found := strings.Cut(text, p)
		if !found {
			return nil, false
		}
		gaps, text = append(gaps, before), after
	}
	gaps = append(gaps, text)
	for i, g := range gaps {
		if g == "" || s.digits[i] && strings.Trim(g, "0123456789") != "" {
			return nil, false
		}
	}
	return gaps, true
}

// Say translates a finished sentence of a report, with what it names kept as
// it is. A sentence the catalogue does not know comes back unchanged.
func (w *Words) Say(text string) string {
	for _, s := range w.says {
		if gaps, ok := s.match(text); ok {
			pieces := gap.Split(s.said, -1)
			var b strings.Builder
			for i, p := range pieces {
				b.WriteString(p)
				if i < len(gaps) {
					b.WriteString(gaps[i])
				}
			}
			return b.String()
		}
	}
	return text
}

// Report returns the report with its steps, causes and other sentences in the
// language, as far as they are translated. What was found (messages, evidence)
// stays as it is. The report given is not changed.
func (w *Words) Report(r *report.Report, o report.Options) *report.Report {
	if len(w.says) == 0 {
		return r
	}
	out := *r
	out.Findings = slices.Clone(r.Findings)
	advice := map[string]string{} // the rules' own advice, English to translated
	for _, d := range o.Rules {
		t, _ := w.Rule(d.ID, d.Title, d.Why, d.Fix)
		advice[d.Fix] = t.Fix
	}
	steps := func(in []report.Step) []report.Step {
		in = slices.Clone(in)
		for i, s := range in {
			if t, ok := advice[s.Text]; ok {
				in[i].Text = t
				continue
			}
			in[i].Text = w.Say(s.Text)
		}
		return in
	}
	for i := range out.Findings {
		out.Findings[i].Fix = steps(out.Findings[i].Fix)
	}
	v := &out.Verdict
	v.Summary, v.Do = w.summary(r, steps), steps(v.Do)
	v.Chain, v.DoNot, v.Collect, v.Candidates = slices.Clone(v.Chain), slices.Clone(v.DoNot), slices.Clone(v.Collect), slices.Clone(v.Candidates)
	for i := range v.Chain {
		v.Chain[i].Because = w.Say(v.Chain[i].Because)
	}
	for i := range v.Candidates {
		v.Candidates[i].Decides = w.Say(v.Candidates[i].Decides)
	}
	for i := range v.DoNot {
		v.DoNot[i] = w.Say(v.DoNot[i])
	}
	for i := range v.Collect {
		v.Collect[i].What = w.Say(v.Collect[i].What)
	}
	v.ChainName = w.Say(v.ChainName)
	return &out
}

// summary translates the frame of the verdict's sentence and its first step;
// what was found between them stays.
func (w *Words) summary(r *report.Report, steps func([]report.Step) []report.Step) string {
	s := r.Verdict.Summary
	f := r.HeadlineFinding()
	if f == nil || len(f.Fix) == 0 {
		return w.Say(s)
	}
	first := strings.TrimSuffix(f.Fix[0].Text, ".")
	rest, ok := strings.CutSuffix(s, " First: "+first+".")
	if !ok {
		return w.Say(s)
	}
	return w.Say(rest) + " " + w.Say("First: "+steps(f.Fix[:1])[0].Text)
}

// Speaks reports whether all of a finding's steps are in the language, so that
// the rule's advice need not be given beside them. It looks for Hangul.
func (w *Words) Speaks(steps []report.Step) bool {
	for _, s := range steps {
		if !strings.ContainsFunc(s.Text, func(r rune) bool { return unicode.Is(unicode.Hangul, r) }) {
			return false
		}
	}
	return true
}
