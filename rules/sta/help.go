package sta

import (
	"errors"

	"coldplane/bundle"
	"coldplane/bundle/decode/yamldoc"
)

// asMissing reports whether err says why evidence is not usable, and hands it over.
func asMissing(err error, m **bundle.MissingError) bool { return errors.As(err, m) }

// pointerEscape writes one token of a JSON pointer.
func pointerEscape(s string) string { return yamldoc.Escape(s) }
