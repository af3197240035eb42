package html

import (
	"testing"
	"time"

	"coldplane/report"
)

func TestAfterLull(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(hours ...int) (es []report.Event) {
		for _, h := range hours {
			es = append(es, report.Event{Time: t0.Add(time.Duration(h) * time.Hour)})
		}
		return es
	}
	for _, c := range []struct {
		name  string
		hours []int
		want  int // hour the picture begins at
	}{
		{"dense", []int{0, 1, 2, 3, 4}, 0},
		{"one old entry", []int{0, 900, 901, 902, 903, 904}, 900},
		{"two lulls", []int{0, 1000, 1900, 1901, 1902, 1903, 1904, 1905, 1906, 1907}, 1900},
		{"as much before as after", []int{0, 1, 2, 900, 901, 902}, 0},
		{"alone", []int{5}, 5},
	} {
		es := at(c.hours...)
		got := afterLull(es, es[0].Time, es[len(es)-1].Time)
		if want := t0.Add(time.Duration(c.want) * time.Hour); !got.Equal(want) {
			t.Errorf("%s: begins at %v, want %v", c.name, got, want)
		}
	}
}
