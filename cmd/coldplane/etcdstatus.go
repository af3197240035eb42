package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/etcdstore/opinion"
	"coldplane/analyze/facts"
	"coldplane/analyze/objects"
	"coldplane/bundle"
	"coldplane/report"
)

func newEtcdStatus(e *env, g *globals) *cobra.Command {
	f := &storeFlags{}
	second := "on"
	c := &cobra.Command{
		Use:   "status INPUT...",
		Short: "Size, revision, alarms and health of each database, and whether members agree",
		Long: `Show for each database its size and quota, its revision and compaction, raft
index and term, alarms, the SHA-256 of a snapshot, and damage page by page.
With databases of several members their KV hashes are compared at the highest
revision all have, compacted alike, and the first revision that differs is named.

` + etcdExitHelp,
		Example: "  coldplane etcd status snapshot.db\n  coldplane etcd status cp1.tar.zst cp2.tar.zst cp3.tar.zst",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return runEtcdStatus(c, e, g, f, args, second == "on") },
	}
	f.register(c, "text, json")
	c.Flags().StringVar(&second, "second-opinion", second, "on: ask bbolt and etcd's own code too, in a child process, about sound files up to 1 GiB; off")
	return c
}

// A dbStatus is one database in `etcd status`.
type dbStatus struct {
	report.Store
	ConsistentIndex uint64            `json:"consistentIndex"`
	Term            uint64            `json:"term,omitempty"`
	ClusterVersion  string            `json:"clusterVersion,omitempty"`
	Finished        int64             `json:"finishedCompact"`
	Scheduled       int64             `json:"scheduledCompact"`
	PageSize        int64             `json:"pageSize"`
	PagesCounted    bool              `json:"pagesCounted"` // false: inUse is a lower bound, free is nothing
	Trailer         string            `json:"sha256"`
	Leases          int64             `json:"leases"`
	Auth            bool              `json:"authEnabled"`
	Faults          []string          `json:"faults,omitempty"`
	Hash            *etcdstore.KVHash `json:"kvHash,omitempty"`
	Opinion         *opinion.Opinion  `json:"secondOpinion,omitempty"`
}

type etcdStatus struct {
	Databases  []dbStatus            `json:"databases"`
	Comparison *etcdstore.Comparison `json:"comparison,omitempty"`
	Compared   []string              `json:"compared,omitempty"`
}

func runEtcdStatus(c *cobra.Command, e *env, g *globals, f *storeFlags, inputs []string, second bool) error {
	s, err := openStores(c.Context(), e, g, f, inputs)
	if err != nil {
		return err
	}
	defer s.close()
	out := etcdStatus{Databases: []dbStatus{}}
	for _, d := range s.dbs {
		quota, _ := etcddb.QuotaOf.Get(s.eng.Ctx(d.File.Node))
		x := dbStatus{Store: facts.Store(d, quota)}
		if st := d.Store; st != nil {
			x.ConsistentIndex, x.Term, x.ClusterVersion = st.Meta.ConsistentIndex, st.Meta.Term, st.Meta.ClusterVersion
			x.Finished, x.Scheduled, x.PageSize = st.Finished, st.Scheduled, st.Pages.PageSize
			x.PagesCounted = st.PagesCounted()
			x.Trailer, x.Leases, x.Auth = st.Trailer.String(), st.LeaseTotal, st.Auth.Enabled
			for _, dm := range st.Damage {
				x.Faults = append(x.Faults, dm.String())
			}
			x.Faults = append(x.Faults, st.Problems...)
			if h, err := st.HashKV(c.Context(), 0, -1); err == nil {
				x.Hash = &h
			}
			if second {
				o, ok, err := secondOpinion(c.Context(), e, st, opinionLimit)
				if err != nil {
					return err
				}
				if ok {
					x.Opinion = &o
				}
			}
		}
		out.Databases = append(out.Databases, x)
	}
	if list, names := comparable(s); len(list) > 1 {
		cmp, err := etcdstore.Compare(c.Context(), list)
		if err != nil {
			return err
		}
		out.Comparison, out.Compared = &cmp, names
	}
	return f.print(e, out, func(w *tabwriter.Writer) { statusText(w, out) })
}

