package adm

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"coldplane/analyze"
	"coldplane/analyze/objects"
	"coldplane/bundle"
)

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// selectorText is a namespace selector in a line.
func selectorText(s *metav1.LabelSelector) string {
	if t := metav1.FormatLabelSelector(s); s != nil && t != "" {
		return t
	}
	return "none"
}

// gapsOfHooks records webhook configurations that could not be read.
func gapsOfHooks(p *analyze.Pass, s *objects.Set) {
	if v, m := s.ValidatingWebhooks(), s.MutatingWebhooks(); !v.Complete() || !m.Complete() {
		p.Unknown(bundle.KindStore, nil, bundle.Damaged, "some webhook configurations cannot be read")
	}
}

func minutes(n float64) time.Duration { return time.Duration(n * float64(time.Minute)) }

// span is an age in two units at most.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
