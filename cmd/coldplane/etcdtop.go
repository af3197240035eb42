package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"coldplane/analyze/etcdstore"
	"coldplane/analyze/facts"
	"coldplane/report"
)

func newEtcdTop(e *env, g *globals) *cobra.Command {
	f := &storeFlags{}
	n := 20
	c := &cobra.Command{
		Use:   "top INPUT...",
		Short: "What fills the database: types, namespaces, largest and most written keys",
		Long: `Show what fills each database: bytes and objects per resource type and namespace,
live and in retained history, the largest objects and the keys written most.

` + etcdExitHelp,
		Example: "  coldplane etcd top snapshot.db\n  coldplane etcd top /var/lib/etcd -n 50",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := openStores(c.Context(), e, g, f, args)
			if err != nil {
				return err
			}
			defer s.close()
			var out []report.Store
			for _, d := range s.dbs {
				out = append(out, facts.Store(d, nil))
			}
			return f.print(e, out, func(w *tabwriter.Writer) {
				for _, st := range out {
					topText(w, st, n)
				}
			})
		},
	}
	f.register(c, "text, json")
	c.Flags().IntVarP(&n, "rows", "n", n, "rows of each table")
	return c
}

func topText(w *tabwriter.Writer, s report.Store, n int) {
	least := ""
	if s.Damage != "" {
		least = "at least "
	}
	row(w, fmt.Sprintf("%s: %d bytes, %s%d in use, %s%d keys live, revision %d", s.Path, s.Size, least, s.InUse, least, s.Keys, s.Revision))
	if s.Damage != "" {
		row(w, "DAMAGE: "+s.Damage)
	}
	row(w, "TYPE", "OBJECTS", "LIVE BYTES", "REVISIONS", "HISTORY BYTES", "LARGEST NAMESPACE")
	for i, t := range s.Types {
		if i == n {
			break
		}
		ns := ""
		if len(t.Namespaces) > 0 && t.Namespaces[0].Namespace != "" {
			ns = fmt.Sprintf("%s (%d objects, %d bytes)", t.Namespaces[0].Namespace, t.Namespaces[0].Objects, t.Namespaces[0].Live)
		}
		row(w, t.Type, t.Objects, t.Live, t.Revisions, t.History, ns)
	}
	row(w, "")
	row(w, "LARGEST", "BYTES", "REVISIONS", "BYTES IN ALL")
	for i, k := range s.Largest {
		if i == n {
			break
		}
		row(w, k.Key, k.Size, k.Revisions, k.Bytes)
	}
	row(w, "")
	row(w, "MOST WRITTEN", "REVISIONS", "BYTES IN ALL", "STATE")
	for i, k := range s.Hot {
		if i == n || k.Revisions < 2 {
			break
		}
		state := "live"
		if k.Deleted {
			state = "deleted"
		}
		row(w, k.Key, k.Revisions, k.Bytes, state)
	}
	row(w, "")
}

func newEtcdMembers(e *env, g *globals) *cobra.Command {
	f := &storeFlags{}
	c := &cobra.Command{
		Use:   "members INPUT...",
		Short: "The member list as each database has it",
		Long: `Show the member list that each database holds, with learners, members that never
started, and members that were removed. Where databases disagree, each says its
own; coldplane analyze judges the quorum (rules QRM).

` + etcdExitHelp,
		Example: "  coldplane etcd members snapshot.db",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := openStores(c.Context(), e, g, f, args)
			if err != nil {
				return err
			}
			defer s.close()
			type memberRow struct {
				ID         string   `json:"id"`
				Name       string   `json:"name"`
				Started    bool     `json:"started"`
				Learner    bool     `json:"learner"`
				PeerURLs   []string `json:"peerURLs"`
				ClientURLs []string `json:"clientURLs"`
			}
			type dbMembers struct {
				Path    string      `json:"path"`
				Members []memberRow `json:"members"`
				Removed []string    `json:"removed,omitempty"`
				Voters  []string    `json:"confStateVoters,omitempty"`
			}
			var out []dbMembers
			for _, d := range s.dbs {
				m := dbMembers{Path: dbName(d), Members: []memberRow{}}
				if d.Store != nil {
					for _, x := range d.Store.Members {
						m.Members = append(m.Members, memberRow{etcdstore.MemberID(x.ID), x.Name, x.Started(), x.Learner, x.PeerURLs, x.ClientURLs})
					}
					for _, id := range d.Store.Removed {
						m.Removed = append(m.Removed, etcdstore.MemberID(id))
					}
					if cs := d.Store.Meta.ConfState; cs != nil {
						for _, id := range cs.Voters {
							m.Voters = append(m.Voters, etcdstore.MemberID(id))
						}
					}
				}
				out = append(out, m)
			}
			return f.print(e, out, func(w *tabwriter.Writer) {
				for _, d := range out {
					row(w, d.Path)
					row(w, "ID", "NAME", "STATE", "PEER URLS", "CLIENT URLS")
					for _, m := range d.Members {
						state := "voter"
						if m.Learner {
							state = "learner"
						}
						if !m.Started {
							state += ", never started"
						}
						row(w, m.ID, m.Name, state, m.PeerURLs, m.ClientURLs)
					}
					for _, id := range d.Removed {
						row(w, id, "", "removed")
					}
					row(w, "")
				}
			})
		},
	}
	f.register(c, "text, json")
	return c
}

