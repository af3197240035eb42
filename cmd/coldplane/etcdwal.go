package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"coldplane/analyze"
	"coldplane/analyze/etcdwal"
	"coldplane/analyze/quorum"
	"coldplane/bundle"
	"coldplane/bundle/decode/walframe"
)

// addEtcdWAL puts the wal command below etcd, which is made when no other of
// its commands is there.
func addEtcdWAL(root *cobra.Command, e *env, g *globals) {
	var parent *cobra.Command
	for _, c := range root.Commands() {
		if c.Name() == "etcd" {
			parent = c
		}
	}
	if parent == nil {
		parent = &cobra.Command{Use: "etcd", Short: "Look into etcd's files", RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
		root.AddCommand(parent)
	}
	c := newEtcdWAL(e, g)
	wrapArgs(c)
	parent.AddCommand(c)
}

type walFlags struct{ output, out, spool string }

func newEtcdWAL(e *env, g *globals) *cobra.Command {
	f := &walFlags{}
	c := &cobra.Command{
		Use:   "wal INPUT...",
		Short: "Show the write-ahead log and raft snapshots of each data directory",
		Long: `Show for each etcd data directory whose member it is and of which cluster, the
hard state, the entries by kind and by key prefix, every membership change,
alarms raised and cleared, the raft snapshots and their members, what is damaged
and what etcd would do with it at its next start. Stored values are never kept
or shown. With several nodes the quorum follows: who votes, and what the next
losses would do.

Exit codes:
  0    answered
  2    wrong usage, or an input without a write-ahead log
  4    the tool itself failed
  130  interrupted`,
		Example: "  coldplane etcd wal /var/lib/etcd\n  coldplane etcd wal cp1.tar.zst cp2.tar.zst cp3.tar.zst -o json",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return runEtcdWAL(c.Context(), e, g, f, args) },
	}
	fs := c.Flags()
	fs.StringVarP(&f.output, "output", "o", "text", "format: text, json")
	fs.StringVar(&f.out, "out", "", "write to this file instead of stdout")
	fs.StringVar(&f.spool, "spool", "", "directory for large archive members (default: the temp directory)")
	return c
}

// A walReport is one data directory in `etcd wal`.
type walReport struct {
	Node       string         `json:"node"`
	Directory  string         `json:"directory"`
	InUse      bool           `json:"inUse"`
	Unread     string         `json:"unread,omitempty"` // why there is no log
	Member     string         `json:"member,omitempty"`
	Cluster    string         `json:"cluster,omitempty"`
	Term       uint64         `json:"term"`
	Vote       string         `json:"vote,omitempty"`
	Commit     uint64         `json:"commit"`
	First      uint64         `json:"firstIndex"`
	Last       uint64         `json:"lastIndex"`
	LastTerm   uint64         `json:"lastTerm"`
	Entries    int64          `json:"entries"`
	Replaced   int64          `json:"replaced,omitempty"`
	Start      string         `json:"start"` // opens, repairs, drops, refuses, none
	Trimmed    bool           `json:"trimmed,omitempty"`
	Segments   []walSegment   `json:"segments"`
	Kinds      []walCount     `json:"kinds"`
	Prefixes   []walCount     `json:"prefixes"`
	Terms      int            `json:"terms"`
	Confs      []walConf      `json:"confChanges"`
	Alarms     []walAlarm     `json:"alarms"`
	Marks      int            `json:"snapshotRecords"`
	Snapshots  []walSnap      `json:"snapshots"`
	Leftovers  []walLeftover  `json:"leftovers"`
	Damage     []walDamage    `json:"damage"`
	Members    []walSnapshotM `json:"members"` // by the newest snapshot and the log behind it
	MembersLog uint64         `json:"membersIndex,omitempty"`
}

type walSegment struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	Written int64  `json:"written"`
	Entries int64  `json:"entries"`
	First   uint64 `json:"firstIndex,omitempty"`
	Last    uint64 `json:"lastIndex,omitempty"`
	End     string `json:"end"`
}

type walCount struct {
	Name    string `json:"name"`
	Entries int64  `json:"count"`
	Deletes int64  `json:"deletes,omitempty"`
	Bytes   int64  `json:"bytes"`
	Largest int64  `json:"largest,omitempty"`
}

type walConf struct {
	Index    uint64 `json:"index"`
	Term     uint64 `json:"term"`
	Change   string `json:"change"`
	Member   string `json:"member"`
	Name     string `json:"name,omitempty"`
	PeerURLs string `json:"peerURLs,omitempty"`
	Note     string `json:"note,omitempty"`
}

