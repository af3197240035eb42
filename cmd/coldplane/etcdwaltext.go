package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"coldplane/bundle"
)

// startText says in words what etcd would do.
func startText(s string) string {
	switch s {
	case "opens":
		return "etcd reads all of it"
	case "repairs":
		return "etcd cuts off the unfinished last record and goes on"
	case "drops":
		return "etcd starts and silently loses what follows the damage"
	case "refuses":
		return "etcd refuses to start on it"
	}
	return "no log"
}

func walText(out io.Writer, dirs []walReport, quorums []walQuorum) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	cell := func(s string) string { return strings.ReplaceAll(visible(s), "\t", " ") }
	for i, r := range dirs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		use := ""
		if r.InUse {
			use = " (in use)"
		}
		fmt.Fprintf(w, "%s\t%s%s\n", cell(r.Node), cell(r.Directory), use)
		if r.Unread != "" {
			fmt.Fprintf(w, "log\t%s\n", cell(r.Unread))
		} else {
			fmt.Fprintf(w, "member\t%s of cluster %s\n", r.Member, r.Cluster)
			fmt.Fprintf(w, "state\tterm %d, voted for %s, committed %d\n", r.Term, r.Vote, r.Commit)
			fmt.Fprintf(w, "entries\t%d, index %d to %d, last term %d, %d terms\n", r.Entries, r.First, r.Last, r.LastTerm, r.Terms)
			fmt.Fprintf(w, "next start\t%s\n", startText(r.Start))
			if r.Trimmed {
				fmt.Fprintf(w, "\tthe newest segment has no preallocated space: made by a copy that trims it, or cut off right after a record\n")
			}
		}
		for _, x := range r.Damage {
			fmt.Fprintf(w, "damage\t%s in %s at byte %d, after entry %d\n", x.Kind, cell(x.Segment), x.Offset, x.Before)
		}
		for _, s := range r.Segments {
			fmt.Fprintf(w, "segment\t%s\t%s of %s written\t%d entries\t%s\n", cell(s.Name), bundle.FormatBytes(s.Written), bundle.FormatBytes(s.Size), s.Entries, s.End)
		}
		for _, s := range r.Snapshots {
			what := fmt.Sprintf("index %d, term %d, %d members", s.Index, s.Term, s.Members)
			if s.Error != "" {
				what = s.Error
			} else if s.V2Keys > 0 {
				what += fmt.Sprintf(", %d keys of the v2 API", s.V2Keys)
			}
			fmt.Fprintf(w, "snapshot\t%s\t%s\n", cell(s.Name), cell(what))
		}
		for _, l := range r.Leftovers {
			fmt.Fprintf(w, "leftover\t%s\t%s, %s\n", cell(l.Name), l.Kind, bundle.FormatBytes(l.Size))
		}
		for _, k := range r.Kinds {
			fmt.Fprintf(w, "kind\t%s\t%d\t%s\n", cell(k.Name), k.Entries, bundle.FormatBytes(k.Bytes))
		}
		for _, p := range r.Prefixes[:min(len(r.Prefixes), 10)] {
			fmt.Fprintf(w, "writes\t%s\t%d puts, %d deletes\t%s\tlargest %s\n", cell(p.Name), p.Entries, p.Deletes, bundle.FormatBytes(p.Bytes), bundle.FormatBytes(p.Largest))
		}
		for _, c := range r.Confs {
			fmt.Fprintf(w, "membership\t%d\t%s %s\t%s\t%s\t%s\n", c.Index, c.Change, c.Member, cell(c.Name), cell(c.PeerURLs), c.Note)
		}
		for _, a := range r.Alarms {
			what := "cleared"
			if a.Raised {
				what = "raised"
			}
			fmt.Fprintf(w, "alarm\t%d\t%s %s of %s\n", a.Index, a.Type, what, a.Member)
		}
		for _, m := range r.Members {
			role := "voter"
			if m.Learner {
				role = "learner"
			}
			fmt.Fprintf(w, "member\t%s\t%s\t%s\t%s\n", m.ID, role, cell(m.Name), cell(m.PeerURLs))
		}
	}
	for _, q := range quorums {
		fmt.Fprintf(w, "\nquorum\t%d of %d voters must be up", q.Quorum, q.Voters)
		if q.Cluster != "" {
			fmt.Fprintf(w, " (cluster %s)", q.Cluster)
		}
		fmt.Fprintf(w, "; seen alive %d, not answering %d\n", q.Alive, q.Silent)
		for _, l := range q.Losses {
			fmt.Fprintf(w, "\t%s\n", l)
		}
	}
	return w.Flush()
}
