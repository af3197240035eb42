// Package words holds what reports say, in languages other than English.
//
// English text is the key and stands in the code that prints it; a catalogue
// translates it. What has no translation stays English, so that a new sentence
// never breaks a report. Rules' titles, reasons and fixes are translated by
// rule id; a translation made from an older English text is not used.
package words

import (
	"embed"
	"fmt"
	"hash/fnv"
	"slices"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
	"sigs.k8s.io/yaml"
)

//go:embed ko.yaml ko-rules.yaml
var files embed.FS

// A RuleText is a rule's documentation in one language.
type RuleText struct {
	Title, Why, Fix string
}

// A translation is one text and the mark of the English one it was made from.
type translation struct {
	Of   string `json:"of"` // Sum
	Text string `json:"text"`
}

// of returns the translation of an English text, or that text when there is
// none or it was made from another one.
func (t translation) of(english string) string {
	if t.Text == "" || t.Of != Sum(english) {
		return english
	}
	return t.Text
}

// ruleWords are a rule's texts in one language; each may be missing.
type ruleWords struct {
	Title translation `json:"title"`
	Why   translation `json:"why"`
	Fix   translation `json:"fix"`
}

// Words speaks one language.
type Words struct {
	tag     language.Tag
	printer *message.Printer
	said    map[string]string    // English -> translation, fmt verbs kept
	rules   map[string]ruleWords // by rule id
}

// Languages returns the names For takes.
func Languages() []string { return []string{"en", "ko"} }

// Known reports whether For knows the language.
func Known(lang string) bool { return lang == "" || slices.Contains(Languages(), lang) }

// For returns the words of a language; "" and unknown ones are English.
func For(lang string) *Words {
	w := &Words{tag: language.English}
	if lang == "ko" {
		w.tag = language.Korean
		w.said, w.rules = read[map[string]string]("ko.yaml"), read[map[string]ruleWords]("ko-rules.yaml")
	}
	b := catalog.NewBuilder(catalog.Fallback(language.English))
	for k, v := range w.said {
		if err := b.SetString(w.tag, k, v); err != nil {
			continue
		}
	}
	w.printer = message.NewPrinter(w.tag, message.Catalog(b))
	return w
}

// read reads an embedded file; a test holds all of them well-formed.
func read[T any](name string) (v T) {
	b, err := files.ReadFile(name)
	if err != nil {
		return v
	}
	if err := yaml.UnmarshalStrict(b, &v); err != nil {
		var zero T
		return zero
	}
	return v
}

// Lang is the language's name, for lang attributes.
func (w *Words) Lang() string { return w.tag.String() }

// T translates a sentence and fills in its arguments, as fmt.Sprintf does.
// Numbers are written with their thousands apart.
func (w *Words) T(format string, args ...any) string {
	if len(args) == 0 {
		if s, ok := w.said[format]; ok {
			return s
		}
		return format
	}
	return w.printer.Sprintf(format, args...)
}

// Has reports whether a sentence is translated.
func (w *Words) Has(s string) bool {
	_, ok := w.said[s]
	return ok
}

// Rule returns a rule's texts as far as they are translated from exactly these
// English ones; the rest stays English; translated says
// whether the title is.
func (w *Words) Rule(id, title, why, fix string) (t RuleText, translated bool) {
	x := w.rules[id]
	t = RuleText{Title: x.Title.of(title), Why: x.Why.of(why), Fix: x.Fix.of(fix)}
	return t, t.Title != title
}

// Messages returns the English sentences that have a translation, sorted.
func (w *Words) Messages() []string {
	var out []string
	for k := range w.said {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// RuleIDs returns the rules that have a translation, sorted.
func (w *Words) RuleIDs() []string {
	var out []string
	for k := range w.rules {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Sum marks the English texts a translation was made from.
func Sum(texts ...string) string {
	h := fnv.New32a()
	for _, t := range texts {
		h.Write([]byte(t))
		h.Write([]byte{0})
	}
	return fmt.Sprintf("%08x", h.Sum32())
}
