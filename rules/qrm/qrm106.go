package qrm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"coldplane/analyze"
	"coldplane/analyze/logs"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
	"coldplane/report"
)

var _ = Rules.Add(&analyze.Rule{
	ID: "QRM106", Name: "etcd-slow-disk", Scope: analyze.PerNode,
	Severities: []report.Severity{report.High, report.Medium},
	Doc: analyze.Doc{
		Title: "The disk under etcd is too slow",
		Why: "etcd answers a write only after it is on the disk of a majority. When syncing takes seconds, the leader misses its heartbeats, " +
			"elections follow, requests time out and controllers lose their leases, although nothing in Kubernetes is wrong.",
		Fix: "Find what else writes to that device; put etcd's data directory on a local SSD of its own; raise its I/O priority until then. Measure with fio " +
			"(--fdatasync=1 --bs=2300): the 99th percentile of a sync should stay below 10 ms.",
		Links: []string{"https://etcd.io/docs/v3.6/op-guide/hardware/", "https://github.com/kubernetes/kubernetes/issues/88111"},
		Since: "v0.1",
	},
	Params: []analyze.Param{
		{Name: "sync", Default: 1000, Unit: "milliseconds", Source: "etcd server/storage/wal/wal.go, warnSyncDuration"},
		{Name: "heartbeats", Default: 10, Unit: "per hour"},
		{Name: "apply", Default: 500, Unit: "milliseconds, 95th percentile", Source: "etcd FAQ"},
		{Name: "applies", Default: 100, Unit: "per hour"},
		{Name: "recent", Default: 24, Unit: "hours"},
	},
	Needs: []analyze.Need{logs.OnNode},
	Run:   slowDisk,
})

func slowDisk(p *analyze.Pass) error {
	n, _ := logs.OnNode.In(p)
	if !n.Has(signature.Etcd) {
		p.Unknown(bundle.KindLogs, p.Node(), bundle.NotCollected, "no etcd log")
		return nil
	}
	quiet := n.Silences(30 * time.Second)
	busy := busyWindows(n)
	// What follows a silence of the whole node was suspended; what a
	// defragmentation delays is no fault of the disk.
	excused := func(at logs.At) bool {
		return logs.Suspended(quiet, at.Time, took(at)) || slices.ContainsFunc(busy, func(w window) bool { return !at.Time.Before(w.from) && !at.Time.After(w.to) })
	}
	var syncs, applies []slow
	for _, at := range n.Hits(signature.Etcd, "E05") {
		if d := took(at); d >= ms(p.Param("sync")) && !excused(at) {
			syncs = append(syncs, slow{at, d})
		}
	}
	for _, at := range n.Hits(signature.Etcd, "E07") {
		if !largeRead(at) && !excused(at) {
			applies = append(applies, slow{at, took(at)})
		}
	}
	late := logs.Busiest(n.Find(signature.Etcd, "E06"))
	lateHits := n.Hits(signature.Etcd, "E06")
	all := logs.Busiest(n.Find(signature.Etcd, "E07"))
	if total := len(n.Hits(signature.Etcd, "E07")); total > 0 { // what was excused does not count
		all.Count = all.Count * len(applies) / total
	}
	worst := func(s []slow) []slow {
		s = slices.Clone(s)
		slices.SortStableFunc(s, func(a, b slow) int { return cmp.Compare(b.took, a.took) })
		return s
	}
	var p95 time.Duration
	if len(applies) >= 10 {
		w := worst(applies)
		p95 = w[len(w)/20].took
	}
	f := analyze.Finding{Subject: "etcd disk", Severity: report.High, Confidence: report.Probable}
	var said []string
	for _, s := range head(worst(syncs), 3) {
		f.Evidence = append(f.Evidence, analyze.Context(s.at.Ref(), s.at.Excerpt()))
	}
	if len(syncs) > 0 {
		said = append(said, fmt.Sprintf("%s of the write-ahead log, the longest %s", howMany(len(syncs)+dropped(n, "E05"), "slow sync"), worst(syncs)[0].took))
		if len(syncs) == 1 && len(applies) == 0 && len(lateHits) == 0 {
			f.Confidence = report.Possible
		}
	}
	if late.Count > int(p.Param("heartbeats")) && len(lateHits) > 0 {
		said = append(said, fmt.Sprintf("%d late heartbeats in the worst hour", late.Count))
		f.Evidence = append(f.Evidence, analyze.Context(lateHits[len(lateHits)-1].Ref(), lateHits[len(lateHits)-1].Excerpt()))
	}
	if p95 > ms(p.Param("apply")) {
		said = append(said, fmt.Sprintf("requests needed %s at the 95th percentile", p95))
	}
	if len(said) == 0 {
		if all.Count <= int(p.Param("applies")) {
			return nil
		}
		f.Severity = report.Medium
		said = append(said, fmt.Sprintf("%d slow requests in the worst hour, 95th percentile %s", all.Count, p95))
	}
	for _, s := range head(worst(applies), 2) {
		f.Evidence = append(f.Evidence, analyze.Context(s.at.Ref(), s.at.Excerpt()))
	}
	if len(f.Evidence) == 0 {
		return nil
	}
	f.Evidence[0].Role = report.RoleSubject
	f.ObservedAt = firstTime(syncs, applies, lateHits)
	if now, ok := p.AsOf(p.Node()); ok {
		newest := lastTime(syncs, applies, lateHits)
		if !newest.IsZero() && now.Sub(newest) > time.Duration(p.Param("recent"))*time.Hour {
			f.Severity = report.Medium
			said = append(said, "last at "+clock(newest))
		}
	}
	f.Message = "the disk under etcd is slow: " + strings.Join(said, "; ")
	p.Report(f)
	return nil
}