// comparable picks one database per node, of one cluster: the same kube-system.
func comparable(s *stores) (list []*etcdstore.Store, names []string) {
	uid := ""
	for _, n := range s.set.All() {
		dbs, err := etcddb.OnNode.Get(s.eng.Ctx(n))
		if err != nil {
			continue
		}
		d := objects.Choose(dbs)
		if d == nil {
			continue
		}
		id := ""
		if ns, err := objects.New(d).Namespace("kube-system"); err == nil {
			id = string(ns.Value.UID)
		}
		if len(list) > 0 && id != uid {
			continue
		}
		uid = id
		list, names = append(list, d.Store), append(names, dbName(d))
	}
	return list, names
}

func statusText(w *tabwriter.Writer, out etcdStatus) {
	line := func(name string, format string, a ...any) { row(w, "  "+name, fmt.Sprintf(format, a...)) }
	for _, d := range out.Databases {
		name := d.Path
		if d.Node != "" && !strings.Contains(d.Path, d.Node+"/") {
			name = d.Node + ": " + d.Path
		}
		row(w, name)
		if d.PageSize == 0 {
			line("damage", "%s", d.Damage)
			continue
		}
		quota := "quota not known"
		if d.Quota != nil {
			quota = fmt.Sprintf("quota %d (%s)", *d.Quota, d.QuotaSource)
			if *d.Quota > 0 {
				quota = fmt.Sprintf("%.0f %% of ", 100*float64(d.Size)/float64(*d.Quota)) + quota
			}
		}
		line("size", "%d bytes (%s), %s", d.Size, bundle.FormatBytes(d.Size), quota)
		if d.PagesCounted {
			line("in use", "%d bytes; free pages %d bytes; pages of %d", d.InUse, d.Free, d.PageSize)
		} else {
			line("in use", "at least %d bytes; what lies below damaged pages is not counted, nor which pages are free; pages of %d", d.InUse, d.PageSize)
		}
		line("content", "%d keys live, %d bytes; history %d bytes in %d records; %d tombstones; %d leases", d.Keys, d.Live, d.History, d.Revisions, d.Tombstones, d.Leases)
		line("revision", "%d, compacted at %d (finished %d, scheduled %d)", d.Revision, d.Compacted, d.Finished, d.Scheduled)
		line("raft", "index %d, term %d", d.ConsistentIndex, d.Term)
		line("version", "storage %s, cluster %s", d.Version, d.ClusterVersion)
		if d.LastWrite != nil {
			line("last write", "%s", d.LastWrite.UTC().Format(time.RFC3339))
		}
		line("sha256", "%s", d.Trailer)
		if d.Hash != nil {
			line("KV hash", "%d at revision %d, compacted at %d", d.Hash.Hash, d.Hash.Rev, d.Hash.CompactRev)
		}
		if d.Opinion != nil {
			line("etcd's code", "%s", opinionText(*d.Opinion))
		}
		if d.Auth {
			line("auth", "enabled")
		}
		for _, a := range d.Alarms {
			line("ALARM", "%s of member %s", a.Type, a.Member)
		}
		if d.Damage == "" {
			line("pages", "sound")
		}
		for i, x := range d.Faults {
			if i == 20 {
				line("DAMAGE", "and %d more (-o json lists them)", len(d.Faults)-i)
				break
			}
			line("DAMAGE", "%s", x)
		}
	}
	c := out.Comparison
	if c == nil {
		return
	}
	row(w, fmt.Sprintf("comparison at revision %d, compacted at %d", c.Rev, c.CompactRev))
	for i, n := range out.Compared {
		if c.Errs[i] != nil {
			line(n, "not comparable: %v", c.Errs[i])
			continue
		}
		line(n, "hash %d", c.Hashes[i])
	}
	if c.Same {
		line("result", "the members agree")
		return
	}
	line("result", "the members DIFFER, first at revision %d", c.FirstRev)
	for i, x := range c.Differences {
		if i == 20 {
			line("", "and more")
			break
		}
		line(fmt.Sprintf("rev %d", x.Rev.Main), "%s: %s (A %s, B %s)", x.Key, x.Kind, out.Compared[x.A], out.Compared[x.B])
	}
}
