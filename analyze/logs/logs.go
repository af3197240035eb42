// Package logs holds facts about a node's logs: which files are logs of what program, and which known texts they hold.
//
// Every file is read once (package scan) for all texts (package signature).
// The package knows no rule; it answers questions such as "how often, when and
// where did etcd say this". Detectors that combine several texts live here too.
package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"coldplane/analyze"
	"coldplane/analyze/host"
	"coldplane/analyze/logs/scan"
	"coldplane/analyze/logs/signature"
	"coldplane/bundle"
)

// maxStreams bounds how many files of a node are read; the newest rotated files
// come first, so what is left out is old.
const maxStreams = 500

// A Stream is one log file of a node.
type Stream struct {
	File      *bundle.File
	Program   signature.Emitter // 0: lines of several programs
	Component string            // container or unit name; "" for several
	Namespace string            // of the pod, for files under /var/log/pods
	Pod       string
	PodUID    string
	Container string // container id or its beginning, when the name tells
	Attempt   int    // container attempt, -1 when the name does not tell
	Rotated   bool   // an older piece of a rotated log
	OnHost    bool   // written by a service of the node, in the node's time zone
	// SameAs is the stream that holds the same lines; a stream with one is not
	// counted again.
	SameAs *Stream
	Result *scan.Result // nil when Err is set
	Err    error        // *bundle.MissingError
}

// Ref points at a line of the stream.
func (s *Stream) Ref(line int, offset int64) bundle.Ref {
	r := s.File.Line(line)
	r.Offset = offset
	return r
}

// A Node is all logs of one node.
type Node struct {
	Node    *bundle.Node
	Streams []*Stream // sorted by program, then path
	// Binary are journald's own files, which only journalctl reads; see
	// JournalCommand.
	Binary []*bundle.File
}

// JournalCommand is what turns the binary journals of a mounted disk into a
// file that is read.
func (n *Node) JournalCommand() string {
	if len(n.Binary) == 0 {
		return ""
	}
	return "journalctl -D " + path.Dir(n.Binary[0].Origin) + " -u kubelet -u containerd -k -o export > journal/units.export"
}

// OnNode is the logs of a node, or of the files beside nodes/.
var OnNode = &analyze.Fact[*Node]{
	Name:  "logs.node",
	Kinds: []bundle.Kind{bundle.KindLogs, bundle.KindJournal},
	Needs: []analyze.Need{host.Clock},
	Compute: func(c *analyze.Ctx) (*Node, error) {
		n := &Node{Node: c.Node(), Streams: find(c.Node())}
		for _, p := range []string{"/var/log/journal/*/*.journal", "/run/log/journal/*/*.journal"} {
			n.Binary = append(n.Binary, c.Node().Glob(p)...)
		}
		if len(n.Streams) == 0 {
			detail := ""
			if len(n.Binary) > 0 {
				detail = "only binary journals; run " + n.JournalCommand()
			}
			return nil, analyze.Missing(bundle.KindLogs, c.Node().Name, bundle.NotCollected, detail)
		}
		o := scan.Options{Ref: c.StatedAsOf()}
		if clk, err := host.Clock.Get(c); err == nil && clk.UTCOffset != nil {
			o.Zone, o.ZoneKnown = time.Duration(*clk.UTCOffset)*time.Second, true
		}
		if err := n.scan(c.Context(), o, c.Jobs()); err != nil {
			return nil, err
		}
		n.duplicates()
		return n, nil
	},
}

// scanner is built once: the table does not change.
var scanner = sync.OnceValues(func() (*scan.Scanner, error) { return scan.New(signature.Table()) })

// scan reads all streams.
func (n *Node) scan(ctx context.Context, o scan.Options, jobs int) error {
	sc, err := scanner()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(jobs, 1))
	for _, s := range n.Streams {
		g.Go(func() error { return s.read(ctx, sc, o) })
	}
	return g.Wait()
}

// read scans one stream. Only a cancelled context is an error of ours.
func (s *Stream) read(ctx context.Context, sc *scan.Scanner, o scan.Options) error {
	if !s.OnHost { // containers run in UTC unless somebody mounts a zone
		o.Zone, o.ZoneKnown = 0, true
	}
	if o.Ref.IsZero() && s.File.ModTime.Year() > 2000 {
		o.Ref = s.File.ModTime.UTC()
	}
	o.Program = s.Program
	if err := s.once(ctx, sc, o); err != nil || s.Result == nil {
		return err
	}
	// A service that seems to write in the future runs east of Greenwich.
	if r := s.Result; r.ZoneAssumed && !o.Ref.IsZero() && r.Last.After(o.Ref.Add(5*time.Minute)) {
		ahead := r.Last.Sub(o.Ref)
		zone := ahead.Truncate(30 * time.Minute)
		if ahead-zone > 5*time.Minute {
			zone += 30 * time.Minute
		}
		if zone <= 14*time.Hour {
			o.Zone, o.ZoneKnown = zone, true
			return s.once(ctx, sc, o)
		}
	}
	return nil
}

