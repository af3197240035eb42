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
	"io/fs"
	"maps"
	"slices"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
	"sigs.k8s.io/yaml"
)

// A language has a directory: report.yaml holds what the reports say, keyed by
// the English sentence, rules/ a file per family with rule ids and in "of" the
// mark (Sum) of the English text that was translated, say/ sentences that stand
// in a report's fields (steps, causes), %s and %d for what they name.
//
//go:embed ko
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
	says    []saying
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
		w.said, w.rules = read[string]("ko/report.yaml"), read[ruleWords]("ko/rules/*.yaml")
		w.says = sayings(read[string]("ko/say/*.yaml"))
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

// read merges the embedded files that match; a test holds them well-formed.
func read[T any](pattern string) map[string]T {
	all := map[string]T{}
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return all
	}
	for _, name := range names {
		var part map[string]T
		if b, err := files.ReadFile(name); err == nil && yaml.UnmarshalStrict(b, &part) == nil {
			maps.Copy(all, part)
		}
	}
	return all
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

// Sayings returns the English sentences Say knows, with their gaps, and the
// translations.
func (w *Words) Sayings() map[string]string {
	out := map[string]string{}
	for _, s := range w.says {
		out[s.english] = s.said
	}
	return out
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

// Marks returns which English title, reason and fix (Sum) a rule's translations
// were made from, "" where there is none.
func (w *Words) Marks(id string) [3]string {
	x := w.rules[id]
	return [3]string{x.Title.Of, x.Why.Of, x.Fix.Of}
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