type slow struct {
	at   logs.At
	took time.Duration
}

type window struct{ from, to time.Time }

// busyWindows are the times in which a member defragments: it serves nothing.
func busyWindows(n *logs.Node) []window {
	var out []window
	ends := n.Hits(signature.Etcd, "E78")
	for _, s := range n.Hits(signature.Etcd, "E56") {
		w := window{s.Time, s.Time.Add(30 * time.Second)}
		for _, e := range ends {
			if e.Time.After(s.Time) {
				w.to = e.Time.Add(5 * time.Second)
				break
			}
		}
		out = append(out, w)
	}
	return out
}

// largeRead reports whether a slow request is a list of many or large objects:
// expensive by itself.
func largeRead(at logs.At) bool {
	if !strings.HasPrefix(at.Value("prefix"), "read-only") {
		return false
	}
	_, size, ok := strings.Cut(at.Value("response"), "size:")
	return ok && len(size) >= 6 // 100 kB and more
}

func took(at logs.At) time.Duration {
	d, err := time.ParseDuration(at.Value("took"))
	if err != nil {
		return 0
	}
	return d
}

func ms(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }

func head[T any](s []T, n int) []T { return s[:min(len(s), n)] }

func howMany(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// dropped is how many occurrences are counted but not kept one by one.
func dropped(n *logs.Node, id string) int {
	d := 0
	for _, f := range n.Find(signature.Etcd, id) {
		d += f.Dropped
	}
	return d
}

func firstTime(a, b []slow, c []logs.At) time.Time {
	var t time.Time
	each(a, b, c, func(x time.Time) {
		if !x.IsZero() && (t.IsZero() || x.Before(t)) {
			t = x
		}
	})
	return t
}

func lastTime(a, b []slow, c []logs.At) time.Time {
	var t time.Time
	each(a, b, c, func(x time.Time) {
		if x.After(t) {
			t = x
		}
	})
	return t
}

func each(a, b []slow, c []logs.At, fn func(time.Time)) {
	for _, s := range slices.Concat(a, b) {
		fn(s.at.Time)
	}
	for _, h := range c {
		fn(h.Time)
	}
}
