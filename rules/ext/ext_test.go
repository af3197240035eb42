package ext

import (
	"testing"

	"coldplane/analyze/analyzetest"
)

func TestRules(t *testing.T) { analyzetest.Run(t, &Rules, ".") }
