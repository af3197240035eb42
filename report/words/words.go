// Package words holds what reports say, in languages other than English.
//
// English text is the key and stands in the code that prints it; a catalogue
// translates it. What has no translation stays English, so that a new sentence
// never breaks a report. Rules' titles, reasons and fixes are translated by
// rule id; a translation made from an older English text is not used.
package words

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"slices"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
	"sigs.k8s.io/yaml"
)

//go:embed ko.yaml
var korean []byte

// A file is a language's catalogue.
type file struct {
	Messages map[string]string   `json:"messages"` // English -> translation, fmt verbs kept
	Rules    map[string]RuleText `json:"rules"`    // rule id -> its texts
}

// A RuleText is a rule's documentation in one language.
type RuleText struct {
	Of    string `json:"of"` // Sum of the English texts it was made from
	Title string `json:"title"`
	Why   string `json:"why"`
	Fix   string `json:"fix"`
}

// Words speaks one language.
type Words struct {
	tag     language.Tag
	printer *message.Printer
	file    file
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
		if err := yaml.UnmarshalStrict(korean, &w.file); err != nil {
			w.file = file{} // a test holds the catalogue well-formed
		}
	}
	b := catalog.NewBuilder(catalog.Fallback(language.English))
	for k, v := range w.file.Messages {
		if err := b.SetString(w.tag, k, v); err != nil {
			continue
		}
	}
	w.printer = message.NewPrinter(w.tag, message.Catalog(b))
	return w
}

// Lang is the language's name, for lang attributes.
func (w *Words) Lang() string { return w.tag.String() }

// T translates a sentence and fills in its arguments, as fmt.Sprintf does.
// Numbers are written with their thousands apart.
func (w *Words) T(format string, args ...any) string {
	if len(args) == 0 {
		if s, ok := w.file.Messages[format]; ok {
			return s
		}
		return format
	}
	return w.printer.Sprintf(format, args...)
}

// Has reports whether a sentence is translated.
func (w *Words) Has(s string) bool {
	_, ok := w.file.Messages[s]
	return ok
}

// Rule returns a rule's translation, made from exactly these English texts.
func (w *Words) Rule(id, title, why, fix string) (RuleText, bool) {
	t, ok := w.file.Rules[id]
	if !ok || t.Of != Sum(title, why, fix) {
		return RuleText{Title: title, Why: why, Fix: fix}, false
	}
	return t, true
}

// Messages returns the English sentences that have a translation, sorted.
func (w *Words) Messages() []string {
	var out []string
	for k := range w.file.Messages {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// RuleIDs returns the rules that have a translation, sorted.
func (w *Words) RuleIDs() []string {
	var out []string
	for k := range w.file.Rules {
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