func (s *Stream) once(ctx context.Context, sc *scan.Scanner, o scan.Options) error {
	f, err := s.File.Open()
	if err != nil {
		s.Err = err
		return nil
	}
	defer f.Close()
	s.Result, err = sc.Scan(ctx, io.LimitReader(bundle.Reader(f), scan.MaxBytes), o)
	switch {
	case errors.Is(err, scan.ErrBinaryJournal):
		s.Err = &bundle.MissingError{Evidence: s.File.Origin, Reason: bundle.Unsupported,
			Detail: "binary journal; run journalctl --file " + s.File.Origin + " -o export", Ref: s.File.Ref()}
		return nil
	case err != nil:
		return fmt.Errorf("read log %s: %w", s.File.Path, err)
	}
	return nil
}

// find lists the log files of a node.
func find(n *bundle.Node) []*Stream {
	var out []*Stream
	add := func(f *bundle.File, s Stream) {
		if f.Mode.IsRegular() && f.Refused == "" {
			s.File = f
			out = append(out, &s)
		}
	}
	for _, f := range n.Glob("/var/log/pods/*/*/*") {
		if s, ok := podStream(f.Origin); ok {
			add(f, s)
		}
	}
	for _, f := range n.Glob("/crictl/logs/*") {
		add(f, crictlStream(f.Name()))
	}
	for _, f := range n.Glob("/journal/*") {
		add(f, unitStream(f.Name()))
	}
	for _, p := range []string{"/var/log/journal*.log", "/var/log/journal*.log.gz", "/var/log/syslog*", "/var/log/messages*", "/var/log/kern.log*", "/var/log/daemon.log*"} {
		for _, f := range n.Glob(p) {
			add(f, unitStream(f.Name()))
		}
	}
	for _, p := range []string{"/kubeadm-*.log", "/var/log/kubeadm*.log"} {
		for _, f := range n.Glob(p) {
			add(f, Stream{Program: signature.Kubeadm, Component: "kubeadm", Attempt: -1, OnHost: true})
		}
	}
	for _, f := range n.Glob("/events.txt") {
		add(f, Stream{Program: signature.Events, Component: "events", Attempt: -1})
	}
	slices.SortStableFunc(out, func(a, b *Stream) int {
		return cmp.Or(boolCmp(a.Rotated, b.Rotated), cmp.Compare(a.Program, b.Program), cmp.Compare(a.File.Path, b.File.Path))
	})
	return out[:min(len(out), maxStreams)]
}

func boolCmp(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// podStream reads /var/log/pods/NS_POD_UID/CONTAINER/N.log[.TIME][.gz]. Only
// programs whose texts are known count.
func podStream(origin string) (Stream, bool) {
	dir, name := path.Split(origin)
	container := path.Base(dir)
	pod := path.Base(path.Dir(path.Clean(dir)))
	attempt, rest, ok := strings.Cut(name, ".log")
	n, err := strconv.Atoi(attempt)
	by := signature.Named(container)
	if !ok || err != nil || by == 0 {
		return Stream{}, false
	}
	s := Stream{Program: by, Component: container, Attempt: n, Rotated: rest != ""}
	if parts := strings.SplitN(pod, "_", 3); len(parts) == 3 {
		s.Namespace, s.Pod, s.PodUID = parts[0], parts[1], parts[2]
	}
	return s, true
}

// crictlStream reads COMPONENT[-ATTEMPT-ID].log.
func crictlStream(name string) Stream {
	base := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".log")
	s := Stream{Component: base, Attempt: -1}
	if i := strings.LastIndexByte(base, '-'); i > 0 {
		if j := strings.LastIndexByte(base[:i], '-'); j > 0 {
			if n, err := strconv.Atoi(base[j+1 : i]); err == nil {
				s.Component, s.Attempt, s.Container = base[:j], n, base[i+1:]
			}
		}
	}
	s.Program = signature.Named(s.Component)
	if s.Program == 0 {
		for _, known := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			if strings.HasPrefix(s.Component, known) {
				s.Program, s.Component = signature.Named(known), known
			}
		}
	}
	return s
}

// unitStream reads the program off the name of a saved journal: kubelet.log,
// journal-kubelet.log, containerd.export, kernel.json; others hold several.
func unitStream(name string) Stream {
	s := Stream{Attempt: -1, OnHost: true}
	base := strings.TrimPrefix(name, "journal-")
	base, rest, _ := strings.Cut(base, ".")
	s.Rotated = strings.Trim(strings.TrimSuffix(rest, "gz"), ".") != "" && !strings.Contains(rest, "log") && !strings.Contains(rest, "export") && !strings.Contains(rest, "json") && !strings.Contains(rest, "txt")
	if base == "kern" || base == "dmesg" {
		base = "kernel"
	}
	if s.Program = signature.Named(base); s.Program != 0 {
		s.Component = base
	}
	return s
}

// duplicates finds the streams that hold the same lines as another: the output
// of crictl logs beside the file it comes from.
func (n *Node) duplicates() {
	for _, s := range n.Streams {
		if s.Result == nil || s.Namespace != "" || s.OnHost || s.Program == 0 {
			continue
		}
		for _, o := range n.Streams {
			if o == s || o.Result == nil || o.Namespace == "" || o.Program != s.Program || s.Attempt >= 0 && o.Attempt != s.Attempt {
				continue
			}
			a, b := s.Result, o.Result
			if a.First.IsZero() || b.First.IsZero() {
				if s.Attempt >= 0 {
					s.SameAs = o
				}
				continue
			}
			if !b.First.After(a.First.Add(2*time.Second)) && !b.Last.Before(a.Last.Add(-2*time.Second)) {
				s.SameAs = o
				break
			}
		}
	}
}
