package facts

import (
	"fmt"
	"math"

	"coldplane/analyze"
	"coldplane/analyze/etcddb"
	"coldplane/analyze/etcdstore"
	"coldplane/analyze/objects"
	"coldplane/report"
)

const (
	storeTypes = 40 // rows of a store's tables
	storeKeys  = 20
	storeNS    = 5
)

// Stores are the databases of all nodes as reports show them.
func Stores(e *analyze.Engine) []report.Store {
	var out []report.Store
	for _, n := range e.Set().All() {
		c := e.Ctx(n)
		dbs, err := etcddb.OnNode.Get(c)
		if err != nil {
			continue
		}
		quota, _ := etcddb.QuotaOf.Get(c)
		for _, db := range dbs {
			out = append(out, Store(db, quota))
		}
	}
	return out
}

// Store is one database as reports show it; quota may be nil.
func Store(db *etcddb.DB, quota *etcddb.Quota) report.Store {
	r := report.Store{Node: db.File.Node.Name, Path: db.File.Path, Size: db.File.Size, Alarms: []report.Alarm{}, Types: []report.StoreType{}}
	s := db.Store
	if s == nil {
		r.Damage = db.Err.Error()
		return r
	}
	r.Size, r.InUse, r.Free = s.Pages.DBSize, s.Pages.InUse, int64(s.Pages.Free)*s.Pages.PageSize
	r.Live, r.History, r.Tombstones, r.Keys = s.LiveRec, s.RecBytes-s.LiveRec, s.Tombstones, s.Live
	r.Revisions, r.Revision, r.Compacted = s.Records, s.MaxRev, s.Compacted()
	r.Version = s.Meta.StorageVersion
	if r.Version == "" {
		r.Version = s.Meta.ClusterVersion
	}
	if len(s.Members) == 1 {
		r.Member = s.Members[0].Name
	}
	if quota != nil {
		q := quota.Bytes
		r.Quota, r.QuotaSource = &q, quota.Source
	}
	if !s.Lossy {
		// A compaction frees what its records fill; pages do not shrink with them, so
		// the share of live bytes is the estimate.
		after := s.Pages.InUse
		if s.RecBytes > 0 {
			after = int64(math.Round(float64(s.Pages.InUse) * float64(s.LiveRec) / float64(s.RecBytes)))
		}
		r.AfterComp, r.AfterDefrag = &after, &after
	}
	for _, a := range s.Alarms {
		r.Alarms = append(r.Alarms, report.Alarm{Member: etcdstore.MemberID(a.MemberID), Type: a.Type})
	}
	for i, t := range s.Types {
		if i == storeTypes {
			break
		}
		row := report.StoreType{Type: t.Type, Live: t.LiveRec, History: t.History(), Objects: t.Live, Revisions: t.Records}
		for j, ns := range t.Namespaces {
			if j == storeNS {
				break
			}
			row.Namespaces = append(row.Namespaces, report.StoreNamespace{Namespace: ns.Namespace, Live: ns.LiveBytes, History: ns.RecBytes - ns.LiveBytes, Objects: ns.Live})
		}
		r.Types = append(r.Types, row)
	}
	r.Largest, r.Hot = storeKeyRows(s.Largest), storeKeyRows(s.Busiest)
	r.Damage = DamageText(s)
	if last, ok := objects.New(db).LastWrite(); ok {
		r.LastWrite = &last.Time
	}
	return r
}

func storeKeyRows(list []etcdstore.KeyStats) (out []report.StoreKey) {
	for i, k := range list {
		if i == storeKeys {
			break
		}
		out = append(out, report.StoreKey{Key: k.Key, Size: k.Size, Revisions: k.Records, Bytes: k.RecBytes, Revision: k.Rev.Main, Deleted: !k.Live})
	}
	return out
}

// DamageText says in a line what is wrong with a store; "" when nothing is.
func DamageText(s *etcdstore.Store) string {
	n := len(s.Damage) + s.DamageDropped
	switch {
	case n > 0:
		d := s.Damage[0].String()
		if n > 1 {
			d += fmt.Sprintf("; and %d more", n-1)
		}
		if s.Salvaged > 0 {
			d += fmt.Sprintf("; %d records were salvaged from pages that nothing points to", s.Salvaged)
		}
		return d
	case s.MissingTotal > 0:
		return fmt.Sprintf("%d revisions above the compaction have no record, from %d", s.MissingTotal, s.Missing[0].From)
	case s.Undecoded+s.Strange > 0:
		return fmt.Sprintf("%d records are not what etcd writes", s.Undecoded+s.Strange)
	case len(s.Problems) > 0:
		return s.Problems[0]
	}
	return ""
}
