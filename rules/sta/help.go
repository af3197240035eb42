package sta

import (
	"errors"

	"coldplane/bundle"
)

// asMissing reports whether err says why evidence is not usable, and hands it over.
func asMissing(err error, m **bundle.MissingError) bool { return errors.As(err, m) }