func newEtcdHistory(e *env, g *globals) *cobra.Command {
	f := &storeFlags{}
	n := 20
	c := &cobra.Command{
		Use:   "history INPUT...",
		Short: "What etcd still remembers: span, writes per type and key, deletions",
		Long: `Show for the database that saw most how far back etcd remembers, which types and
keys were written since the last compaction, and what was deleted, with times
from the revision clock.

` + etcdExitHelp,
		Example: "  coldplane etcd history snapshot.db",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := openStores(c.Context(), e, g, f, args)
			if err != nil {
				return err
			}
			defer s.close()
			return history(e, f, s, n)
		},
	}
	f.register(c, "text, json")
	c.Flags().IntVarP(&n, "rows", "n", n, "rows of each table")
	return c
}

type historyType struct {
	Type   string  `json:"type"`
	Writes int64   `json:"writes"`
	Rate   float64 `json:"perMinute,omitempty"`
}

type historyKey struct {
	Key      string     `json:"key"`
	Revision int64      `json:"revision"`
	Writes   int64      `json:"writes,omitempty"`
	At       *time.Time `json:"at,omitempty"`
}

func history(e *env, f *storeFlags, s *stores, n int) error {
	set, err := s.chosen()
	if err != nil {
		return err
	}
	st := set.Store
	span, dated := set.History()
	clock := set.Clock()
	when := func(rev int64) *time.Time {
		if t, ok := clock.At(rev); ok {
			t = t.UTC().Truncate(time.Second)
			return &t
		}
		return nil
	}
	out := struct {
		Path      string        `json:"path"`
		Compacted int64         `json:"compacted"`
		Revision  int64         `json:"revision"`
		From      *time.Time    `json:"from,omitempty"`
		To        *time.Time    `json:"to,omitempty"`
		Types     []historyType `json:"types"`
		Keys      []historyKey  `json:"keys"`
		Deleted   []historyKey  `json:"deleted"`
	}{Path: dbName(set.DB), Compacted: st.Compacted(), Revision: st.MaxRev, From: when(max(st.Compacted(), st.FirstRev)), To: when(st.MaxRev)}
	for _, t := range st.Types {
		if t.Writes > 0 {
			h := historyType{Type: t.Type, Writes: t.Writes}
			if dated && span > 30*time.Second {
				h.Rate = float64(t.Writes) / span.Minutes()
			}
			out.Types = append(out.Types, h)
		}
	}
	sortBy(out.Types, func(a, b historyType) bool { return a.Writes > b.Writes || a.Writes == b.Writes && a.Type < b.Type })
	for _, k := range st.Busiest {
		if k.Writes > 1 && len(out.Keys) < n {
			out.Keys = append(out.Keys, historyKey{Key: k.Key, Revision: k.Rev.Main, Writes: k.Writes, At: when(k.Rev.Main)})
		}
	}
	dead, _ := st.Dead(1<<20, func([]byte) bool { return true })
	sortBy(dead, func(a, b etcdstore.Version) bool { return b.Rev.Less(a.Rev) })
	for _, v := range dead[:min(len(dead), n)] {
		out.Deleted = append(out.Deleted, historyKey{Key: v.Key, Revision: v.Rev.Main, At: when(v.Rev.Main)})
	}
	return f.print(e, out, func(w *tabwriter.Writer) {
		row(w, fmt.Sprintf("%s: revisions %d to %d", out.Path, out.Compacted, out.Revision))
		if out.From != nil && out.To != nil {
			row(w, fmt.Sprintf("from %s to %s", out.From.Format(time.RFC3339), out.To.Format(time.RFC3339)))
		}
		row(w, "TYPE", "WRITES", "PER MINUTE")
		for _, t := range out.Types[:min(len(out.Types), n)] {
			row(w, t.Type, t.Writes, fmt.Sprintf("%.1f", t.Rate))
		}
		row(w, "")
		row(w, "KEY", "WRITES", "LAST REVISION", "AT")
		for _, k := range out.Keys {
			row(w, k.Key, k.Writes, k.Revision, timeCell(k.At))
		}
		row(w, "")
		row(w, "DELETED", "REVISION", "AT")
		for _, k := range out.Deleted {
			row(w, k.Key, k.Revision, timeCell(k.At))
		}
	})
}

func timeCell(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}
