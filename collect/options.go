//go:build linux

package collect

import (
	"context"
	"io"
	"time"

	"filippo.io/age"

	"coldplane/bundle/archive"
	"coldplane/bundle/redact"
)

// An EtcdMode says what of the store enters the bundle.
type EtcdMode string

// Modes.
const (
	EtcdScrubbed EtcdMode = "scrubbed" // the database with its values overwritten (default)
	EtcdSummary  EtcdMode = "summary"  // facts only
	EtcdFull     EtcdMode = "full"     // the database as it is; needs a recipient
	EtcdNone     EtcdMode = "none"     // nothing
)

// Options of a collection.
type Options struct {
	Root   string // "/" for the running system, else a mounted disk
	Node   string // name of the node; found out when empty
	Since  time.Duration
	Etcd   EtcdMode
	Level  redact.Level
	CaseID string
	Labels []string

	// Budget bounds the whole collection; Deadline is what a source may take when
	// it has no own.
	Budget, Deadline time.Duration
	Rate             int64 // bytes per second read from large files; 0 is no limit
	LogBytes         int64 // of one log file; head and tail are kept of a longer one
	SpoolDir         string
	// Room returns how many bytes may still be written to the file system of a path
	// without going below the reserve there. nil: no limit.
	Room func(path string) int64

	Only, Skip []string // sources by name

	Compression archive.Compression
	Recipients  []age.Recipient
	Tool        archive.Tool
	Now         func() time.Time
	// Progress is told when a source begins and ends. It must not block.
	Progress func(Event)
}

// An Event is one step of a collection.
type Event struct {
	Source string
	Index  int // of Total, from 1
	Total  int
	Result *archive.Result // nil when the source begins
}

// A Report is what came of a collection.
type Report struct {
	Status      archive.Status
	Fingerprint string
	Results     []archive.Result
	Bytes       int64
	Node        string
}

func (o Options) withDefaults() Options {
	if o.Root == "" {
		o.Root = "/"
	}
	if o.Since == 0 {
		o.Since = 24 * time.Hour
	}
	if o.Etcd == "" {
		o.Etcd = EtcdScrubbed
	}
	if o.Level == "" {
		o.Level = redact.LevelValues
	}
	if o.Budget == 0 {
		o.Budget = 10 * time.Minute
	}
	if o.Deadline == 0 {
		o.Deadline = 30 * time.Second
	}
	if o.LogBytes == 0 {
		o.LogBytes = 32 << 20
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	if o.Room == nil {
		o.Room = func(string) int64 { return 1 << 62 }
	}
	return o
}

// A source is one thing that is looked at.
type source struct {
	name     string
	what     string // for dry runs
	deadline time.Duration
	live     bool // needs the running system
	run      func(ctx context.Context, s *sink) error
}

var _ io.Writer = (*spoolFile)(nil)