type walAlarm struct {
	Index  uint64 `json:"index"`
	Member string `json:"member"`
	Type   string `json:"type"`
	Raised bool   `json:"raised"`
}

type walSnap struct {
	Name    string `json:"name"`
	Index   uint64 `json:"index"`
	Term    uint64 `json:"term"`
	Members int    `json:"members"`
	V2Keys  int64  `json:"v2Keys,omitempty"`
	Error   string `json:"error,omitempty"`
}

type walLeftover struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Size int64  `json:"size"`
}

type walDamage struct {
	Kind    string `json:"kind"`
	Segment string `json:"segment"`
	Offset  int64  `json:"offset"`
	End     int64  `json:"end"`
	Before  uint64 `json:"lastIndexBefore"`
	After   uint64 `json:"firstIndexAfter,omitempty"`
}

type walSnapshotM struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"`
	PeerURLs string `json:"peerURLs,omitempty"`
	Learner  bool   `json:"learner,omitempty"`
}

// A walQuorum is one cluster's arithmetic.
type walQuorum struct {
	Cluster string   `json:"cluster,omitempty"`
	Voters  int      `json:"voters"`
	Quorum  int      `json:"quorum"`
	Alive   int      `json:"seenAlive"`
	Silent  int      `json:"notAnswering"`
	Losses  []string `json:"losses"`
}

func runEtcdWAL(ctx context.Context, e *env, g *globals, f *walFlags, inputs []string) error {
	if f.output != "text" && f.output != "json" {
		return usagef("formats are text, json", "unknown output format %q", f.output)
	}
	for _, in := range inputs {
		if f.out != "" && samePath(f.out, in) {
			return usagef("choose another name for the output", "%s is an input and would be overwritten", f.out)
		}
	}
	to, err := newTarget(f.out)
	if err != nil {
		return err
	}
	defer to.discard()
	e.enter(g, inputs, to)
	set, err := bundle.Open(ctx, inputs, bundle.Options{Limits: g.limits.archives(), SpoolDir: e.spoolDir(f.spool)})
	if err != nil {
		return err
	}
	defer set.Close()
	eng := analyze.New(ctx, set, analyze.Options{Now: e.now()})
	var dirs []walReport
	for _, n := range set.All() {
		ds, err := etcdwal.OnNode.Get(eng.Ctx(n))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			continue
		}
		for _, d := range ds {
			if d.Log != nil || len(d.Snaps) > 0 || len(d.Leftovers) > 0 {
				dirs = append(dirs, describe(n, d))
			}
		}
	}
	if len(dirs) == 0 {
		return &bundle.InputError{Path: strings.Join(inputs, " "), What: "no write-ahead log in it", Hint: "an etcd data directory, a node root or a bundle that has member/wal"}
	}
	var quorums []walQuorum
	if v, err := quorum.Joined.Get(eng.Ctx(nil)); err == nil {
		quorums = arithmetic(v)
	}
	if !g.quiet {
		for _, p := range set.Problems {
			fmt.Fprintf(e.err, "coldplane: %s: %s; the other inputs were read\n", visible(p.Evidence), visible(p.Detail))
		}
	}
	return to.write(e.out, func(w io.Writer) error {
		if f.output == "json" {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(struct {
				Directories []walReport `json:"directories"`
				Quorum      []walQuorum `json:"quorum"`
			}{dirs, quorums})
		}
		return walText(w, dirs, quorums)
	})
}

// describe turns a data directory into its report.
func describe(n *bundle.Node, d *etcdwal.Dir) walReport {
	r := walReport{Node: n.Name, Directory: d.Path, InUse: d.InUse, Start: walframe.StartNone.String(), Segments: []walSegment{}, Kinds: []walCount{}, Prefixes: []walCount{},
		Confs: []walConf{}, Alarms: []walAlarm{}, Snapshots: []walSnap{}, Leftovers: []walLeftover{}, Damage: []walDamage{}, Members: []walSnapshotM{}}
	if d.LogErr != nil {
		r.Unread = d.LogErr.Error()
	}
	for _, s := range d.Snaps {
		x := walSnap{Name: s.Name, Index: s.Index, Term: s.Term, Members: len(s.Store.Members), V2Keys: s.Store.UserKeys}
		if s.Err != nil {
			x.Error = s.Err.Error()
		}
		r.Snapshots = append(r.Snapshots, x)
	}
	for _, l := range d.Leftovers {
		r.Leftovers = append(r.Leftovers, walLeftover{string(l.Kind), l.Name, l.Size})
	}
	if m, ok := d.Membership(); ok {
		r.MembersLog = m.Index
		for _, x := range m.Members {
			r.Members = append(r.Members, walSnapshotM{quorum.ID(x.ID), x.Name, strings.Join(x.PeerURLs, ","), x.IsLearner})
		}
	}
	if d.Log != nil {
		r.log(d.Log)
	}
	return r
}

