package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"coldplane/bundle"
	"coldplane/cmd/coldplane/confine"
)

// A limit is one bound that --limit can move.
type limit struct {
	name string
	unit unit
	def  int64 // in the unit's base: bytes, nanoseconds, things
	what string
	at   func(*limits) *int64
}

type unit int

const (
	count unit = iota
	size
	duration
)

// limits are the values in force; zero is the default.
type limits struct {
	memory, cpu, file                              int64
	entries, entry, total, spool, keep, keepAll, t int64
}

// limitTable lists what can be set, with its default.
func limitTable() []limit {
	d := bundle.DefaultLimits()
	return []limit{
		{"memory", size, 8 << 30, "address space of the process that reads evidence", func(l *limits) *int64 { return &l.memory }},
		{"cpu", duration, int64(2 * time.Hour), "processor time of the process that reads evidence", func(l *limits) *int64 { return &l.cpu }},
		{"file", size, 64 << 30, "one file written: the spool or a report", func(l *limits) *int64 { return &l.file }},
		{"entries", count, int64(d.Entries), "entries of one archive", func(l *limits) *int64 { return &l.entries }},
		{"entry-bytes", size, d.EntryBytes, "one archive entry, decompressed", func(l *limits) *int64 { return &l.entry }},
		{"archive-bytes", size, d.TotalBytes, "one archive, decompressed", func(l *limits) *int64 { return &l.total }},
		{"spool-bytes", size, d.Spool, "disk for entries too large for memory", func(l *limits) *int64 { return &l.spool }},
		{"memory-entry", size, d.MemoryEntry, "an entry up to this size stays in memory", func(l *limits) *int64 { return &l.keep }},
		{"memory-entries", size, d.MemoryTotal, "entries kept in memory, all archives together", func(l *limits) *int64 { return &l.keepAll }},
		{"open-time", duration, int64(d.OpenTime), "reading one archive", func(l *limits) *int64 { return &l.t }},
	}
}

// limitFlag is --limit.
type limitFlag struct{ l *limits }

func (limitFlag) String() string { return "" }
func (limitFlag) Type() string   { return "NAME=VALUE" }

func (f limitFlag) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("%q is not NAME=VALUE; coldplane limits lists the names", s)
	}
	for _, x := range limitTable() {
		if x.name != name {
			continue
		}
		v, err := x.unit.parse(value)
		if err != nil || v <= 0 {
			return fmt.Errorf("%s is %s", name, x.unit.example())
		}
		*x.at(f.l) = v
		return nil
	}
	return fmt.Errorf("no limit %q; coldplane limits lists the names", name)
}

func (u unit) parse(s string) (int64, error) {
	switch u {
	case size:
		return parseBytes(s)
	case duration:
		d, err := time.ParseDuration(s)
		return int64(d), err
	}
	return strconv.ParseInt(s, 10, 64)
}

func (u unit) example() string {
	return [...]string{"a positive number, e.g. 500000", "a size, e.g. 512MiB or 40GiB", "a duration, e.g. 90s or 2h"}[u]
}

func (u unit) format(v int64) string {
	switch u {
	case size:
		return strings.ReplaceAll(bundle.FormatBytes(v), " ", "")
	case duration:
		s := time.Duration(v).String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		return s
	}
	return strconv.FormatInt(v, 10)
}

// parseBytes reads a size as people write it: 1000, 512KiB, 64MiB, 8GiB.
func parseBytes(s string) (int64, error) {
	shift := 0
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if t, ok := strings.CutSuffix(s, suffix); ok {
			s, shift = t, 10*(i+1)
		}
	}
	v, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err == nil && (v < 0 || v > 1<<62>>shift) {
		err = strconv.ErrRange
	}
	return v << shift, err
}

// of is a limit in force.
func (l *limits) of(name string) int64 {
	for _, x := range limitTable() {
		if x.name == name {
			if v := *x.at(l); v != 0 {
				return v
			}
			return x.def
		}
	}
	return 0
}

// archives are the limits of opening inputs.
func (l *limits) archives() bundle.Limits {
	return bundle.Limits{
		Entries: int(l.entries), EntryBytes: l.entry, TotalBytes: l.total, Spool: l.spool,
		MemoryEntry: l.keep, MemoryTotal: l.keepAll, OpenTime: time.Duration(l.t),
	}
}

// process are the limits of the process that reads evidence.
func (l *limits) process() confine.Limits {
	return confine.Limits{Memory: l.of("memory"), CPU: time.Duration(l.of("cpu")), File: l.of("file")}
}

func addLimitFlag(fs *pflag.FlagSet, l *limits) {
	fs.Var(limitFlag{l}, "limit", "move a limit, NAME=VALUE; coldplane limits lists them; may be repeated")
}

func newLimits(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "limits", Short: "List the limits of analysis, their defaults and what they bound", Args: cobra.NoArgs,
		Long: `List the limits that bound what reading foreign evidence may cost. The first ones
can be moved with --limit NAME=VALUE. Those marked fixed hold for every input:
what lies beyond them is never dropped silently, but named as a gap or counted.`,
		Example: "  coldplane analyze --limit archive-bytes=60GiB --limit cpu=6h cp1.tar.zst",
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "LIMIT\tDEFAULT\tBOUNDS")
			for _, x := range limitTable() {
				fmt.Fprintf(w, "%s\t%s\t%s\n", x.name, x.unit.format(x.def), x.what)
			}
			for _, x := range fixedLimits() {
				fmt.Fprintf(w, "%s\t%s\tfixed: %s\n", x.name, x.unit.format(x.def), x.what)
			}
			return w.Flush()
		},
	}
}