func (r *walReport) log(l *walframe.Log) {
	if l.Identified {
		r.Member, r.Cluster = quorum.ID(l.Identity.Node), quorum.ID(l.Identity.Cluster)
	}
	if l.State.Vote != 0 {
		r.Vote = quorum.ID(l.State.Vote)
	}
	r.Term, r.Commit, r.First, r.Last, r.LastTerm = l.State.Term, l.State.Commit, l.FirstIndex, l.LastIndex, l.LastTerm
	r.Entries, r.Replaced, r.Start, r.Trimmed = l.Entries, l.Replaced, l.Start.String(), l.Trimmed
	r.Terms, r.Marks = len(l.Terms.Items)+l.Terms.Dropped, len(l.Marks.Items)+l.Marks.Dropped
	for _, s := range l.Segments {
		r.Segments = append(r.Segments, walSegment{s.Name, s.Size, s.Written, s.Entries, s.FirstIndex, s.LastIndex, s.End.String()})
	}
	for k, v := range l.Kinds {
		r.Kinds = append(r.Kinds, walCount{Name: k.String(), Entries: v.Entries, Bytes: v.Bytes})
	}
	for k, v := range l.Prefixes {
		r.Prefixes = append(r.Prefixes, walCount{Name: k, Entries: v.Puts, Deletes: v.Deletes, Bytes: v.ValueBytes, Largest: v.LargestValue})
	}
	order := func(a, b walCount) int {
		if a.Bytes != b.Bytes {
			return int(min(max(b.Bytes-a.Bytes, -1), 1))
		}
		return strings.Compare(a.Name, b.Name)
	}
	slices.SortFunc(r.Kinds, order)
	slices.SortFunc(r.Prefixes, order)
	for _, c := range l.ConfChanges.Items {
		x := walConf{Index: c.Index, Term: c.Term, Change: c.Type.String(), Member: quorum.ID(c.NodeID), Name: c.Member.Name, PeerURLs: strings.Join(c.Member.PeerURLs, ",")}
		var notes []string
		if c.Promote {
			x.Change = "promote"
		}
		if c.Type == walframe.RemoveNode && c.Proposal == 0 {
			notes = append(notes, "by --force-new-cluster")
		}
		if c.Replaced {
			notes = append(notes, "overwritten by a later leader")
		}
		if c.Index > l.State.Commit {
			notes = append(notes, "not known to be committed")
		}
		x.Note = strings.Join(notes, ", ")
		r.Confs = append(r.Confs, x)
	}
	for _, a := range l.Alarms.Items {
		r.Alarms = append(r.Alarms, walAlarm{a.Index, quorum.ID(a.Member), a.Type.String(), a.Raised})
	}
	for _, x := range l.Damage {
		r.Damage = append(r.Damage, walDamage{x.Kind.String(), x.Segment, x.Offset, x.End, x.Before, x.After})
	}
	if l.Torn != nil {
		r.Damage = append(r.Damage, walDamage{Kind: "torn-tail", Segment: l.Torn.Segment, Offset: l.Torn.Offset})
	}
}

// arithmetic writes the quorum of every cluster.
func arithmetic(v *quorum.View) []walQuorum {
	var out []walQuorum
	for _, c := range v.Clusters {
		s := c.Sum()
		if s.Voters == 0 || len(c.Sources) == 0 {
			continue
		}
		q := walQuorum{Voters: s.Voters, Quorum: s.Quorum, Alive: s.Alive, Silent: s.Silent, Losses: []string{}}
		if c.ID != 0 {
			q.Cluster = quorum.ID(c.ID)
		}
		for lost, left := 1, s.Voters-s.Silent; lost <= left; lost++ {
			what := "writes go on"
			if left-lost < s.Quorum {
				what = "no writes"
			}
			q.Losses = append(q.Losses, fmt.Sprintf("%d more lost: %d of %d left, %s", lost, left-lost, s.Voters, what))
			if left-lost < s.Quorum {
				break
			}
		}
		out = append(out, q)
	}
	return out
}
